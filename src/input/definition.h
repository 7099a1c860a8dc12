/* --definition and --workload: problems as FlashInfer-Bench and SOL-ExecBench publish them, as options of ours. */
#pragma once

#include "base/status.h"

/* Options, as words of a command line. */
typedef struct fa_definition_words {
    int count, numbers;
    bool values; /* the workload brings values of Q, K or V */
    char *at[40];
    char text[20][32]; /* numbers, which `at` points to */
} fa_definition_words;

/* What the definition (a JSON file) says of heads, dimensions, pages, type and mask, and the workload (FILE[:N], JSON
 * Lines, the N-th line from 1) of sizes and scale; NULL: the fixed axes alone. The log-sum-exp is asked for where it is
 * an output. Sequences that are not all alike become "--lengths workload". FA_INFEASIBLE names an operator, an input or
 * a type that the bench cannot say; FA_USAGE: a file that is no definition, or no workload of it. */
fa_status fa_definition_read(const char *definition, const char *workload, fa_definition_words *words, fa_reason *why);
/* The lengths of the workload's sequences, at most 4096. */
fa_status fa_definition_lengths(const char *definition, const char *workload, int32_t *q, int32_t *kv, int32_t *count,
                                fa_reason *why);
