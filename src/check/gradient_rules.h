/* The rules that a gradient is judged by (docs/backward.md). Pure; NaN fails. */
#pragma once

#include "check/gradients.h"
#include "check/reference.h"

/* Of FP16; BF16 has 8 times as much, like its unit roundoff, but for the root mean square: 5e-3. x is the expected
 * element, rms the root mean square of the tensor's. */
#define FA_GRADIENT_RMSE 6e-4     /* of rms: that of all errors */
#define FA_GRADIENT_OF_RMS 0.01   /* |error| <= this * rms ... */
#define FA_GRADIENT_RELATIVE 1e-3 /* ... + this * |x| */
/* The length of a row's error: this part of the row's, and so often what rounding explains (fa_gradient.noise). */
#define FA_GRADIENT_ROW 2e-3
#define FA_GRADIENT_NOISE 3.0

typedef struct fa_gradient_verdict {
    char tensor[8], reference[8]; /* "dq"; "cpu" or "plain" */
    bool passed;
    int64_t rows_checked, mismatches, nonfinite; /* mismatches: elements beyond a limit */
    double rms, rmse, rmse_limit, max_abs_err, worst_row_rel_l2;
    double baseline_rmse, baseline_max_abs_err;
    bool baseline_fails;    /* the baseline breaks a rule: twice its errors are allowed */
    double repeats_max_abs; /* how far a repeat was from the first launch; 0: bitwise equal */
    fa_place worst;
    char failure[768]; /* rule, amount, place, rows, the likely mistake; empty when passed */
} fa_gradient_verdict;

/* What launches write: fa_buffers_output. tensors and forward are for the diagnosis; NULL: none. */
fa_gradient_verdict fa_judge_gradient(const fa_problem *problem, int32_t tensor, const fa_gradient *expected,
                                      const uint16_t *output, const fa_tensors *tensors, const double *forward);
/* Against every element, of the plain kernel. The baseline is that of `sample`, the verdict on some rows: a row that is
 * beyond a limit is a suspect, for the CPU to look at. suspects: [stored rows], 0 or how far it is beyond. */
fa_gradient_verdict fa_judge_every_gradient(const fa_problem *problem, int32_t tensor, const fa_gradient *every,
                                            const uint16_t *output, const fa_gradient_verdict *sample,
                                            double *suspects);
/* How many elements are not finite, and of each stored row. */
int64_t fa_gradient_nonfinite(const fa_problem *problem, int32_t tensor, const uint16_t *output, double *of_row);
/* Merges the verdicts of two seeds: the worse one, with the counts of both. */
void fa_gradient_verdict_merge(fa_gradient_verdict *into, const fa_gradient_verdict *next);
/* The largest difference between two launches. */
double fa_gradient_apart(const fa_problem *problem, int32_t tensor, const uint16_t *first, const uint16_t *again);
