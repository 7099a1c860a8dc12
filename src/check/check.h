/* Runs a kernel on random inputs and judges its output: references, guards, unchanged inputs, bitwise repeats. */
#ifndef FA_CHECK_H
#define FA_CHECK_H

#include "check/draw.h"
#include "check/library_reference.h"
#include "check/lse.h"
#include "check/rules.h"
#include "run/candidate.h"

#define FA_DRAWS_MAX 64 /* later seeds use the requested inputs */

typedef struct fa_check_result {
    bool done, passed;
    int32_t seeds; /* that were checked */
    double atol, rtol;
    bool loosened;     /* atol or rtol other than fa_rule_tolerance */
    int32_t repeats;   /* launches that were compared bit by bit */
    int32_t schedules; /* emulator schedules with launches: a bit for each fa_schedule */
    int32_t draw_count;
    fa_draw draws[FA_DRAWS_MAX];
    int32_t verdict_count; /* over seeds with the requested inputs, and a failed draw */
    fa_verdict verdicts[2];
    fa_lse_verdict lse;            /* done with --lse only */
    char unrepeated[96];           /* why there was no repeated launch */
    fa_findings found;             /* by the emulator; memory that is not the output's was written */
    char missing[FA_MISSING_SIZE]; /* requested references that could not run, and why */
    char failure[1024];
} fa_check_result;

/* Ten; on the emulator five, or fewer for large problems: one from 2^24 multiply-adds on, none beyond 2^32. */
int32_t fa_check_repeats(const fa_problem *problem, bool emulated);
/* For every seed: draw inputs (check/draw.h; for a library the requested ones), launch on a NaN-filled output, compare
 * guards, gaps and inputs, judge the output against each reference of --check, and with --lse the log-sum-exp against
 * FP64. For the first seed also launch fa_check_repeats times more and compare bit by bit, on the emulator under each
 * schedule in turn, greedy first; not for kernels that declare themselves nondeterministic. A library is a reference
 * only where its own result passes the rules on this input; `missing` says why it does not. FA_NOT_RUN when there is no
 * reference left or the emulator does not model the kernel, FA_WRONG with the failure, FA_ERROR when a launch on a GPU
 * faults. The tensors of a seed as asked stay in the buffers. */
fa_status fa_check(fa_candidate *candidate, const fa_options *options, fa_check_result *result, fa_reason *why);
/* Rule 6: one more check after timing, on the same buffers, with inputs from `seed`. A failure is added to `result`. */
fa_status fa_check_again(fa_candidate *candidate, const fa_options *options, uint64_t seed, fa_check_result *result,
                         fa_reason *why);

#endif
