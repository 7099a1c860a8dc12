/* Runs a kernel on random inputs and judges its output: references, guards, unchanged inputs, bitwise repeats. */
#pragma once

#include "check/session.h"

/* For every seed: draw inputs (check/draw.h; for a library the requested ones), launch on a NaN-filled output, compare
 * guards, gaps and inputs, judge the output against each reference of --check, and with --lse the log-sum-exp against
 * FP64. For the first seed also launch fa_check_repeats times more and compare (check/repeats.h), on the emulator under
 * each schedule in turn, greedy first. A library is a reference
 * only where its own result passes the rules on this input; `missing` says why it does not. FA_NOT_RUN when there is no
 * reference left or the emulator does not model the kernel, FA_WRONG with the failure, FA_ERROR when a launch on a GPU
 * faults. The tensors of a seed as asked stay in the buffers. */
fa_status fa_check(fa_candidate *candidate, const fa_options *options, fa_check_result *result, fa_reason *why);
/* Rule 6: one more check after timing, on the same buffers, with inputs from `seed`. A failure is added to `result`. */
fa_status fa_check_again(fa_candidate *candidate, const fa_options *options, uint64_t seed, fa_check_result *result,
                         fa_reason *why);
