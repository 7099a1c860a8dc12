/* What the emulator found wrong with a kernel, over the launches of a run. */
#ifndef FA_FINDINGS_H
#define FA_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FA_FINDINGS_LISTED = 20, FA_FAULT_SIZE = 40 };

/* Threads that store the same value to one place, and no order between them: a race of its own class. */
#define FA_EQUAL_STORES "equal-value stores"

typedef struct fa_finding {
    char fault[FA_FAULT_SIZE]; /* its class: "data race", "deadlock", ... (docs/emulator.md) */
    char at[2][64];            /* FILE:LINE of both accesses of a race; "": not known, or no race */
    char memory[48];           /* of a race */
    char text[2000];           /* the report */
} fa_finding;

typedef struct fa_findings {
    int32_t count; /* distinct ones: the class or the lines differ */
    bool more;     /* there were others that nobody told apart */
    int32_t listed;
    fa_finding list[FA_FINDINGS_LISTED]; /* equal-value stores are the last */
} fa_findings;

/* Adds a finding, unless it is there already. */
void fa_findings_add(fa_findings *all, const fa_finding *one);
/* The report of the first finding, a line for each of the others, and how many are not listed. */
void fa_findings_text(const fa_findings *all, char *text, size_t size);

#endif
