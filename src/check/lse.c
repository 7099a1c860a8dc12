#include "check/lse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/hypotheses.h"

static double atol_of(fa_dtype dtype) { return 1e-3 * fa_dtype_coarseness(dtype); }

/* What a row's log-sum-exp may be: a number; without a key -inf, or its sink, which some leave out. */
static bool is_sound(const fa_problem *problem, const fa_row *at, float lse)
{
    if (!at->used)
        return true;
    if (!fa_problem_row_is_empty(problem, at->batch, at->row))
        return (bool)isfinite(lse);
    return lse == -INFINITY || (problem->sinks && isfinite(lse));
}

/* Counts the rows that are not sound; *first is the first of them. */
static int64_t count_nonfinite(const fa_problem *problem, const float *lse, int64_t *first)
{
    const int64_t rows = fa_problem_rows(problem);
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows; i++) {
        const fa_row at = fa_problem_row(problem, i);
        if (is_sound(problem, &at, lse[i]) || wrong++ > 0)
            continue;
        *first = i;
    }
    return wrong;
}

/* The failure message: `row` is the worst one, or the first that is not finite. */
static void explain(const fa_problem *problem, double atol, int64_t row, float got, double want, fa_lse_verdict *v)
{
    v->worst = fa_place_of(problem, row, 0);
    const fa_place *at = &v->worst;
    const bool sees_a_key = !fa_problem_row_is_empty(problem, at->batch, at->row);
    if (v->nonfinite > 0)
        snprintf(v->failure, sizeof v->failure,
                 "log-sum-exp: %lld rows should be finite, or -inf without keys; the first at batch %d head %d row %d: "
                 "%g, expected %s",
                 (long long)v->nonfinite, at->batch, at->head, at->row, isnan(got) ? NAN : (double)got,
                 sees_a_key ? "a finite number" : "-inf, as the row sees no key");
    else
        snprintf(v->failure, sizeof v->failure,
                 "log-sum-exp: |L-R| > %.3g + %.3g |R| in %lld rows; worst at batch %d head %d row %d: %.7g, expected "
                 "%.7g",
                 atol, v->rtol, (long long)v->mismatches, at->batch, at->head, at->row, (double)got, want);
}

static double allowed(const fa_problem *problem, const fa_lse_verdict *v, double atol, double want)
{
    const double large = problem->dtype == FA_DTYPE_E4M3 ? fmax(fabs(want) - FA_LSE_FP8_LARGE, 0.0) : 0.0;
    return atol + v->rtol * fabs(want) + ldexp((double)problem->dim, -14) * large;
}

fa_lse_verdict fa_judge_lse(const fa_problem *problem, const fa_reference *reference, const float *lse, bool acc_fp16)
{
    const bool fp8 = problem->dtype == FA_DTYPE_E4M3;
    fa_lse_verdict v = {.done = true,
                        .rows_checked = reference->row_count,
                        .atol = atol_of(fa_problem_dtype_o(problem)),
                        .rtol = fp8 ? FA_LSE_RTOL_FP8 : FA_LSE_RTOL};
    int64_t first_nonfinite = 0, worst = -1;
    double worst_want = 0, worst_error = 0;
    bool worst_outside = false;
    v.nonfinite = count_nonfinite(problem, lse, &first_nonfinite);
    for (int64_t i = 0; i < reference->row_count; i++)
        if (isfinite(reference->lse[i]))
            v.baseline_max_abs_err = fmax(v.baseline_max_abs_err, fabs(reference->baseline_lse[i] - reference->lse[i]));
    const double atol = fmax(v.atol, acc_fp16 ? 2.0 * v.baseline_max_abs_err : 0.0);
    for (int64_t i = 0; i < reference->row_count; i++) {
        const double want = reference->lse[i], error = fabs((double)lse[reference->rows[i]] - want);
        if (!isfinite(want) || !isfinite(error))
            continue; /* counted above, or a row without keys that leaves its sink out */
        const bool outside = error > allowed(problem, &v, atol, want);
        v.mismatches += outside;
        v.max_abs_err = fmax(v.max_abs_err, error);
        if (worst >= 0 && (outside == worst_outside ? error <= worst_error : worst_outside))
            continue;
        worst_outside = outside;
        worst_error = error;
        worst = reference->rows[i];
        worst_want = want;
    }
    v.passed = v.mismatches == 0 && v.nonfinite == 0;
    if (worst >= 0)
        v.worst = fa_place_of(problem, worst, 0);
    if (v.nonfinite > 0)
        worst = first_nonfinite;
    if (!v.passed)
        explain(problem, atol, worst, lse[worst], worst_want, &v);
    const char *mistake = v.passed ? NULL : fa_suspect_of_lse(problem, reference, lse, atol, v.rtol);
    const size_t used = strlen(v.failure);
    if (mistake != NULL)
        snprintf(v.failure + used, sizeof v.failure - used, "; looks like: %s", mistake);
    return v;
}

void fa_lse_verdict_merge(fa_lse_verdict *into, const fa_lse_verdict *next)
{
    if (!next->done || !into->done) {
        if (next->done)
            *into = *next;
        return;
    }
    const bool next_is_worse = into->passed != next->passed ? !next->passed : next->max_abs_err > into->max_abs_err;
    fa_lse_verdict merged = next_is_worse ? *next : *into;
    merged.rows_checked = into->rows_checked + next->rows_checked;
    merged.mismatches = into->mismatches + next->mismatches;
    merged.nonfinite = into->nonfinite + next->nonfinite;
    *into = merged;
}
