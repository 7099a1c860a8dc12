#include "check/rules.h"

#include "check/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rounding of the type itself: an error below this many units in the last place of R is never wrong. Where the
 * baseline happens to be exact (S = 1, constant V) two units are allowed; otherwise a correctly rounded result always
 * passes. */
#define FLOOR_ULPS_EXACT 2.0
#define FLOOR_ULPS 1.0
/* By how much the largest error may exceed twice the baseline's, in FP16. */
#define SLACK 1e-5
/* Among fewer elements than this the baseline can be lucky: an element that cancels to almost 0 carries the rounding of
 * the P that made it. Units in the last place are then those of the largest |R| of the row. */
#define FEW_ELEMENTS 8192
/* Waking threads costs more than the work below this. */
#define PARALLEL_ELEMENTS (1 << 16)

/* One row against its expected values; sums over the row's columns. */
typedef struct row_errors {
    double max, squares;                   /* |O-R|: largest, sum of squares */
    double base_max, base_squares;         /* |B-R| */
    double reference_squares, ulp_squares; /* R, and the type's spacing at R */
    double over_floor;                     /* largest |O-R| among columns where it exceeds the floor of `max` */
    double outside;                        /* largest |O-R| among columns outside atol/rtol */
    int32_t mismatches, nonfinite;         /* outside atol/rtol */
    int32_t col, floor_col, outside_col;   /* columns of `max`, `over_floor`, `outside` */
    bool base_mismatch;
    bool unsettled; /* the baseline is outside atol/rtol, or would be with its scores and P rounded otherwise */
} row_errors;

double fa_rule_tolerance(fa_dtype dtype) { return 1e-3 * fa_dtype_coarseness(dtype); }

/* In rows of sequences: what lies between them keeps its poison. */
static int64_t count_nonfinite(const fa_problem *problem, const uint16_t *output)
{
    const int64_t rows = fa_problem_rows(problem), dim = fa_problem_dim_v(problem);
    int64_t nonfinite = 0;
#pragma omp parallel for reduction(+ : nonfinite) schedule(static) if (rows * dim > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++) {
        if (problem->lengths != NULL && !fa_problem_row(problem, row).used)
            continue;
        for (int64_t i = row * dim; i < (row + 1) * dim; i++)
            nonfinite += !fa_element_is_finite(problem->dtype, output[i]);
    }
    return nonfinite;
}

static double largest_expected(const fa_expected *expected, int64_t i, int32_t dim)
{
    double largest = 0.0;
    for (int32_t d = 0; d < dim; d++)
        largest = fmax(largest, fabs(fa_expected_value(expected, i * dim + d)));
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

static row_errors measure_row(const fa_problem *problem, const fa_expected *expected, int64_t i,
                              const fa_reference *reference, const uint16_t *output, double atol, double rtol)
{
    const int32_t dim = fa_problem_dim_v(problem);
    const fa_dtype dtype = problem->dtype;
    row_errors row = {0};
    if (problem->lengths != NULL && !fa_problem_row(problem, fa_expected_row(expected, i)).used)
        return row;
    const bool few = expected->row_count * dim < FEW_ELEMENTS;
    const double largest = largest_expected(expected, i, dim);
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
        if (!(error <= FLOOR_ULPS_EXACT * ulp))
            keep_larger(error, d, &row.over_floor, &row.floor_col);
        row.squares += error * error;
        row.reference_squares += r * r;
        row.ulp_squares += ulp * ulp;
        if (reference) {
            const double base_error = fabs((double)fa_element_to_float(dtype, reference->baseline[i * dim + d]) - r);
            row.base_mismatch |= !(base_error <= limit);
            row.unsettled |= !(base_error + sway <= limit);
            row.base_max = fmax(row.base_max, base_error);
            row.base_squares += base_error * base_error;
        }
    }
    return row;
}

/* |error|_2 / |R|_2. A row that sees no key has R = 0: only 0 is right. */
static double relative(double squares, double reference_squares)
{
    return squares == 0.0 ? 0.0 : sqrt(squares / reference_squares);
}

/* The floor of the relative rules, in the unit of the error. R itself is rounded, to FP64. */
static double floor_of(double baseline_error, double ulp)
{
    return (baseline_error <= 1e-9 * ulp ? FLOOR_ULPS_EXACT : FLOOR_ULPS) * ulp;
}

