/* The rules an output is judged by (MEASURE.md section 1), and where and how it is wrong. Pure; NaN fails. */
#ifndef FA_RULES_H
#define FA_RULES_H

#include "check/reference.h"

typedef struct fa_place {
    int32_t batch, head, row, col;
} fa_place;

/* Errors are absolute unless the name says otherwise; worst_row_rel_l2 is |O-R|_2 / |R|_2 of the worst row. */
typedef struct fa_verdict {
    char name[16]; /* "cpu", "cublas" */
    bool passed;
    int64_t rows_checked, mismatches, nonfinite;
    double max_abs_err, rmse, worst_row_rel_l2;
    double baseline_max_abs_err, baseline_rmse, baseline_worst_row_rel_l2;
    bool baseline_fails; /* the naive baseline breaks atol/rtol itself: the relative rules alone decide */
    fa_place worst;
    char failure[768]; /* which rule, by how much, where, which row tiles and heads, a guess of the pattern; empty when
                          passed */
} fa_verdict;

/* output: FP16 [batch, heads, seq_q, dim], all of it is scanned for non-finite values. */
fa_verdict fa_judge(const fa_problem *problem, const fa_reference *reference, const uint16_t *output, int32_t tile_m,
                    double atol, double rtol);

/* Against another full output (cuBLAS): the fixed rule on every element; no baseline. other: FP32 [batch, heads, seq_q,
 * dim]. */
fa_verdict fa_judge_full(const fa_problem *problem, const float *other, const uint16_t *output, int32_t tile_m,
                         double atol, double rtol);

/* The same where `other` is a library's unfused attention, which rounds S, P and its output to FP16 and so is off by
 * what the FP16 baseline is off by. `exact` (the verdict against R on this input) says how much that is: the fixed rule
 * gets twice the baseline's largest error on top of atol (four times where R was sampled: the largest of a sample is
 * not the largest of all), and rmse(O-C) <= 4 rmse(B-R), twice for each side. Baseline figures are copied from `exact`.
 */
fa_verdict fa_judge_library(const fa_problem *problem, const float *other, const uint16_t *output, int32_t tile_m,
                            double atol, double rtol, const fa_verdict *exact);

/* Keeps the worse of two verdicts on the same reference, counts added: how five seeds become one. */
void fa_verdict_merge(fa_verdict *into, const fa_verdict *next);

#endif
