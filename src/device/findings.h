/* What was found wrong with a kernel beside its numbers, over the launches of a run. */
#pragma once

#include "base/status.h"

enum { FA_FINDINGS_LISTED = 20, FA_FAULT_SIZE = 40, FA_FINDING_AT = 64 };

/* Threads that store the same value to one place, and no order between them: a race of its own class. */
#define FA_EQUAL_STORES "equal-value stores"
/* Writes outside of the tensors, on a GPU too; reports of it begin so. */
#define FA_OUT_OF_BOUNDS "out of bounds"

typedef struct fa_finding {
    char fault[FA_FAULT_SIZE]; /* its class: "data race", "deadlock", ... (docs/emulator.md) */
    char at[2][FA_FINDING_AT]; /* FILE:LINE of both accesses of a race; "": not known, or no race */
    char memory[48];           /* of a race */
    char text[2000];           /* the report */
} fa_finding;

typedef struct fa_findings {
    int32_t count; /* distinct ones: the class or the lines differ */
    bool more;     /* there may be others: the launch ended after a race, or they were too many to tell apart */
    int32_t listed;
    fa_finding list[FA_FINDINGS_LISTED]; /* equal-value stores are the last */
} fa_findings;

/* Adds a finding, unless it is there already. */
void fa_findings_add(fa_findings *all, const fa_finding *one);
/* The report of the first finding, a line for each of the others, and how many are not listed. */
void fa_findings_text(const fa_findings *all, char *text, size_t size);
/* FA_WRONG and the text where something was found, but what ended a launch: equal-value stores. NULL: a GPU. */
fa_status fa_findings_verdict(const fa_findings *all, fa_reason *why);
