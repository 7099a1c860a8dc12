/* The rule that a log-sum-exp is judged by. Pure; NaN fails. */
#pragma once

#include "check/rules.h"

/* |L - R| <= atol + rtol |R|. FP16 probabilities may add up wrong by 2^-11, which is 5e-4 in the logarithm, and twice
 * that is allowed; BF16 ones by 2^-8. The scores themselves are products of 16-bit numbers summed in FP32. Neither
 * atol (1e-3; for BF16 8 times as much) nor rtol grows with --atol or --rtol. With E4M3 the exponentials are summed
 * before they are rounded, so atol is that of BF16; the sums of q.k keep 13 fraction bits, so rtol is
 * FA_LSE_RTOL_FP8. Where all products of a row have one sign, each of `dim` may lose 2^-13 of a sum that is half as
 * large on average. Scores of mixed signs are small: what R is above FA_LSE_FP8_LARGE may be off by dim 2^-14 of it,
 * too. (wgmma's sums, on a GPU and on the emulator alike: 1.4e-3 at dim 96, 2.7e-3 at dim 208.) */
#define FA_LSE_RTOL 1e-4
#define FA_LSE_RTOL_FP8 1e-3
#define FA_LSE_FP8_LARGE 32.0

/* Errors cover sampled rows that see a key; `nonfinite` counts NaN and wrong infinities of all rows. */
typedef struct fa_lse_verdict {
    bool done, passed;
    int64_t rows_checked, mismatches, nonfinite;
    double atol, rtol, max_abs_err, baseline_max_abs_err;
    fa_place worst;    /* col is 0 */
    char failure[384]; /* empty when passed */
} fa_lse_verdict;

/* lse: natural logarithm, [batch, heads, seq_q]. acc_fp16, the lower class: twice the baseline's error is allowed
 * if that is more. */
fa_lse_verdict fa_judge_lse(const fa_problem *problem, const fa_reference *reference, const float *lse, bool acc_fp16);

/* Merges the verdicts of two seeds: the worse one, with the counts of both. */
void fa_lse_verdict_merge(fa_lse_verdict *into, const fa_lse_verdict *next);
