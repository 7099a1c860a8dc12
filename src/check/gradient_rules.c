#include "check/gradient_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/gradient_mistakes.h"

/* Of the type's largest number: what is computed a little larger becomes an infinity. */
#define NEARLY 0.99

/* D is one sum for all keys of a row: where few rows see a key, whether it is rounded far or hardly decides over all
 * errors together. Parts of their noise, which is 2.4 times what they are on average. Of an element twice as much,
 * and at least twice the noise: all of a row's error may be in one column, and D's is not in the baseline. */
#define OF_MANY_ROWS 0.4
#define OF_ONE_ROW 1.6

/* Of one row: sums of squares, the largest errors, and rightly infinite elements; then what the limits make of it. */
typedef struct row_errors {
    double squares, errors, base, max, base_max;
    int64_t infinite, mismatches;
    double over;       /* the error of the row over what is allowed */
    double worst_over; /* the same of its worst element */
    int32_t worst;     /* which that is */
    bool used;
} row_errors;

/* Errors of one tensor, and the limits that they are held to. */
typedef struct judgement {
    const fa_problem *problem;
    int32_t tensor;
    const fa_gradient *expected;
    const uint16_t *output, *elements;     /* elements: of this tensor */
    double largest;                        /* finite number of the type */
    double of_rms, relative, of_row, most; /* |error| <= max(of_rms + relative |x|, most), */
    double of_noise;                       /* or twice this part of a row's noise, or twice that */
    double worst_over;
    int64_t worst; /* the index of its row */
    double worst_row_over;
    int64_t worst_row;
    row_errors *rows;
    uint8_t *bad; /* a flag for each row */
    fa_gradient_verdict v;
} judgement;

static judgement judgement_of(const fa_problem *problem, int32_t tensor, const uint16_t *output)
{
    return (judgement){.problem = problem,
                       .tensor = tensor,
                       .output = output,
                       .elements = output + fa_gradient_offset(problem, tensor),
                       .largest = (double)fa_element_largest(problem->dtype)};
}

static int64_t row_at(const judgement *j, int64_t i) { return j->expected->rows != NULL ? j->expected->rows[i] : i; }

static bool is_used(const judgement *j, int64_t i)
{
    return j->problem->lengths == NULL || j->expected->rows != NULL || fa_gradient_row(j->problem, j->tensor, i).used;
}

static double value_at(const judgement *j, int64_t at)
{
    return j->tensor == FA_GRAD_DSINKS ? fa_gradient_value(j->problem, j->tensor, j->output, (size_t)at)
                                       : (double)fa_element_to_float(j->problem->dtype, j->elements[at]);
}

/* An infinity is right where the type has no such number. */
static double error_of(const judgement *j, double got, double want)
{
    if (j->tensor != FA_GRAD_DSINKS && fabs(want) > NEARLY * j->largest && fabs(got) >= j->largest && want * got > 0.0)
        return 0.0;
    return isfinite(got) ? fabs(got - want) : INFINITY;
}

int64_t fa_gradient_nonfinite(const fa_problem *problem, int32_t tensor, const uint16_t *output, double *of_row)
{
    const judgement j = judgement_of(problem, tensor, output);
    const int64_t rows = fa_gradient_rows(problem, tensor), columns = fa_gradient_columns(problem, tensor);
    int64_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count) if (rows * columns > 1 << 16)
    for (int64_t row = 0; row < rows; row++) {
        int64_t in_row = 0;
        for (int64_t d = 0, of = fa_gradient_row(problem, tensor, row).used ? columns : 0; d < of; d++)
            in_row += !isfinite(value_at(&j, row * columns + d));
        count += in_row;
        if (of_row != NULL)
            of_row[row] = (double)in_row;
    }
    return count;
}

static double baseline_error(const judgement *j, int64_t at)
{
    const fa_gradient *e = j->expected;
    return e->baseline != NULL ? fabs((double)e->baseline[at] - e->exact[at]) : 0.0;
}

