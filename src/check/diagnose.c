#include "check/diagnose.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "check/hypotheses.h"
#include "run/buffers.h"

enum {
    LOOKED_AT = 48, /* wrong rows whose values are examined, spread over all wrong rows */
    NAMED = 6,      /* heads and tiles named before "..." */
};

/* The output under diagnosis, and its wrong rows. */
typedef struct scene {
    const fa_problem *problem;
    const fa_expected *expected;
    const uint8_t *bad;
    const uint16_t *output;
    int32_t tile_m;
    int64_t wrong;             /* rows */
    int64_t looked[LOOKED_AT]; /* indices into `expected` */
    int32_t looked_count;
} scene;

static void look(scene *s)
{
    int64_t seen = 0;
    for (int64_t i = 0; i < s->expected->row_count; i++)
        s->wrong += s->bad[i] != 0;
    for (int64_t i = 0; i < s->expected->row_count && s->looked_count < LOOKED_AT; i++) {
        if (!s->bad[i])
            continue;
        if (seen * LOOKED_AT >= (int64_t)s->looked_count * s->wrong)
            s->looked[s->looked_count++] = i;
        seen++;
    }
}

static const uint16_t *output_row(const scene *s, int64_t i)
{
    return s->output + fa_expected_row(s->expected, i) * fa_problem_dim_v(s->problem);
}

static double expected_at(const scene *s, int64_t i, int32_t d)
{
    return fa_expected_value(s->expected, i * fa_problem_dim_v(s->problem) + d);
}

static double value_of(const scene *s, uint16_t element)
{
    return (double)fa_element_to_float(fa_problem_dtype_o(s->problem), element);
}

static double square(double x) { return x * x; }

/* Which heads and row tiles hold wrong rows; checked[] and wrong[] count rows. */
typedef struct tally {
    int64_t count, full; /* entries with a wrong row; with only wrong rows */
    int64_t named[NAMED];
} tally;

static tally tally_of(const scene *s, int64_t entries, bool by_head)
{
    int64_t *checked = fa_alloc((size_t)entries * sizeof *checked), *wrong = fa_alloc((size_t)entries * sizeof *wrong);
    for (int64_t i = 0; i < s->expected->row_count; i++) {
        const fa_row at = fa_problem_row(s->problem, fa_expected_row(s->expected, i));
        const int64_t entry = by_head ? (int64_t)at.batch * s->problem->heads + at.head : at.row / s->tile_m;
        if (!at.used)
            continue;
        checked[entry]++;
        wrong[entry] += s->bad[i] != 0;
    }
    tally t = {0};
    for (int64_t entry = 0; entry < entries; entry++) {
        if (!wrong[entry])
            continue;
        if (t.count < NAMED)
            t.named[t.count] = entry;
        t.count++;
        t.full += wrong[entry] == checked[entry];
    }
    free(checked);
    free(wrong);
    return t;
}

static void describe_place(const scene *s, const tally *heads, const tally *tiles, int64_t all_heads, int64_t all_tiles,
                           char *text, size_t size)
{
    fa_append_text(text, size, "; wrong rows: %lld of %lld checked, in %lld of %lld heads (batch.head",
                   (long long)s->wrong, (long long)s->expected->row_count, (long long)heads->count,
                   (long long)all_heads);
    for (int64_t i = 0; i < heads->count && i < NAMED; i++)
        fa_append_text(text, size, " %lld.%lld", (long long)(heads->named[i] / s->problem->heads),
                       (long long)(heads->named[i] % s->problem->heads));
    fa_append_text(text, size, "%s), %lld of %lld tiles of %d rows (", heads->count > NAMED ? " ..." : "",
                   (long long)tiles->count, (long long)all_tiles, s->tile_m);
    for (int64_t i = 0; i < tiles->count && i < NAMED; i++)
        fa_append_text(text, size, "%s%lld", i ? " " : "", (long long)tiles->named[i]);
    fa_append_text(text, size, "%s)", tiles->count > NAMED ? " ..." : "");
}

/* Every element of the examined rows satisfies `is`. */
static bool all_elements(const scene *s, bool (*is)(const scene *s, uint16_t element))
{
    for (int32_t n = 0; n < s->looked_count; n++)
        for (int32_t d = 0; d < fa_problem_dim_v(s->problem); d++)
            if (!is(s, output_row(s, s->looked[n])[d]))
                return false;
    return true;
}

static bool is_poison(const scene *s, uint16_t element) { return (void)s, element == FA_POISON; }
static bool is_zero(const scene *s, uint16_t element) { return (void)s, (element & 0x7FFF) == 0; }
static bool is_nonfinite(const scene *s, uint16_t element)
{
    return !fa_element_is_finite(fa_problem_dtype_o(s->problem), element);
}

