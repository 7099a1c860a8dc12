#include "check/hypotheses.h"

#include <math.h>
#include <stdlib.h>

#include "check/mistakes.h"

enum {
    WORK = 1 << 23,     /* products of the rows that are examined, for each mistake */
    LEAST_ROWS = 2,     /* examined, however long a row is */
    FIRST_COLUMNS = 16, /* that rule out most of the mistakes */
    CARDS = 512,        /* more than all mistakes have ways */
};
/* A row fits where the squares of what is left are this part of its error, ... */
#define LEFT (1.0 / 16.0)
/* ... and what is left is this many unit roundoffs of the row; of E4M3, whose weights err independently, two. */
#define ROUNDOFFS 16.0

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t fewest(int64_t a, int64_t b) { return a < b ? a : b; }

/* A wrong row, as it should be and as it is. */
typedef struct suspect_row {
    fa_recipe right;
    double *products, *weights, *out;
    const uint16_t *output;
    double error; /* sum of squares */
    bool wrong;
} suspect_row;

static double value_of(const suspect_row *row, int32_t d)
{
    return (double)fa_element_to_float(fa_problem_dtype_o(row->right.problem), row->output[d]);
}

/* What is left of the row's error where it was computed by `recipe`: a part of it; 1 where it does not fit. Of a right
 * row 0 or 1. */
static double left_by(const suspect_row *row, const fa_recipe *recipe)
{
    const fa_problem *p = recipe->problem;
    const int32_t dim = fa_problem_dim_v(p), first = (int32_t)fewest(FIRST_COLUMNS, dim);
    const double sum = fa_recipe_weigh(recipe, &row->right, row->products, row->weights);
    const double roundoff = ldexp(1.0, -fa_dtype_bits(p->dtype));
    const double limit = p->dtype == FA_DTYPE_E4M3 ? 2.0 * roundoff : ROUNDOFFS * roundoff;
    double left = 0.0, size = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        const int32_t from = pass == 0 ? 0 : first, to = pass == 0 ? first : dim;
        fa_recipe_output(recipe, row->weights, sum, from, to, row->out);
        for (int32_t d = from; d < to; d++) {
            const double off = value_of(row, d) - row->out[d];
            left += off * off;
            size += row->out[d] * row->out[d];
        }
        if (row->wrong && !(left <= LEFT * row->error)) /* NaN does not fit either */
            return 1.0;
    }
    return !(left <= limit * limit * size) ? 1.0 : row->wrong ? left / row->error : 0.0;
}

/* False: a hypothesis needs numbers. */
static bool open_row(suspect_row *row, const fa_problem *problem, const fa_expected *expected, const uint16_t *output,
                     int32_t tile_m, int64_t i)
{
    const int32_t dim = fa_problem_dim_v(problem);
    const int64_t flat = fa_expected_row(expected, i);
    row->right = fa_recipe_of(problem, expected->tensors, flat);
    row->right.tile_m = tile_m;
    row->right.tile_n = expected->tile_n > 0 ? expected->tile_n : row->right.tile_n;
    row->output = output + flat * dim;
    row->error = 0.0;
    for (int32_t d = 0; d < dim; d++) {
        const double off = value_of(row, d) - fa_expected_value(expected, i * dim + d);
        row->error += off * off;
    }
    if (!row->right.at.used || !isfinite(row->error))
        return false;
    fa_recipe_products(&row->right, row->products);
    return true;
}

/* Of a way to make a mistake: how many wrong rows it explains, what it leaves of their errors, and how many right rows
 * would be wrong with it. */
typedef struct score_card {
    int32_t explained, denied;
    double left;
} score_card;

static void try_all(const suspect_row *row, score_card *card)
{
    const int32_t possible = fa_mistakes_possible(row->right.problem);
    int32_t count;
    const fa_mistake *mistakes = fa_mistakes(&count);
    for (int32_t i = 0; i < count; i++)
        for (int32_t way = 0; way < mistakes[i].ways; way++, card++) {
            fa_recipe recipe = row->right;
            if ((mistakes[i].needs & ~possible) != 0 || (!row->wrong && card->explained == 0))
                continue;
            mistakes[i].make(&recipe, mistakes[i].first + way);
            const double left = left_by(row, &recipe);
            card->explained += row->wrong && left < 1.0;
            card->left += row->wrong ? left : 0.0;
            card->denied += !row->wrong && left == 1.0;
        }
}

/* More wrong rows, or as many and fewer right ones, or an error that is far smaller. */
static bool is_better(const score_card *card, const score_card *best)
{
    if (card->explained != best->explained)
        return card->explained > best->explained;
    return card->denied != best->denied ? card->denied < best->denied : card->left < 0.25 * best->left;
}

/* The best card, where it explains most of the rows; of those that do as well the first. */
static void choose(const score_card *card, fa_suspect *suspect)
{
    score_card best = {.left = INFINITY};
    int32_t count;
    const fa_mistake *mistakes = fa_mistakes(&count);
    for (int32_t i = 0; i < count; i++)
        for (int32_t way = 0; way < mistakes[i].ways; way++, card++) {
            if (2 * card->explained <= suspect->examined || !is_better(card, &best))
                continue;
            best = *card;
            suspect->mistake = mistakes[i].text;
            suspect->explained = card->explained;
        }
}