static row_errors errors_of_row(const judgement *j, int64_t i)
{
    const fa_gradient *e = j->expected;
    row_errors row = {.used = is_used(j, i)};
    for (int32_t d = 0; row.used && d < e->columns; d++) {
        const int64_t at = i * e->columns + d;
        const double got = value_at(j, row_at(j, i) * e->columns + d), want = e->exact[at];
        const double error = error_of(j, got, want), own = baseline_error(j, at);
        row.squares += want * want;
        row.errors += error * error;
        row.base += own * own;
        row.max = error > row.max ? error : row.max;
        row.base_max = own > row.base_max ? own : row.base_max;
        row.infinite += error == 0.0 && !isfinite(got);
    }
    return row;
}

/* Root mean squares and largest errors, of the output and of the baseline. */
static void measure(judgement *j)
{
    const fa_gradient *e = j->expected;
    double squares = 0.0, errors = 0.0, base = 0.0;
    int64_t infinite = 0;
    fa_gradient_verdict *v = &j->v;
#pragma omp parallel for schedule(static) if (e->row_count * e->columns > 1 << 16)
    for (int64_t i = 0; i < e->row_count; i++)
        j->rows[i] = errors_of_row(j, i);
    for (int64_t i = 0; i < e->row_count; i++) {
        const row_errors *row = &j->rows[i];
        v->rows_checked += row->used;
        squares += row->squares;
        errors += row->errors;
        base += row->base;
        infinite += row->infinite;
        v->max_abs_err = row->max > v->max_abs_err ? row->max : v->max_abs_err;
        v->baseline_max_abs_err = row->base_max > v->baseline_max_abs_err ? row->base_max : v->baseline_max_abs_err;
    }
    const int64_t count = v->rows_checked * e->columns;
    const double elements = count > 0 ? (double)count : 1.0;
    v->rms = sqrt(squares / elements);
    v->rmse = sqrt(errors / elements);
    v->baseline_rmse = sqrt(base / elements);
    v->nonfinite = fa_gradient_nonfinite(j->problem, j->tensor, j->output, NULL) - infinite;
}

static void set_limits(judgement *j)
{
    const fa_gradient *e = j->expected;
    fa_gradient_verdict *v = &j->v;
    const double coarse = fa_dtype_coarseness(j->problem->dtype);
    const double rmse = (coarse > 1.0 ? 5e-3 : FA_GRADIENT_RMSE) * v->rms;
    j->of_rms = FA_GRADIENT_OF_RMS * coarse * v->rms;
    j->relative = FA_GRADIENT_RELATIVE * coarse;
    j->of_row = FA_GRADIENT_ROW * coarse;
    v->baseline_fails |= v->baseline_rmse > rmse;
    for (int64_t at = 0; e->baseline != NULL && at < e->row_count * e->columns; at++)
        v->baseline_fails |=
            baseline_error(j, at) > j->of_rms + e->slack[at / e->columns] + j->relative * fabs(e->exact[at]);
    double noise_squares = 0.0, most_noise = 0.0, slack = 0.0;
    for (int64_t i = 0; i < e->row_count; i++) {
        if (!is_used(j, i))
            continue;
        noise_squares += e->noise[i] * e->noise[i];
        most_noise = fmax(most_noise, e->noise[i]);
        slack += e->slack[i] * e->slack[i];
    }
    const double noise = sqrt(noise_squares / fmax((double)(v->rows_checked * e->columns), 1.0));
    slack = sqrt(slack / fmax((double)v->rows_checked, 1.0));
    const double sums = (double)fmin(fa_problem_rows(j->problem), fa_problem_pairs(j->problem));
    j->of_noise = OF_MANY_ROWS + OF_ONE_ROW / sqrt(fmax(sums, 1.0));
    const double few = noise * j->of_noise;
    v->rmse_limit = fmax(v->baseline_fails ? 2.0 * fmax(v->baseline_rmse, noise) : few, rmse) + 0.25 * slack;
    j->most = v->baseline_fails ? 2.0 * fmax(v->baseline_max_abs_err, most_noise) : 0.0;
}

/* Marks a row that breaks a rule, and its worst element. Where all errors together are too large, rows with more than
 * their part are marked; what is not finite accuses its own row alone. */