/* O = factor * R, row by row. */
static bool guess_scaled(const scene *s, char *text, size_t size)
{
    double least = INFINITY, most = -INFINITY;
    for (int32_t n = 0; n < s->looked_count; n++) {
        const uint16_t *row = output_row(s, s->looked[n]);
        double with = 0.0, own = 0.0, error = 0.0, rest = 0.0;
        for (int32_t d = 0; d < fa_problem_dim_v(s->problem); d++) {
            const double r = expected_at(s, s->looked[n], d), o = value_of(s, row[d]);
            with += o * r;
            own += r * r;
            error += square(o - r);
        }
        const double factor = with / own;
        for (int32_t d = 0; d < fa_problem_dim_v(s->problem); d++)
            rest += square(value_of(s, row[d]) - factor * expected_at(s, s->looked[n], d));
        if (!(rest <= 0.04 * error)) /* NaN ends the guess too */
            return false;
        least = fmin(least, factor);
        most = fmax(most, factor);
    }
    if (most - least <= 0.1 * fmax(fabs(least - 1.0), fabs(most - 1.0)))
        fa_append_text(text, size, "every wrong row is the right one times %.4g", 0.5 * (least + most));
    else
        fa_append_text(text, size,
                       "every wrong row is the right one times a factor of its own (%.3g to %.3g): row sum or rescale",
                       least, most);
    return true;
}

/* The wrong rows hold values of other checked rows. */
static bool guess_moved(const scene *s, char *text, size_t size)
{
    const int32_t dim = fa_problem_dim_v(s->problem);
    const int32_t tried = s->looked_count < 4 ? s->looked_count : 4;
    int64_t source[4] = {0};
    for (int32_t n = 0; n < tried; n++) {
        const uint16_t *row = output_row(s, s->looked[n]);
        double error = 0.0, best = INFINITY;
        for (int32_t d = 0; d < dim; d++)
            error += square(value_of(s, row[d]) - expected_at(s, s->looked[n], d));
        for (int64_t i = 0; i < s->expected->row_count; i++) {
            double distance = 0.0;
            for (int32_t d = 0; d < dim && distance < best; d++)
                distance += square(value_of(s, row[d]) - expected_at(s, i, d));
            if (distance < best) {
                best = distance;
                source[n] = i;
            }
        }
        if (!(best <= 0.01 * error) || source[n] == s->looked[n])
            return false;
    }
    const fa_place to = fa_place_of(s->problem, fa_expected_row(s->expected, s->looked[0]), 0);
    const fa_place from = fa_place_of(s->problem, fa_expected_row(s->expected, source[0]), 0);
    fa_append_text(text, size, "%s: batch %d head %d row %d holds what belongs to batch %d head %d row %d",
                   to.row == from.row ? "heads swapped" : "rows moved", to.batch, to.head, to.row, from.batch,
                   from.head, from.row);
    return true;
}

/* Wrong rows of one head are equal, though they should differ. */
static bool guess_alike(const scene *s, char *text, size_t size)
{
    int32_t pairs = 0;
    for (int32_t n = 1; n < s->looked_count; n++) {
        const int64_t i = s->looked[n], before = s->looked[n - 1];
        const fa_place here = fa_place_of(s->problem, fa_expected_row(s->expected, i), 0);
        const fa_place there = fa_place_of(s->problem, fa_expected_row(s->expected, before), 0);
        if (here.batch != there.batch || here.head != there.head)
            continue;
        double between = 0.0, should = 0.0;
        for (int32_t d = 0; d < fa_problem_dim_v(s->problem); d++) {
            between += square(value_of(s, output_row(s, i)[d]) - value_of(s, output_row(s, before)[d]));
            should += square(expected_at(s, i, d) - expected_at(s, before, d));
        }
        if (!(between <= 1e-4 * should))
            return false;
        pairs++;
    }
    if (pairs == 0)
        return false;
    fa_append_text(text, size, "all wrong rows of a head are alike: a mean or one row of V, not its weighted sum");
    return true;
}

/* A usual mistake makes them what they are. */
static bool guess_mistake(const scene *s, char *text, size_t size)
{
    if (s->expected->tensors == NULL)
        return false;
    const fa_suspect suspect =
        fa_suspect_of(s->problem, s->expected, s->bad, s->output, s->tile_m, s->looked, s->looked_count);
    if (suspect.mistake != NULL)
        fa_append_text(text, size, "%s (explains %d of %d wrong rows examined)", suspect.mistake, suspect.explained,
                       suspect.examined);
    return suspect.mistake != NULL;
}

