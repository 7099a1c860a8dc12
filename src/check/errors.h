/* The errors of an output, row by row: what the rules judge by. Pure; NaN counts as infinite. */
#pragma once

#include "check/diagnose.h"
#include "input/workload.h"

/* The rounding of the type itself: an error below this many units in the last place of R is never wrong. Where the
 * baseline happens to be exact (S = 1, constant V) two units are allowed; otherwise a correctly rounded result always
 * passes. */
#define FA_FLOOR_ULPS_EXACT 2.0
#define FA_FLOOR_ULPS 1.0
/* Waking threads costs more than the work below this. */
#define FA_PARALLEL_ELEMENTS (1 << 16)

/* One row against its expected values; sums over the row's columns. */
typedef struct fa_row_errors {
    double max, squares;                   /* |O-R|: largest, sum of squares */
    double largest;                        /* |R| */
    double base_max, base_squares;         /* |B-R| */
    double reference_squares, ulp_squares; /* R, and the type's spacing at R */
    double over_floor;                     /* largest |O-R| among columns where it exceeds the floor of `max` */
    double outside;                        /* largest |O-R| among columns outside atol/rtol */
    int32_t mismatches, nonfinite;         /* outside atol/rtol */
    int32_t col, floor_col, outside_col;   /* columns of `max`, `over_floor`, `outside` */
    bool unused;                           /* the row lies between sequences */
    bool base_mismatch;
    bool unsettled; /* the baseline is outside atol/rtol, or would be with its scores and P rounded otherwise */
} fa_row_errors;

/* Row i of what is expected. reference: its baseline counts too; NULL: there is none. */
fa_row_errors fa_errors_of_row(const fa_problem *problem, const fa_expected *expected, int64_t i,
                               const fa_reference *reference, const uint16_t *output, double atol, double rtol);
/* Elements that are not finite, in rows of sequences: what lies between them keeps its poison. */
int64_t fa_errors_nonfinite(const fa_problem *problem, const uint16_t *output);

/* Over the seeds with the requested inputs, by the tolerance of the workload's project. */
typedef struct fa_published_verdict {
    fa_tolerance tolerance; /* rule NONE: there is no workload */
    bool done, passed;
    double max_abs_err;                      /* of O */
    double matched_ratio, lse_matched_ratio; /* the least of a seed; of the log-sum-exp where it is an output */
    char failure[128];                       /* empty when passed */
} fa_published_verdict;
/* lse: natural, NULL where it is no output; the project's has base 2. Adds a seed. */
void fa_published_judge(const fa_problem *problem, const fa_reference *reference, const uint16_t *output,
                        const float *lse, fa_published_verdict *verdict);
