#include "check/rules.h"

#include "check/errors.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By how much the largest error may exceed twice the baseline's, in FP16. */
#define SLACK 1e-5
/* Fewer rows than this may be rounded otherwise than the baseline's. */
#define FP8_ROWS 64
/* Of FP8's P: how far one may be off, and how many make up for each other. */
#define OF_ONE_WEIGHT (1.0 / 16.0)
#define FEW_WEIGHTS 16.0

double fa_rule_tolerance(fa_dtype dtype) { return 1e-3 * fa_dtype_coarseness(dtype); }

/* |error|_2 / |R|_2. A row that sees no key has R = 0: only 0 is right. */
static double relative(double squares, double reference_squares)
{
    return squares == 0.0 ? 0.0 : sqrt(squares / reference_squares);
}

/* The floor of the relative rules, in the unit of the error. R itself is rounded, to FP64. */
static double floor_of(double baseline_error, double ulp)
{
    return (baseline_error <= 1e-9 * ulp ? FA_FLOOR_ULPS_EXACT : FA_FLOOR_ULPS) * ulp;
}

/* What a broken rule is about: the worst element is that with the largest. */
typedef enum { BY_ERROR, BY_OUTSIDE, BY_FLOOR, BY_SQUARES, BY_RELATIVE } measure_by;

typedef struct judgement {
    fa_verdict verdict;
    fa_row_errors *rows;
    fa_expected expected;
    int64_t worst_index; /* the verdict's worst element: of the largest error, or of the rule that is broken */
    measure_by by;       /* of the broken rule */
    int64_t unused;      /* rows between sequences, which are not counted in the end */
    double unit;
    double ulp_rms, reference_rms;
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
#pragma omp parallel for schedule(static) if (expected->row_count * dim > FA_PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < expected->row_count; i++)
        j.rows[i] = fa_errors_of_row(problem, expected, i, reference, output, atol, rtol);

    v->rows_checked = expected->row_count;
    v->nonfinite = fa_errors_nonfinite(problem, output);
    double squares = 0.0, base_squares = 0.0, ulp_squares = 0.0, reference_squares = 0.0;
    for (int64_t i = 0; i < expected->row_count; i++) {
        const fa_row_errors *row = &j.rows[i];
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
        reference_squares += row->reference_squares;
        j.unused += row->unused;
    }
    const double elements = (double)(expected->row_count - j.unused) * (double)dim;
    v->rmse = sqrt(squares / elements);
    v->baseline_rmse = sqrt(base_squares / elements);
    j.ulp_rms = sqrt(ulp_squares / elements);
    j.reference_rms = sqrt(reference_squares / elements);
    set_worst(&j, problem, j.worst_index, j.rows[j.worst_index].col);
    return j;
}

static double measure_of(const fa_row_errors *row, measure_by by)
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
        const fa_row_errors *row = &j->rows[i];
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
    const double got = (double)fa_element_to_float(fa_problem_dtype_o(problem), output[flat * dim + at->col]);
    if (expected)
        snprintf(want, sizeof want, "expected %.6g", fa_expected_value(&j->expected, j->worst_index * dim + at->col));
    snprintf(text + used, size - used, "; worst at batch %d head %d row %d col %d: %.6g, %s; %lld mismatches",
             at->batch, at->head, at->row, at->col, isnan(got) ? NAN : got, want, (long long)j->verdict.mismatches);
}