/* What a broken rule is about: the worst element is that with the largest. */
typedef enum { BY_ERROR, BY_OUTSIDE, BY_FLOOR, BY_SQUARES, BY_RELATIVE } measure_by;

typedef struct judgement {
    fa_verdict verdict;
    row_errors *rows;
    fa_expected expected;
    int64_t worst_index; /* the verdict's worst element: of the largest error, or of the rule that is broken */
    measure_by by;       /* of the broken rule */
    double unit;
    double ulp_rms;
} judgement;

static void set_worst(judgement *j, const fa_problem *problem, int64_t i, int32_t col)
{
    j->worst_index = i;
    j->verdict.worst = fa_place_of(problem, fa_expected_row(&j->expected, i), col);
}

static judgement measure(const fa_problem *problem, const fa_expected *expected, const fa_reference *reference,
                         const uint16_t *output, double atol, double rtol)
{
    const int32_t dim = fa_problem_dim_v(problem);
    judgement j = {.expected = *expected};
    fa_verdict *v = &j.verdict;
    j.rows = fa_alloc((size_t)expected->row_count * sizeof *j.rows);
#pragma omp parallel for schedule(static) if (expected->row_count * dim > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < expected->row_count; i++)
        j.rows[i] = measure_row(problem, expected, i, reference, output, atol, rtol);

    v->rows_checked = expected->row_count;
    v->nonfinite = count_nonfinite(problem, output);
    double squares = 0.0, base_squares = 0.0, ulp_squares = 0.0;
    for (int64_t i = 0; i < expected->row_count; i++) {
        const row_errors *row = &j.rows[i];
        if (!(row->max <= v->max_abs_err)) {
            v->max_abs_err = row->max;
            j.worst_index = i;
        }
        v->mismatches += row->mismatches;
        v->worst_row_rel_l2 = fmax(v->worst_row_rel_l2, relative(row->squares, row->reference_squares));
        v->baseline_max_abs_err = fmax(v->baseline_max_abs_err, row->base_max);
        const double base_relative = relative(row->base_squares, row->reference_squares);
        v->baseline_worst_row_rel_l2 =
            fmax(v->baseline_worst_row_rel_l2, isfinite(base_relative) ? base_relative : 0.0);
        v->baseline_fails |= row->base_mismatch;
        squares += row->squares;
        base_squares += row->base_squares;
        ulp_squares += row->ulp_squares;
    }
    const double elements = (double)expected->row_count * (double)dim;
    v->rmse = sqrt(squares / elements);
    v->baseline_rmse = sqrt(base_squares / elements);
    j.ulp_rms = sqrt(ulp_squares / elements);
    set_worst(&j, problem, j.worst_index, j.rows[j.worst_index].col);
    return j;
}

static double measure_of(const row_errors *row, measure_by by)
{
    switch (by) {
    case BY_OUTSIDE:
        return row->outside;
    case BY_FLOOR:
        return row->over_floor;
    case BY_SQUARES:
        return row->squares;
    case BY_RELATIVE:
        return relative(row->squares, row->reference_squares);
    case BY_ERROR:
        break;
    }
    return row->max;
}

/* Of the rows in `bad`, by what the broken rule is about. False: none is marked. */
static bool find_worst(judgement *j, const fa_problem *problem, const uint8_t *bad)
{
    double largest = -1.0;
    for (int64_t i = 0; i < j->verdict.rows_checked; i++) {
        const row_errors *row = &j->rows[i];
        const double measure = measure_of(row, j->by);
        if (!bad[i] || measure <= largest)
            continue;
        largest = measure;
        set_worst(j, problem, i,
                  j->by == BY_OUTSIDE ? row->outside_col
                  : j->by == BY_FLOOR ? row->floor_col
                                      : row->col);
    }
    return largest != -1.0;
}

static void add_worst(const judgement *j, const fa_problem *problem, const uint16_t *output, bool expected, char *text,
                      size_t size)
{
    const fa_place *at = &j->verdict.worst;
    const int64_t flat = fa_problem_flat(problem, at->batch, at->head, at->row), dim = fa_problem_dim_v(problem);
    const size_t used = strlen(text);
    char want[32] = "not sampled";
    const double got = (double)fa_element_to_float(problem->dtype, output[flat * dim + at->col]);
    if (expected)
        snprintf(want, sizeof want, "expected %.6g", fa_expected_value(&j->expected, j->worst_index * dim + at->col));
    snprintf(text + used, size - used, "; worst at batch %d head %d row %d col %d: %.6g, %s; %lld mismatches",
             at->batch, at->head, at->row, at->col, isnan(got) ? NAN : got, want, (long long)j->verdict.mismatches);
}