/* What the examined rows have in common, where softmax can divide 0 by 0. */
static const char *which_rows(const scene *s)
{
    const fa_problem *p = s->problem;
    int32_t empty = 0, late = 0;
    for (int32_t n = 0; n < s->looked_count; n++) {
        const fa_row at = fa_problem_row(p, fa_expected_row(s->expected, s->looked[n]));
        const fa_keys keys = fa_problem_keys(p, at.batch, at.row),
                      first = fa_problem_keys(p, at.batch, at.row / s->tile_m * s->tile_m);
        empty += fa_problem_row_is_empty(p, at.batch, at.row);
        late += s->expected->tile_n > 0 && keys.first >= first.first + s->expected->tile_n;
    }
    return empty == s->looked_count ? ", in rows that see no key: their sum is 0"
           : late + empty == s->looked_count
               ? ", in rows that see nothing of their tile's first keys: the maximum is still -inf"
               : "";
}

static void guess_values(const scene *s, char *text, size_t size)
{
    if (all_elements(s, is_poison))
        fa_append_text(text, size, "never written");
    else if (all_elements(s, is_nonfinite))
        fa_append_text(text, size, "NaN or infinity throughout the row%s", which_rows(s));
    else if (all_elements(s, is_zero))
        fa_append_text(text, size, "zeros");
    else if (!guess_mistake(s, text, size) && !guess_scaled(s, text, size) && !guess_moved(s, text, size) &&
             !guess_alike(s, text, size))
        fa_append_text(text, size, "values follow no simple rule");
}

static void guess_columns(const scene *s, char *text, size_t size)
{
    int32_t first = fa_problem_dim_v(s->problem), last = -1;
    for (int32_t n = 0; n < s->looked_count; n++) {
        double worst = 0.0;
        for (int pass = 0; pass < 2; pass++) /* columns with at least a tenth of the row's largest error */
            for (int32_t d = 0; d < fa_problem_dim_v(s->problem); d++) {
                const double error =
                    fabs(value_of(s, output_row(s, s->looked[n])[d]) - expected_at(s, s->looked[n], d));
                const double weight = isfinite(error) ? error : HUGE_VAL;
                if (pass == 0) {
                    worst = fmax(worst, weight);
                } else if (weight >= 0.1 * worst) {
                    first = d < first ? d : first;
                    last = d > last ? d : last;
                }
            }
    }
    if (last - first + 1 <= fa_problem_dim_v(s->problem) * 3 / 4)
        fa_append_text(text, size, "; only columns %d..%d", first, last);
}

static void guess_rows(const scene *s, const tally *heads, const tally *tiles, int64_t all_heads, int64_t all_tiles,
                       char *text, size_t size)
{
    const int64_t last_tile = all_tiles - 1;
    if (s->wrong == s->expected->row_count)
        fa_append_text(text, size, "; every row");
    else if (s->wrong <= 2)
        fa_append_text(text, size, "; %s", s->wrong == 1 ? "a single row" : "two rows");
    else if (heads->count == 1 && all_heads > 1 && heads->full == 1)
        fa_append_text(text, size, "; one head, whole");
    else if (all_tiles > 1 && tiles->count == 1 && tiles->named[0] == last_tile && s->problem->seq_q % s->tile_m != 0)
        fa_append_text(text, size, "; tail only: the last, partial tile");
    else if (all_tiles > 1 && heads->count == 1 && tiles->count <= 2)
        fa_append_text(text, size, "; one head, %lld row tile%s", (long long)tiles->count, tiles->count > 1 ? "s" : "");
    else if (all_tiles > 1 && tiles->full == tiles->count)
        fa_append_text(text, size, "; whole row tiles");
    else if (heads->full == heads->count)
        fa_append_text(text, size, "; whole heads");
}

void fa_diagnose(const fa_problem *problem, const fa_expected *expected, const uint8_t *bad, const uint16_t *output,
                 int32_t tile_m, char *text, size_t size)
{
    scene s = {.problem = problem, .expected = expected, .bad = bad, .output = output, .tile_m = tile_m};
    look(&s);
    if (s.wrong == 0)
        return;
    const int64_t all_heads = (int64_t)problem->batch * problem->heads;
    const int64_t all_tiles = ((int64_t)problem->seq_q + tile_m - 1) / tile_m;
    const tally heads = tally_of(&s, all_heads, true), tiles = tally_of(&s, all_tiles, false);
    describe_place(&s, &heads, &tiles, all_heads, all_tiles, text, size);
    fa_append_text(text, size, "; looks like: ");
    guess_values(&s, text, size);
    guess_columns(&s, text, size);
    guess_rows(&s, &heads, &tiles, all_heads, all_tiles, text, size);
}