static fa_place first_nonfinite(const fa_problem *problem, const uint16_t *output)
{
    const int32_t dim = fa_problem_dim_v(problem);
    int64_t i = 0;
    while (fa_element_is_finite(fa_problem_dtype_o(problem), output[i]) || !fa_problem_row(problem, i / dim).used)
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

/* 1 where all weights are few, towards 0 where they are many. */
static double fewness(const fa_problem *problem, const fa_verdict *v)
{
    return fmin(sqrt(FEW_WEIGHTS / ((double)v->rows_checked * problem->seq_kv)), 1.0);
}

/* With FP8 many roundings of P add up to the error of a right kernel, and few of its kind are twice as wrong: 1.35
 * times the baseline's, about 3.5 % of O where V has no mean, or half a unit of BF16, 0.3 % where V has a mean of 1
 * (docs/correctness.md). */
static double rmse_limit_of(const fa_problem *problem, const judgement *j)
{
    const fa_verdict *v = &j->verdict;
    const double floor = floor_of(v->baseline_rmse, j->ulp_rms);
    if (problem->dtype != FA_DTYPE_E4M3)
        return fmax(2.0 * v->baseline_rmse, floor);
    if (v->rows_checked >= FP8_ROWS)
        return fmax(1.35 * v->baseline_rmse, 0.5 * j->ulp_rms);
    return fmax(fmax(2.0 * v->baseline_rmse, OF_ONE_WEIGHT * j->reference_rms * fewness(problem, v)), floor);
}

/* Rule 3; marks and describes the rows that break it. Where only the mean is off, the rows above the allowed mean are
 * marked. */
static bool relative_rules(judgement *j, const fa_problem *problem, uint8_t *bad)
{
    const double slack = SLACK * fa_dtype_coarseness(fa_problem_dtype_o(problem)) * j->unit;
    const char *type = fa_dtype_name(problem->dtype);
    fa_verdict *v = &j->verdict;
    const double max_limit = 2.0 * v->baseline_max_abs_err + slack;
    const double rmse_limit = rmse_limit_of(problem, j);
    const double row_limit = 3.0 * v->baseline_worst_row_rel_l2;
    const bool rmse_ok = v->rmse <= rmse_limit;
    /* FP8: where few keys have all of a row's weight, it is off as one weight may be; more where values cancel. */
    const double one_weight = problem->dtype == FA_DTYPE_E4M3 ? OF_ONE_WEIGHT * (1.0 + fewness(problem, v)) : 0.0;
    bool max_ok = true, row_ok = true;
    double max_over = 0.0;
    for (int64_t i = 0; i < v->rows_checked; i++) {
        const fa_row_errors *row = &j->rows[i];
        const double error = relative(row->squares, row->reference_squares);
        const double row_floor =
            floor_of(v->baseline_worst_row_rel_l2, relative(row->ulp_squares, row->reference_squares));
        const bool row_max_ok = row->over_floor <= fmax(max_limit, one_weight * row->largest);
        const bool row_l2_ok = error <= fmax(fmax(row_limit, one_weight), row_floor) && error < INFINITY;
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

static bool breaks_fixed_rule(const fa_verdict *v, const fa_row_errors *row)
{
    return row->mismatches != 0 && !(v->baseline_fails && row->unsettled);
}

/* Rules 1 and 2: finite, and within atol + rtol |R|; where the baseline is not, only its settled rows must be.
 * Overwrites `bad` when one is broken; the others of such a baseline stay marked. */
static bool fixed_rules(judgement *j, double atol, double rtol, uint8_t *bad)
{
    fa_verdict *v = &j->verdict;
    const bool finite = v->nonfinite == 0;
    bool marked = false, within = true;
    double largest = 0.0; /* of the marked rows */
    for (int64_t i = 0; i < v->rows_checked; i++) {
        const fa_row_errors *row = &j->rows[i];
        const bool far = breaks_fixed_rule(v, row);
        within &= !far;
        if (far || (v->baseline_fails && bad[i]))
            largest = fmax(largest, row->outside);
        marked |= row->nonfinite != 0;
    }
    if (finite && within)
        return true;
    for (int64_t i = 0; i < v->rows_checked; i++)
        bad[i] =
            finite ? breaks_fixed_rule(v, &j->rows[i]) || (v->baseline_fails && bad[i]) : j->rows[i].nonfinite != 0;
    j->by = finite ? BY_OUTSIDE : BY_ERROR;
    if (!finite)
        snprintf(v->failure, sizeof v->failure, "%lld outputs are not finite%s", (long long)v->nonfinite,
                 marked ? "" : " (all of them in rows that were not sampled)");
    else
        snprintf(v->failure, sizeof v->failure, "|O-R| > %.3g + %.3g |R|: largest error %.4g", atol, rtol, largest);
    return false;
}

static void copy_baseline(const fa_verdict *from, fa_verdict *to)
{
    to->baseline_max_abs_err = from->baseline_max_abs_err;
    to->baseline_rmse = from->baseline_rmse;
    to->baseline_worst_row_rel_l2 = from->baseline_worst_row_rel_l2;
    to->baseline_fails = from->baseline_fails;
}

static void mark(const judgement *j, const uint8_t *bad, double *suspects)
{
    for (int64_t i = 0; suspects != NULL && i < j->verdict.rows_checked; i++)
        suspects[i] = bad[i] ? fmax(j->rows[i].max, DBL_MIN) : suspects[i];
}

static fa_verdict conclude(judgement *j, const fa_problem *problem, const uint16_t *output, int32_t tile_m, double atol,
                           double rtol, double *suspects)
{
    uint8_t *bad = fa_alloc((size_t)j->verdict.rows_checked);
    const bool relative_ok = relative_rules(j, problem, bad);
    mark(j, bad, suspects);
    const bool fixed_ok = fixed_rules(j, atol, rtol, bad);
    j->verdict.passed = relative_ok && fixed_ok;
    if (!j->verdict.passed) {
        mark(j, bad, suspects);
        explain(j, problem, output, tile_m, bad);
    }
    free(bad);
    free(j->rows);
    j->verdict.rows_checked -= j->unused;
    return j->verdict;
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
    snprintf(j.verdict.name, sizeof j.verdict.name, "cpu");
    return conclude(&j, problem, output, tile_m, atol, rtol, NULL);
}

fa_verdict fa_judge_plain(const fa_problem *problem, const double *every, const fa_reference *cpu,
                          const uint16_t *output, int32_t tile_m, double atol, double rtol, const fa_verdict *exact,
                          double *suspects)
{
    const fa_expected expected = {
        .row_count = fa_problem_rows(problem), .exact = every, .tensors = cpu->tensors, .tile_n = cpu->tile_n};
    atol *= cpu->unit;
    judgement j = measure(problem, &expected, NULL, output, atol, rtol);
    j.unit = cpu->unit;
    copy_baseline(exact, &j.verdict);
    snprintf(j.verdict.name, sizeof j.verdict.name, "plain");
    memset(suspects, 0, (size_t)expected.row_count * sizeof *suspects);
    for (int64_t i = 0; i < expected.row_count; i++)
        j.rows[i].unsettled =
            true; /* nobody knows: where the baseline breaks rule 2 in any row, rule 3 alone decides */
    return conclude(&j, problem, output, tile_m, atol, rtol, suspects);
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
    const double limit = fmax(4.0 * exact->baseline_rmse, FA_FLOOR_ULPS * j.ulp_rms);
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
    copy_baseline(exact, v);
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
