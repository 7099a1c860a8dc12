#include "check/gradient_mistakes.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"

enum {
    LOOKED_AT = 8, /* wrong rows that are computed again, spread over all wrong rows */
    NAMED = 6,     /* heads that are named before "..." */
    HEADS = 16,    /* of a group that may be lost */
    MANY_HEADS = 128,
};
/* Of the squares of a row's error, where a mistake explains it; and of the row as the mistake makes it: a row of small
 * numbers is near every other. */
#define LEFT (1.0 / 16.0)
#define APART (1.0 / 4096.0)

typedef struct scene {
    const fa_problem *problem;
    int32_t tensor, columns;
    const fa_gradient *expected;
    const uint8_t *bad;
    const fa_tensors *tensors;
    const double *forward;
    int32_t count;
    int64_t looked[LOOKED_AT], rows[LOOKED_AT]; /* indices into `expected`; stored rows */
    double *got, *made;                         /* [count, columns] */
    bool poison, zeros, nonfinite;              /* all of them */
} scene;

static void look(scene *s, const uint16_t *output)
{
    int64_t wrong = 0, seen = 0;
    for (int64_t i = 0; i < s->expected->row_count; i++)
        wrong += s->bad[i];
    for (int64_t i = 0; i < s->expected->row_count && s->count < LOOKED_AT; i++) {
        if (!s->bad[i])
            continue;
        if (seen++ * LOOKED_AT < s->count * wrong)
            continue;
        s->looked[s->count] = i;
        s->rows[s->count++] = s->expected->rows[i];
    }
    s->got = fa_alloc(((size_t)s->count * (size_t)s->columns + 1) * sizeof *s->got);
    s->made = fa_alloc(((size_t)s->count * (size_t)s->columns + 1) * sizeof *s->made);
    s->poison = s->zeros = s->nonfinite = s->count > 0;
    const uint16_t *elements = output + fa_gradient_offset(s->problem, s->tensor);
    const int64_t halves = s->tensor == FA_GRAD_DSINKS ? 2 : 1;
    for (int64_t at = 0; at < (int64_t)s->count * s->columns; at++) {
        const int64_t element = s->rows[at / s->columns] * s->columns + at % s->columns;
        s->got[at] = fa_gradient_value(s->problem, s->tensor, output, (size_t)element);
        s->poison &= elements[halves * element] == FA_POISON;
        s->zeros &= s->got[at] == 0.0;
        s->nonfinite &= !isfinite(s->got[at]);
    }
}

static double square(double x) { return x * x; }

static const double *expected_row(const scene *s, int32_t n) { return s->expected->exact + s->looked[n] * s->columns; }

/* Whether `made` is what most of the rows are. */
static bool explains(const scene *s)
{
    int32_t explained = 0;
    for (int32_t n = 0; n < s->count; n++) {
        double left = 0.0, error = 0.0, size = 0.0;
        for (int32_t d = 0; d < s->columns; d++) {
            left += square(s->got[n * s->columns + d] - s->made[n * s->columns + d]);
            error += square(s->got[n * s->columns + d] - expected_row(s, n)[d]);
            size += square(s->made[n * s->columns + d]);
        }
        explained += left <= LEFT * error && left <= APART * size;
    }
    return 2 * explained > s->count;
}

static bool is_slip(const scene *s, const fa_slip *slip)
{
    fa_gradients_slip(s->problem, s->tensors, s->forward, slip, s->tensor, s->rows, s->count, s->made);
    return explains(s);
}

static bool is_factor(const scene *s, double factor)
{
    for (int32_t n = 0; n < s->count; n++)
        for (int32_t d = 0; d < s->columns; d++)
            s->made[n * s->columns + d] = factor * expected_row(s, n)[d];
    return explains(s);
}