static fa_place first_nonfinite(const fa_problem *problem, const uint16_t *output)
{
    const int32_t dim = fa_problem_dim_v(problem);
    int64_t i = 0;
    while (fa_element_is_finite(problem->dtype, output[i]) || !fa_problem_row(problem, i / dim).used)
        i++;
    return fa_place_of(problem, i / dim, (int32_t)(i % dim));
}

/* Completes a failed verdict: `bad` marks the rows that broke the rule. Without any, a row beside the sample is not
 * finite. */
static void explain(judgement *j, const fa_problem *problem, const uint16_t *output, int32_t tile_m, const uint8_t *bad)
{
    char *text = j->verdict.failure;
    const size_t size = sizeof j->verdict.failure;
    const bool sampled = find_worst(j, problem, bad);
    if (!sampled)
        j->verdict.worst = first_nonfinite(problem, output);
    add_worst(j, problem, output, sampled, text, size);
    fa_diagnose(problem, &j->expected, bad, output, tile_m, text, size);
}

/* Rule 3; marks and describes the rows that break it. Where only the mean is off, the rows above the allowed mean are
 * marked. */
static bool relative_rules(judgement *j, const fa_problem *problem, uint8_t *bad)
{
    const double slack = SLACK * fa_dtype_coarseness(problem->dtype) * j->unit;
    const char *type = fa_dtype_name(problem->dtype);
    fa_verdict *v = &j->verdict;
    const double max_limit = 2.0 * v->baseline_max_abs_err + slack;
    const double rmse_limit = fmax(2.0 * v->baseline_rmse, floor_of(v->baseline_rmse, j->ulp_rms));
    const double row_limit = 3.0 * v->baseline_worst_row_rel_l2;
    const bool rmse_ok = v->rmse <= rmse_limit;
    bool max_ok = true, row_ok = true;
    double max_over = 0.0;
    for (int64_t i = 0; i < v->rows_checked; i++) {
        const row_errors *row = &j->rows[i];
        const double error = relative(row->squares, row->reference_squares);
        const double row_floor =
            floor_of(v->baseline_worst_row_rel_l2, relative(row->ulp_squares, row->reference_squares));
        const bool row_max_ok = row->over_floor <= max_limit;
        const bool row_l2_ok = error <= fmax(row_limit, row_floor) && error < INFINITY;
        max_over = fmax(max_over, row->over_floor);
        max_ok &= row_max_ok;
        row_ok &= row_l2_ok;
        bad[i] = !(row_max_ok && row_l2_ok &&
                   (rmse_ok || row->squares <= rmse_limit * rmse_limit * fa_problem_dim_v(problem)));
    }
    j->by = !max_ok ? BY_FLOOR : !rmse_ok ? BY_SQUARES : BY_RELATIVE;
    if (!max_ok)
        snprintf(v->failure, sizeof v->failure, "max|O-R| %.4g > %.4g (twice the %s baseline's %.4g + %.3g)", max_over,
                 max_limit, type, v->baseline_max_abs_err, slack);
    else if (!rmse_ok)
        snprintf(v->failure, sizeof v->failure, "rmse %.4g > %.4g (the %s baseline's is %.4g)", v->rmse, rmse_limit,
                 type, v->baseline_rmse);
    else if (!row_ok)
        snprintf(v->failure, sizeof v->failure,
                 "a row's relative L2 error %.4g > %.4g (three times the %s baseline's worst)", v->worst_row_rel_l2,
                 row_limit, type);
    return max_ok && rmse_ok && row_ok;
}

static bool breaks_fixed_rule(const fa_verdict *v, const row_errors *row)
{
    return row->mismatches != 0 && !(v->baseline_fails && row->unsettled);
}

/* Rules 1 and 2: finite, and within atol + rtol |R|; where the baseline is not, only its settled rows must be.
 * Overwrites `bad` when one is broken. */
