/* The rules that an output is judged by (docs/correctness.md). Pure; NaN fails. */
#pragma once

#include "check/reference.h"

/* Errors are absolute unless the name says otherwise; worst_row_rel_l2 is |O-R|_2 / |R|_2 of the worst row. */
typedef struct fa_verdict {
    char name[16]; /* "cpu", "cublas", "plain" */
    bool passed;
    int64_t rows_checked, mismatches, nonfinite;
    double max_abs_err, rmse, worst_row_rel_l2;
    double baseline_max_abs_err, baseline_rmse, baseline_worst_row_rel_l2;
    bool baseline_fails; /* the baseline itself violates atol/rtol: only the relative rules decide */
    fa_place worst;
    char failure[768]; /* rule, amount, place, row tiles and heads, a guess of the pattern; empty when passed */
} fa_verdict;

/* atol and rtol of the fixed rule: 1e-3 for FP16, twice its unit roundoff; times 8 for BF16, and 128 for
 * E4M3, like the unit roundoff. */
double fa_rule_tolerance(fa_dtype dtype);

/* Against the FP64 reference. output: [batch, heads, seq_q, dim_v]; every element must be finite, sampled or not. atol
 * is for V as it is drawn: reference->unit multiplies it. */
fa_verdict fa_judge(const fa_problem *problem, const fa_reference *reference, const uint16_t *output, int32_t tile_m,
                    double atol, double rtol);

/* Against the full output of a library, other: FP32 [batch, heads, seq_q, dim_v]. Unfused attention rounds S, P and its
 * output to the type, so its error is that of the baseline. `exact`, the verdict against R on this input, has that
 * error. The fixed rule then allows atol plus twice the baseline's largest error (four times where R was sampled: the
 * largest of a sample is not the largest of all), and rmse(O-C) <= 4 rmse(B-R): twice for each side. Baseline figures
 * are copied from `exact`. */
fa_verdict fa_judge_library(const fa_problem *problem, const float *other, const uint16_t *output, int32_t tile_m,
                            double atol, double rtol, const fa_verdict *exact);

/* Against R of every row, from the plain kernel: FP64 [batch, heads, seq_q, dim_v]. The limits of all rows are those
 * of `exact`, the verdict against the rows of `cpu` with their baseline. Other rows may rightly be worse than these,
 * so a row that is beyond a limit is a suspect, and passed is false: let the CPU look at it.
 * suspects: [stored rows], 0 or the row's largest error. */
fa_verdict fa_judge_plain(const fa_problem *problem, const double *every, const fa_reference *cpu,
                          const uint16_t *output, int32_t tile_m, double atol, double rtol, const fa_verdict *exact,
                          double *suspects);

/* Merges the verdicts of two seeds against the same reference: the worse one, with the counts of both. */
void fa_verdict_merge(fa_verdict *into, const fa_verdict *next);