static void judge_row(const judgement *j, int64_t i)
{
    const fa_gradient *e = j->expected;
    row_errors *row = &j->rows[i];
    for (int32_t d = 0; d < e->columns; d++) {
        const double want = e->exact[i * e->columns + d];
        const double error = error_of(j, value_at(j, row_at(j, i) * e->columns + d), want);
        const double most = fmax(j->most, 2.0 * fmax(j->of_noise, 1.0) * e->noise[i]);
        const double limit = fmax(j->of_rms + j->relative * fabs(want), most) + e->slack[i], over = error / limit;
        row->mismatches += !(error <= limit);
        if (!(over <= row->worst_over)) {
            row->worst = d;
            row->worst_over = isfinite(over) ? over : INFINITY;
        }
    }
    const double slack = e->slack[i] * sqrt(e->columns), length = sqrt(row->errors), whole = sqrt(row->squares);
    row->over = length / (j->of_row * whole + FA_GRADIENT_NOISE * e->noise[i] + slack);
    j->bad[i] = row->mismatches > 0 || !(row->over <= 1.0) ||
                (j->v.rmse > j->v.rmse_limit && j->v.nonfinite == 0 && length > j->v.rmse_limit * sqrt(e->columns));
}

/* Judges all rows, and keeps the worst element and the worst row. */
static int64_t judge_rows(judgement *j)
{
    const fa_gradient *e = j->expected;
    int64_t wrong_rows = 0;
#pragma omp parallel for schedule(static) if (e->row_count * e->columns > 1 << 16)
    for (int64_t i = 0; i < e->row_count; i++)
        if (j->rows[i].used)
            judge_row(j, i);
    for (int64_t i = 0; i < e->row_count; i++) {
        const row_errors *row = &j->rows[i];
        wrong_rows += j->bad[i];
        j->v.mismatches += row->mismatches;
        if (row->squares > 0.0)
            j->v.worst_row_rel_l2 = fmax(j->v.worst_row_rel_l2, sqrt(row->errors) / sqrt(row->squares));
        if (!(row->worst_over <= j->worst_over)) {
            const fa_row at = fa_gradient_row(j->problem, j->tensor, row_at(j, i));
            const int32_t head = j->tensor == FA_GRAD_DSINKS ? row->worst : at.head;
            j->worst = i;
            j->worst_over = row->worst_over;
            j->v.worst = (fa_place){.batch = at.batch, .head = head, .row = at.row, .col = row->worst};
        }
        if (!(row->over <= j->worst_row_over)) {
            j->worst_row_over = row->over;
            j->worst_row = i;
        }
    }
    return wrong_rows;
}

static void explain(judgement *j, int64_t wrong_rows)
{
    fa_gradient_verdict *v = &j->v;
    const bool keys = j->tensor == FA_GRAD_DK || j->tensor == FA_GRAD_DV, rmse_ok = v->rmse <= v->rmse_limit;
    char *text = v->failure;
    if (v->nonfinite > 0)
        snprintf(text, sizeof v->failure, "%s: %lld elements are not finite", v->tensor, (long long)v->nonfinite);
    else if (v->mismatches > 0)
        snprintf(text, sizeof v->failure, "%s: |error| > %.3g + %.3g |x| in %lld elements", v->tensor,
                 fmax(j->of_rms, j->most), j->relative, (long long)v->mismatches);
    else if (!rmse_ok)
        snprintf(text, sizeof v->failure, "%s: rmse %.4g > %.4g (root mean square %.4g)", v->tensor, v->rmse,
                 v->rmse_limit, v->rms);
    else
        snprintf(text, sizeof v->failure, "%s: the error of a row is %.3g times as long as rounding explains",
                 v->tensor, j->worst_row_over);
    const size_t used = strlen(text);
    const int64_t columns = j->expected->columns;
    const bool by_row = v->nonfinite == 0 && v->mismatches == 0 && rmse_ok;
    const int64_t at = by_row ? j->worst_row : j->worst;
    const fa_row place = fa_gradient_row(j->problem, j->tensor, row_at(j, at));
    if (by_row)
        v->worst = (fa_place){.batch = place.batch, .head = place.head, .row = place.row, .col = v->worst.col};
    snprintf(text + used, sizeof v->failure - used,
             "; worst at batch %d %s %d %s %d col %d: %.6g, expected %.6g; wrong rows: %lld of %lld", v->worst.batch,
             keys ? "K/V head" : "head", v->worst.head, keys ? "key" : "row", v->worst.row, v->worst.col,
             fa_gradient_value(j->problem, j->tensor, j->output, (size_t)(row_at(j, at) * columns + v->worst.col)),
             j->expected->exact[at * columns + v->worst.col], (long long)wrong_rows, (long long)v->rows_checked);
}