static bool guess_factor(const scene *s, char *text, size_t size)
{
    const double scale = (double)s->problem->scale, log2_e = 1.0 / log(2.0);
    const struct {
        double factor;
        const char *text;
    } factors[] = {{1.0 / scale, "the scale is missing"},
                   {scale, "the scale multiplies twice"},
                   {-1.0, "the sign is wrong"},
                   {log2_e, "it is in units of log2 e: times 1.4427"},
                   {1.0 / log2_e, "it is in units of log2 e: times 0.6931"}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (fabs(factors[i].factor - 1.0) > 1e-3 && is_factor(s, factors[i].factor)) {
            fa_append_text(text, size, "%s", factors[i].text);
            return true;
        }
    return false;
}

/* By the products with the expected rows: one factor for all of them. */
static bool guess_any_factor(const scene *s, char *text, size_t size)
{
    double with = 0.0, own = 0.0;
    for (int32_t n = 0; n < s->count; n++)
        for (int32_t d = 0; d < s->columns; d++) {
            with += s->got[n * s->columns + d] * expected_row(s, n)[d];
            own += square(expected_row(s, n)[d]);
        }
    if (!(own > 0.0) || !is_factor(s, with / own))
        return false;
    fa_append_text(text, size, "every wrong row is the right one times %.4g", with / own);
    return true;
}

/* The right columns in the places of others. */
static bool guess_turn(const scene *s, char *text, size_t size)
{
    for (int32_t by = 1; by <= 32 && by < s->columns && s->tensor != FA_GRAD_DSINKS; by *= 2) {
        for (int32_t n = 0; n < s->count; n++)
            for (int32_t d = 0; d < s->columns; d++)
                s->made[n * s->columns + d] = (d ^ by) < s->columns ? expected_row(s, n)[d ^ by] : 0.0;
        if (explains(s)) {
            fa_append_text(text, size, "columns change places: is a fragment or swizzle off?");
            return true;
        }
    }
    return false;
}

/* The place of x[d] among them, by size. */
static int32_t rank_of(const double *x, int32_t count, int32_t d)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < count; i++)
        rank += x[i] < x[d] || (x[i] == x[d] && i < d);
    return rank;
}

/* The right dsinks, in the places of others. */
static bool guess_other_heads(const scene *s, char *text, size_t size)
{
    const int32_t heads = s->columns;
    const double *expected = expected_row(s, 0);
    if (s->tensor != FA_GRAD_DSINKS || heads > MANY_HEADS)
        return false;
    for (int32_t d = 0; d < heads; d++)
        for (int32_t i = 0, rank = rank_of(s->got, heads, d); i < heads; i++)
            s->made[d] = rank_of(expected, heads, i) == rank ? expected[i] : s->made[d];
    if (!explains(s))
        return false;
    fa_append_text(text, size, "each head has that of another");
    return true;
}

/* The right rows, in the places of another head. */
static bool guess_rows_of_heads(const scene *s, char *text, size_t size)
{
    const fa_problem *p = s->problem;
    const bool keys = s->tensor != FA_GRAD_DQ;
    const int32_t heads = keys ? p->kv_heads : p->heads;
    for (int32_t way = 0; s->tensor != FA_GRAD_DSINKS && way < 3; way++) {
        int64_t rows[LOOKED_AT];
        for (int32_t n = 0; n < s->count; n++) {
            const fa_row at = fa_gradient_row(p, s->tensor, s->rows[n]);
            const int32_t others[] = {(at.head + 1) % heads, (at.head + heads - 1) % heads, heads - 1 - at.head};
            rows[n] = keys ? fa_problem_key_row(p, at.batch, others[way], at.row)
                           : fa_problem_flat(p, at.batch, others[way], at.row);
        }
        fa_gradients_slip(p, s->tensors, s->forward, &(fa_slip){.lost = 0}, s->tensor, rows, s->count, s->made);
        if (explains(s)) {
            fa_append_text(text, size, "each head has that of another");
            return true;
        }
    }
    return false;
}