static bool fixed_rules(judgement *j, double atol, double rtol, uint8_t *bad)
{
    fa_verdict *v = &j->verdict;
    const bool finite = v->nonfinite == 0;
    bool marked = false, within = true;
    double largest = 0.0;
    for (int64_t i = 0; i < v->rows_checked; i++) {
        const row_errors *row = &j->rows[i];
        const bool far = breaks_fixed_rule(v, row);
        within &= !far;
        largest = far ? fmax(largest, row->outside) : largest;
        marked |= row->nonfinite != 0;
    }
    if (finite && within)
        return true;
    for (int64_t i = 0; i < v->rows_checked; i++)
        bad[i] = finite ? breaks_fixed_rule(v, &j->rows[i]) : j->rows[i].nonfinite != 0;
    j->by = finite ? BY_OUTSIDE : BY_ERROR;
    if (!finite)
        snprintf(v->failure, sizeof v->failure, "%lld outputs are not finite%s", (long long)v->nonfinite,
                 marked ? "" : " (all of them in rows that were not sampled)");
    else
        snprintf(v->failure, sizeof v->failure, "|O-R| > %.3g + %.3g |R|: largest error %.4g", atol, rtol, largest);
    return false;
}

fa_verdict fa_judge(const fa_problem *problem, const fa_reference *reference, const uint16_t *output, int32_t tile_m,
                    double atol, double rtol)
{
    const fa_expected expected = {.row_count = reference->row_count,
                                  .rows = reference->rows,
                                  .exact = reference->exact,
                                  .tensors = reference->tensors,
                                  .tile_n = reference->tile_n};
    atol *= reference->unit;
    judgement j = measure(problem, &expected, reference, output, atol, rtol);
    j.unit = reference->unit;
    uint8_t *bad = fa_alloc((size_t)expected.row_count);
    snprintf(j.verdict.name, sizeof j.verdict.name, "cpu");
    const bool relative_ok = relative_rules(&j, problem, bad);
    const bool fixed_ok = fixed_rules(&j, atol, rtol, bad);
    j.verdict.passed = relative_ok && fixed_ok;
    if (!j.verdict.passed)
        explain(&j, problem, output, tile_m, bad);
    free(bad);
    free(j.rows);
    return j.verdict;
}

fa_verdict fa_judge_library(const fa_problem *problem, const float *other, const uint16_t *output, int32_t tile_m,
                            double atol, double rtol, const fa_verdict *exact)
{
    const fa_expected expected = {.row_count = fa_problem_rows(problem), .other = other};
    const bool sampled = exact->rows_checked < expected.row_count;
    const double own_error = (sampled ? 4.0 : 2.0) * exact->baseline_max_abs_err;
    judgement j = measure(problem, &expected, NULL, output, atol + own_error, rtol);
    fa_verdict *v = &j.verdict;
    uint8_t *bad = fa_alloc((size_t)expected.row_count);
    snprintf(v->name, sizeof v->name, "cublas");
    const double limit = fmax(4.0 * exact->baseline_rmse, FLOOR_ULPS * j.ulp_rms);
    const bool fixed_ok = fixed_rules(&j, atol + own_error, rtol, bad), rmse_ok = v->rmse <= limit;
    v->passed = fixed_ok && rmse_ok;
    if (fixed_ok && !rmse_ok) {
        for (int64_t i = 0; i < v->rows_checked; i++)
            bad[i] = !(j.rows[i].squares <= limit * limit * fa_problem_dim_v(problem));
        j.by = BY_SQUARES;
        snprintf(v->failure, sizeof v->failure, "rmse against the library %.4g > %.4g", v->rmse, limit);
    }
    if (!v->passed)
        explain(&j, problem, output, tile_m, bad);
    v->baseline_max_abs_err = exact->baseline_max_abs_err;
    v->baseline_rmse = exact->baseline_rmse;
    v->baseline_worst_row_rel_l2 = exact->baseline_worst_row_rel_l2;
    v->baseline_fails = exact->baseline_fails;
    free(bad);
    free(j.rows);
    return j.verdict;
}

void fa_verdict_merge(fa_verdict *into, const fa_verdict *next)
{
    if (into->rows_checked == 0) {
        *into = *next;
        return;
    }
    const bool next_is_worse = into->passed != next->passed ? !next->passed : !(next->max_abs_err <= into->max_abs_err);
    fa_verdict merged = next_is_worse ? *next : *into;
    merged.rows_checked = into->rows_checked + next->rows_checked;
    merged.mismatches = into->mismatches + next->mismatches;
    merged.nonfinite = into->nonfinite + next->nonfinite;
    merged.baseline_fails = into->baseline_fails || next->baseline_fails;
    *into = merged;
}