/* All rules. sample: whose baseline counts; NULL: that of `expected`. */
static judgement conclude(const fa_problem *problem, int32_t tensor, const fa_gradient *expected,
                          const uint16_t *output, const fa_gradient_verdict *sample, int64_t *wrong_rows)
{
    judgement j = judgement_of(problem, tensor, output);
    j.expected = expected;
    j.rows = fa_alloc(((size_t)expected->row_count + 1) * sizeof *j.rows);
    j.bad = fa_alloc((size_t)expected->row_count + 1);
    fa_gradient_verdict *v = &j.v;
    snprintf(v->tensor, sizeof v->tensor, "%s", fa_gradient_name(tensor));
    snprintf(v->reference, sizeof v->reference, "%s", sample != NULL ? "plain" : "cpu");
    measure(&j);
    if (sample != NULL) {
        v->baseline_rmse = sample->baseline_rmse;
        v->baseline_max_abs_err = sample->baseline_max_abs_err;
        v->baseline_fails = sample->baseline_fails;
    }
    set_limits(&j);
    *wrong_rows = judge_rows(&j);
    v->passed = *wrong_rows == 0 && v->rmse <= v->rmse_limit && v->nonfinite == 0;
    if (!v->passed)
        explain(&j, *wrong_rows);
    return j;
}

fa_gradient_verdict fa_judge_gradient(const fa_problem *problem, int32_t tensor, const fa_gradient *expected,
                                      const uint16_t *output, const fa_tensors *tensors, const double *forward)
{
    int64_t wrong_rows;
    judgement j = conclude(problem, tensor, expected, output, NULL, &wrong_rows);
    if (!j.v.passed && tensors != NULL)
        fa_gradient_diagnose(problem, tensor, expected, j.bad, output, tensors, forward, j.v.failure,
                             sizeof j.v.failure);
    free(j.bad);
    free(j.rows);
    return j.v;
}

fa_gradient_verdict fa_judge_every_gradient(const fa_problem *problem, int32_t tensor, const fa_gradient *every,
                                            const uint16_t *output, const fa_gradient_verdict *sample, double *suspects)
{
    int64_t wrong_rows;
    judgement j = conclude(problem, tensor, every, output, sample, &wrong_rows);
    for (int64_t i = 0; i < every->row_count; i++)
        suspects[i] = j.bad[i] ? fmax(j.rows[i].over, 1e-300) : 0.0;
    free(j.bad);
    free(j.rows);
    return j.v;
}

void fa_gradient_verdict_merge(fa_gradient_verdict *into, const fa_gradient_verdict *next)
{
    if (into->tensor[0] == '\0') {
        *into = *next;
        return;
    }
    const bool next_is_worse = into->passed != next->passed ? !next->passed : !(next->max_abs_err <= into->max_abs_err);
    fa_gradient_verdict merged = next_is_worse ? *next : *into;
    merged.rows_checked = into->rows_checked + next->rows_checked;
    merged.mismatches = into->mismatches + next->mismatches;
    merged.nonfinite = into->nonfinite + next->nonfinite;
    merged.baseline_fails = into->baseline_fails || next->baseline_fails;
    merged.repeats_max_abs = fmax(into->repeats_max_abs, next->repeats_max_abs);
    *into = merged;
}

double fa_gradient_apart(const fa_problem *problem, int32_t tensor, const uint16_t *first, const uint16_t *again)
{
    const judgement a = judgement_of(problem, tensor, first), b = judgement_of(problem, tensor, again);
    const int64_t count = fa_gradient_rows(problem, tensor) * fa_gradient_columns(problem, tensor);
    double most = 0.0;
#pragma omp parallel for schedule(static) reduction(max : most) if (count > 1 << 16)
    for (int64_t i = 0; i < count; i++) {
        if (tensor != FA_GRAD_DSINKS && a.elements[i] == b.elements[i])
            continue; /* most are equal */
        const double apart = fabs(value_at(&a, i) - value_at(&b, i));
        most = apart > most ? apart : most; /* poison between sequences is NaN */
    }
    return most;
}
