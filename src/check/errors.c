#include "check/errors.h"

#include <math.h>
#include <stdio.h>

/* Among fewer elements than this the baseline can be lucky: an element that cancels to almost 0 carries the rounding of
 * the P that made it. Units in the last place are then those of the largest |R| of the row. */
#define FEW_ELEMENTS 8192

int64_t fa_errors_nonfinite(const fa_problem *problem, const uint16_t *output)
{
    const int64_t rows = fa_problem_rows(problem), dim = fa_problem_dim_v(problem);
    int64_t nonfinite = 0;
#pragma omp parallel for reduction(+ : nonfinite) schedule(static) if (rows * dim > FA_PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++) {
        if (problem->lengths != NULL && !fa_problem_row(problem, row).used)
            continue;
        for (int64_t i = row * dim; i < (row + 1) * dim; i++)
            nonfinite += !fa_element_is_finite(fa_problem_dtype_o(problem), output[i]);
    }
    return nonfinite;
}

static double largest_expected(const fa_expected *expected, int64_t i, int32_t dim)
{
    double largest = 0.0;
    for (int32_t d = 0; d < dim; d++) {
        const double size = fabs(fa_expected_value(expected, i * dim + d));
        largest = size > largest ? size : largest; /* fmax is a call */
    }
    return largest;
}

/* The larger error and its column. NaN counts. */
static void keep_larger(double error, int32_t d, double *largest, int32_t *col)
{
    if (error <= *largest)
        return;
    *largest = error;
    *col = d;
}

fa_row_errors fa_errors_of_row(const fa_problem *problem, const fa_expected *expected, int64_t i,
                               const fa_reference *reference, const uint16_t *output, double atol, double rtol)
{
    const int32_t dim = fa_problem_dim_v(problem);
    const fa_dtype dtype = fa_problem_dtype_o(problem);
    fa_row_errors row = {.unused =
                             problem->lengths != NULL && !fa_problem_row(problem, fa_expected_row(expected, i)).used};
    if (row.unused)
        return row;
    const bool few = expected->row_count * dim < FEW_ELEMENTS;
    const double largest = row.largest = largest_expected(expected, i, dim);
    const double sway = reference ? 2.0 * reference->sway[i] * largest : 0.0;
    const uint16_t *o = output + fa_expected_row(expected, i) * dim;
    for (int32_t d = 0; d < dim; d++) {
        const double r = fa_expected_value(expected, i * dim + d);
        const double limit = atol + rtol * fabs(r), ulp = fa_element_ulp(dtype, few ? largest : r);
        const bool finite = fa_element_is_finite(dtype, o[d]);
        const double error = finite ? fabs((double)fa_element_to_float(dtype, o[d]) - r) : INFINITY;
        row.nonfinite += !finite;
        keep_larger(error, d, &row.max, &row.col);
        if (!(error <= limit)) {
            row.mismatches++;
            keep_larger(error, d, &row.outside, &row.outside_col);
        }
        if (!(error <= FA_FLOOR_ULPS_EXACT * ulp))
            keep_larger(error, d, &row.over_floor, &row.floor_col);
        row.squares += error * error;
        row.reference_squares += r * r;
        row.ulp_squares += ulp * ulp;
        if (reference) {
            const double base_error = fabs((double)fa_element_to_float(dtype, reference->baseline[i * dim + d]) - r);
            row.base_mismatch |= !(base_error <= limit);
            row.unsettled |= !(base_error + sway <= limit);
            row.base_max = base_error > row.base_max ? base_error : row.base_max;
            row.base_squares += base_error * base_error;
        }
    }
    return row;
}

/* One tensor by a published tolerance: how many elements are outside, and the largest error. */
typedef struct published {
    int64_t elements, outside;
    bool nonfinite;
    double max;
} published;

static void add_element(const fa_tolerance *t, float got, float want, published *sum)
{
    const double error = fabs((double)got - (double)want), size = fabs((double)want);
    if (t->allow_negative_inf && got == -INFINITY && want == -INFINITY)
        return;
    sum->elements++;
    sum->nonfinite |= !isfinite(got) || (t->rule == FA_TOLERANCE_SOL && !isfinite(want));
    sum->max = fmax(sum->max, error);
    sum->outside += t->rule == FA_TOLERANCE_SOL ? !(error <= t->atol + t->rtol * size)
                                                : !(error <= t->atol || error <= t->rtol * (size + 1e-8));
}

/* Returns the ratio of elements inside; the first failure is kept. */
static double conclude(const published *sum, const char *name, fa_published_verdict *v)
{
    const fa_tolerance *t = &v->tolerance;
    const double ratio = sum->elements > 0 ? 1.0 - (double)sum->outside / (double)sum->elements : 1.0;
    const bool passed = !sum->nonfinite && ratio >= t->matched_ratio && !(sum->max > t->error_cap);
    if (v->passed && sum->nonfinite)
        snprintf(v->failure, sizeof v->failure, "%s has an infinity or NaN", name);
    else if (v->passed && ratio < t->matched_ratio)
        snprintf(v->failure, sizeof v->failure, "%.4f %% of %s are inside, %g %% must be", 100 * ratio, name,
                 100 * t->matched_ratio);
    else if (v->passed && !passed)
        snprintf(v->failure, sizeof v->failure, "an element of %s is off by %.3g, %g at most", name, sum->max,
                 t->error_cap);
    v->passed &= passed;
    return ratio;
}

static void add_row(const fa_problem *problem, const fa_reference *reference, int64_t i, const uint16_t *output,
                    const fa_tolerance *tolerance, published *sum)
{
    const int32_t dim = fa_problem_dim_v(problem);
    const fa_dtype dtype = fa_problem_dtype_o(problem);
    const uint16_t *got = output + reference->rows[i] * dim;
    for (int32_t d = 0; d < dim; d++) {
        const uint16_t want = fa_element_of_float(dtype, (float)reference->exact[i * dim + d]);
        add_element(tolerance, fa_element_to_float(dtype, got[d]), fa_element_to_float(dtype, want), sum);
    }
}

void fa_published_judge(const fa_problem *problem, const fa_reference *reference, const uint16_t *output,
                        const float *lse, fa_published_verdict *v)
{
    const fa_tolerance *t = &v->tolerance;
    published o = {.elements = 0}, l = {.elements = 0};
    if (t->rule == FA_TOLERANCE_NONE)
        return;
    for (int64_t i = 0; i < reference->row_count; i++) {
        const int64_t row = reference->rows[i];
        const bool used = fa_problem_row(problem, row).used;
        if (used)
            add_row(problem, reference, i, output, t, &o);
        if (used && lse != NULL)
            add_element(t, (float)((double)lse[row] / M_LN2), (float)(reference->lse[i] / M_LN2), &l);
    }
    if (!v->done)
        *v = (fa_published_verdict){
            .tolerance = *t, .done = true, .passed = true, .matched_ratio = 1, .lse_matched_ratio = 1};
    o.nonfinite |= fa_errors_nonfinite(problem, output) > 0;
    v->max_abs_err = fmax(v->max_abs_err, o.max);
    v->matched_ratio = fmin(v->matched_ratio, conclude(&o, "O", v));
    v->lse_matched_ratio = fmin(v->lse_matched_ratio, conclude(&l, "the log-sum-exp", v));
}