static bool is_other_tensor(const scene *s)
{
    const bool dk = s->tensor == FA_GRAD_DK, keys = dk || s->tensor == FA_GRAD_DV;
    if (!keys || fa_problem_dim_v(s->problem) != s->problem->dim)
        return false;
    fa_gradients_slip(s->problem, s->tensors, s->forward, &(fa_slip){.lost = 0}, dk ? FA_GRAD_DV : FA_GRAD_DK, s->rows,
                      s->count, s->made);
    return explains(s);
}

static bool guess_slip(const scene *s, char *text, size_t size)
{
    const fa_problem *p = s->problem;
    const bool masked = p->causal || p->windowed || p->chunk > 0, dv = s->tensor == FA_GRAD_DV;
    const struct {
        bool possible;
        fa_slip slip;
        const char *text;
    } slips[] = {
        {!dv, {.delta_more = -1.0}, "delta is missing: dS = P dP"},
        {!dv, {.delta_more = -2.0}, "delta is added: dS = P (dP + delta)"},
        {p->kv_heads < p->heads, {.modulo = true}, "the K/V head is h % kv_heads, not h / (heads / kv_heads)"},
        {!dv, {.delta_of_dout = true}, "delta is the sum of dO dO: dO is taken for O"},
        {p->softcap > 0 && !dv, {.no_slope = true}, "the softcap's derivative is missing"},
        {p->alibi, {.no_alibi = true}, "ALiBi is missing"},
        {masked, {.no_mask = true}, "the mask is missing"},
        {masked, {.top_left = true}, "the mask is aligned top-left, not bottom-right"},
        {masked, {.later = 1}, "the last key that a row sees is one too late"},
        {masked, {.later = -1}, "the last key that a row sees is one too early"},
        {p->windowed, {.sooner = 1}, "the window shows one key too many on the left"},
        {p->windowed, {.sooner = -1}, "the window shows one key too few on the left"},
        {p->sinks, {.sink_more = -1.0}, "log-sum-exps are taken without the sink"},
        {p->sinks, {.sink_more = 1.0}, "the sink is added to log-sum-exps that have it"},
        {true, {.weights_swapped = true}, "P stands for dS, or dS for P"},
        {p->dim == fa_problem_dim_v(p),
         {.rows_swapped = true},
         "another tensor's rows are summed: V for dQ, dO for dK, Q for dV"},
        {true, {.lse_times = 1e-300}, "log-sum-exps are missing"},
        {p->sinks, {.sink_of = FA_OTHER_HEADS}, "the sink is clamped at 0"},
        {p->sinks, {.sink_of = FA_OTHER_HEADS + 1}, "the sink is clamped at 0"},
        {true, {.lse_times = log(2)}, "log-sum-exps are taken for logarithms to base 2"},
        {true, {.lse_times = 1.0 / log(2)}, "log-sum-exps are in units of log2 e, scores are not"},
    };
    const int32_t ways = p->kv_heads < p->heads ? FA_OTHER_HEADS : FA_GROUPED_HEADS;
    const char *found = is_other_tensor(s) ? "dK and dV have changed places" : NULL;
    for (size_t i = 0; found == NULL && i < sizeof slips / sizeof *slips; i++)
        found = slips[i].possible && is_slip(s, &slips[i].slip) ? slips[i].text : NULL;
    for (int32_t way = 1; found == NULL && way < ways; way++)
        found = !dv && is_slip(s, &(fa_slip){.delta_of = way})       ? "delta is that of another head"
                : is_slip(s, &(fa_slip){.lse_of = way})              ? "log-sum-exps are those of another head"
                : p->sinks && is_slip(s, &(fa_slip){.sink_of = way}) ? "the sink is that of another head"
                                                                     : NULL;
    for (int32_t way = FA_OTHER_HEADS; found == NULL && way < FA_OTHER_ROWS; way++)
        found = !dv && is_slip(s, &(fa_slip){.delta_of = way}) ? "delta is that of another row or batch"
                : is_slip(s, &(fa_slip){.lse_of = way})        ? "log-sum-exps are those of another row or batch"
                                                               : NULL;
    for (int32_t way = 1; found == NULL && s->tensor == FA_GRAD_DQ && way < 16; way++) {
        const int32_t by = way < 8 ? 1 : p->kv_heads - 1;
        const fa_slip slip = {.k_by = way % 2 * by, .v_by = way / 2 % 2 * by, .dq_by = way / 4 % 2 * by};
        found = is_slip(s, &slip) ? "K or V is that of the next K/V head, or of the one before" : NULL;
    }
    fa_append_text(text, size, "%s", found != NULL ? found : "");
    return found != NULL;
}