fa_suspect fa_suspect_of(const fa_problem *problem, const fa_expected *expected, const uint8_t *bad,
                         const uint16_t *output, int32_t tile_m, const int64_t *rows, int32_t count)
{
    const int64_t work = most((int64_t)problem->seq_kv * (problem->dim + fa_problem_dim_v(problem)), 1);
    const int32_t tried = (int32_t)fewest(count, most(WORK / work, LEAST_ROWS));
    const size_t room = (size_t)fa_recipe_room(problem);
    suspect_row row = {.products = fa_alloc(room * sizeof(double)),
                       .weights = fa_alloc(room * sizeof(double)),
                       .out = fa_alloc((size_t)fa_problem_dim_v(problem) * sizeof(double)),
                       .wrong = true};
    fa_suspect suspect = {.mistake = NULL};
    score_card *cards = fa_alloc(CARDS * sizeof *cards);
    for (int32_t n = 0; n < tried; n++)
        if (open_row(&row, problem, expected, output, tile_m, rows[(int64_t)n * count / tried])) {
            try_all(&row, cards);
            suspect.examined++;
        }
    row.wrong = false;
    for (int32_t n = 0; n < tried; n++) { /* rows all over the tensor */
        const int64_t i = (2 * n + 1) * expected->row_count / (2 * tried);
        if (!bad[i] && open_row(&row, problem, expected, output, tile_m, i))
            try_all(&row, cards);
    }
    choose(cards, &suspect);
    free(cards);
    free(row.products);
    free(row.weights);
    free(row.out);
    return suspect;
}

enum { LSE_ROWS = 32, LSE_MISTAKES = 8 };
static const char *const lse_mistakes[LSE_MISTAKES] = {
    "it is a logarithm to base 2",
    "the sink is not part of it",
    "the maximum is natural, the sum's logarithm to base 2",
    "the maximum is in units of log2 e, the sum's logarithm natural",
    "the maximum is missing",
    "the logarithm of the sum is missing",
    "the maximum is not scaled",
    "ALiBi's part that is the same for all keys of a row is missing",
};

/* What a row's would be with each. max: of its scores, the sink included; right - max is the sum's logarithm. */
static void make_lse(const fa_recipe *r, double right, double max, double made[LSE_MISTAKES])
{
    const double log2_e = 1.0 / log(2), sum = right - max;
    const double all[LSE_MISTAKES] = {
        right * log2_e,       right + log1p(-exp(r->sink - right)), max + sum * log2_e, max * log2_e + sum, sum, max,
        max / r->scale + sum, right + r->slope * (double)r->pos};
    for (int32_t i = 0; i < LSE_MISTAKES; i++)
        made[i] = all[i];
}

/* Whether the rows' numbers stand where those of [batch, seq, heads] have their places. */
static bool is_transposed(const fa_problem *problem, const fa_reference *reference, const float *lse, double atol,
                          double rtol)
{
    const int64_t seq = fa_problem_stored_q(problem), heads = problem->heads;
    int64_t finite = 0, right = 0;
    for (int64_t i = 0; i < reference->row_count; i++) {
        const int64_t flat = reference->rows[i], row = flat % seq, head = flat / seq % heads;
        const double want = reference->lse[i];
        const float got = lse[flat - flat % (seq * heads) + row * heads + head];
        finite += isfinite(want);
        right += fabs((double)got - want) <= atol + rtol * fabs(want);
    }
    return 2 * right > finite;
}

const char *fa_suspect_of_lse(const fa_problem *problem, const fa_reference *reference, const float *lse, double atol,
                              double rtol)
{
    const size_t room = (size_t)fa_recipe_room(problem);
    double *products = fa_alloc(room * sizeof *products), *weights = fa_alloc(room * sizeof *weights);
    const int64_t work = most((int64_t)problem->seq_kv * problem->dim, 1);
    const int32_t tried = (int32_t)fewest(LSE_ROWS, most(WORK / work, LEAST_ROWS));
    int32_t examined = 0, explained[LSE_MISTAKES] = {0}, best = 0;
    for (int64_t i = 0; reference->tensors != NULL && i < reference->row_count && examined < tried; i++) {
        const double right = reference->lse[i], got = (double)lse[reference->rows[i]];
        const fa_recipe recipe = fa_recipe_of(problem, reference->tensors, reference->rows[i]);
        double made[LSE_MISTAKES];
        if (!recipe.at.used || !isfinite(right) || fabs(got - right) <= atol + rtol * fabs(right))
            continue;
        fa_recipe_products(&recipe, products);
        make_lse(&recipe, right, right - log(fa_recipe_weigh(&recipe, &recipe, products, weights)), made);
        for (int32_t m = 0; m < LSE_MISTAKES; m++)
            explained[m] += fabs(got - made[m]) <= atol + rtol * fabs(made[m]);
        examined++;
    }
    for (int32_t m = 1; m < LSE_MISTAKES; m++)
        best = explained[m] > explained[best] ? m : best;
    free(products);
    free(weights);
    return 2 * explained[best] > examined ? lse_mistakes[best]
           : is_transposed(problem, reference, lse, atol, rtol)
               ? "it lies as [batch, seq, heads], not [batch, heads, seq]"
               : NULL;
}