/* dK and dV are sums over the query heads of a group. */
static bool guess_heads(const scene *s, char *text, size_t size)
{
    const int32_t group = s->problem->heads / s->problem->kv_heads;
    if (s->tensor != FA_GRAD_DK && s->tensor != FA_GRAD_DV)
        return false;
    for (int32_t head = 1; group > 1 && head <= group && head <= HEADS; head++)
        for (int32_t only = 0; only < 2; only++) {
            const fa_slip slip = {.lost = only ? 0 : head, .only = only ? head : 0};
            if (!is_slip(s, &slip))
                continue;
            fa_append_text(text, size,
                           only ? "query head %d of each group alone counts" : "query head %d of each group is lost",
                           head - 1);
            return true;
        }
    return false;
}

/* The heads with wrong rows, and the first and last of these. */
static void describe_place(const scene *s, char *text, size_t size)
{
    const bool keys = s->tensor != FA_GRAD_DQ;
    const int32_t heads = keys ? s->problem->kv_heads : s->problem->heads;
    uint8_t *wrong = fa_alloc((size_t)s->problem->batch * (size_t)heads);
    int32_t first = INT32_MAX, last = -1, named = 0;
    for (int64_t i = 0; i < s->expected->row_count; i++) {
        const fa_row at = fa_gradient_row(s->problem, s->tensor, s->expected->rows[i]);
        if (!s->bad[i])
            continue;
        wrong[(int64_t)at.batch * heads + at.head] = 1;
        first = at.row < first ? at.row : first;
        last = at.row > last ? at.row : last;
    }
    fa_append_text(text, size, ", %s %d to %d, batch.%s", keys ? "keys" : "rows", first, last,
                   keys ? "K/V head" : "head");
    for (int32_t i = 0; i < s->problem->batch * heads; i++)
        if (wrong[i] && named++ < NAMED)
            fa_append_text(text, size, " %d.%d", i / heads, i % heads);
    fa_append_text(text, size, "%s", named > NAMED ? " ..." : "");
    free(wrong);
}

void fa_gradient_diagnose(const fa_problem *problem, int32_t tensor, const fa_gradient *expected, const uint8_t *bad,
                          const uint16_t *output, const fa_tensors *tensors, const double *forward, char *text,
                          size_t size)
{
    scene s = {.problem = problem,
               .tensor = tensor,
               .columns = expected->columns,
               .expected = expected,
               .bad = bad,
               .tensors = tensors,
               .forward = forward};
    look(&s, output);
    if (s.count > 0 && tensor != FA_GRAD_DSINKS)
        describe_place(&s, text, size);
    fa_append_text(text, size, "%s", s.count > 0 ? "; looks like: " : "");
    if (s.poison)
        fa_append_text(text, size, "never written%s", tensor == FA_GRAD_DSINKS ? ", or added to what was there" : "");
    else if (s.nonfinite)
        fa_append_text(text, size, "NaN or infinity throughout the row");
    else if (s.zeros)
        fa_append_text(text, size, "zeros");
    else if (s.count > 0 && !guess_factor(&s, text, size) && !guess_slip(&s, text, size) &&
             !guess_heads(&s, text, size) && !guess_other_heads(&s, text, size) &&
             !guess_rows_of_heads(&s, text, size) && !guess_turn(&s, text, size) && !guess_any_factor(&s, text, size))
        fa_append_text(text, size, "values follow no simple rule");
    free(s.got);
    free(s.made);
}
