/* One loop over the pairs of a row and the keys that it sees, or of a key and the rows that see it:
 *
 *     P = e^(score - LSE)     dP = dO . V     dS = P (dP - D) score'     D = sum of dO O over a row
 *     dV = sum of P dO        dK = scale sum of dS Q        dQ = scale sum of dS K
 *
 * Rows are computed one by one: the same for any number of threads. A pair's products are made again for its key. */
#include "check/gradients.h"

#include "check/recompute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fa_slip none = {.lost = 0};
enum { LANES = 8 }; /* partial sums of a product: it vectorises without reordering one addition */

/* The tensors as numbers, and what belongs to a query row. */
typedef struct work {
    const fa_problem *problem;
    const fa_tensors *tensors;
    float *q, *k, *v, *dout;
    double *lse, *delta, *delta_size, *delta_square; /* D, the sums of the sizes of its terms and of their squares */
    float *base_delta;                               /* from O as it is given, in FP32 */
    double least_square; /* of the smallest number whose rounding is a part of it: FP16 has few small ones */
    fa_slip slip;
} work;

/* What a pair adds, for the exact gradients and for the baseline. */
typedef struct pair {
    double p, ds;
    double p_size, size; /* of P and dS, with their terms' sizes: P is e to the difference of two FP32 numbers */
    double square;       /* of what rounding makes of dS, in units of the roundoff: its own, and D's */
    float base_p, base_ds;
} pair;

/* A row of a gradient under way. */
typedef struct sums {
    double *exact;
    float *base; /* NULL: not asked for */
    double size, square;
} sums;

#define DOT(name, real)                                                                                           \
    static real name(const float *restrict a, const float *restrict b, int32_t count)                             \
    {                                                                                                             \
        real lanes[LANES] = {0};                                                                                  \
        for (int32_t d = 0; d < count; d += LANES)                                                                \
            for (int32_t i = 0; i < LANES; i++)                                                                   \
                lanes[i] += (real)a[d + i] * (real)b[d + i];                                                      \
        return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7])); \
    }
DOT(dot, double)
DOT(base_dot, float)

/* D of every row. */
static void make_deltas(work *w, const double *forward)
{
    const fa_problem *p = w->problem;
    const int64_t rows = fa_problem_rows(p), dim = fa_problem_dim_v(p);
    w->delta = fa_alloc((size_t)rows * sizeof *w->delta);
    w->delta_size = fa_alloc((size_t)rows * sizeof *w->delta_size);
    w->delta_square = fa_alloc((size_t)rows * sizeof *w->delta_square);
    w->base_delta = fa_alloc((size_t)rows * sizeof *w->base_delta);
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = row * dim; fa_problem_row(p, row).used && i < (row + 1) * dim; i++) {
            const double term = (double)w->dout[i] * (w->slip.delta_of_dout ? (double)w->dout[i] : forward[i]);
            w->delta[row] += (1.0 + w->slip.delta_more) * term;
            w->delta_size[row] += fabs(term);
            w->delta_square[row] += term * term;
            w->base_delta[row] += w->dout[i] * fa_element_to_float(p->dtype, w->tensors->o[i]);
        }
}

static work open_numbers(const fa_problem *problem, const fa_tensors *tensors, const fa_slip *slip)
{
    return (work){.problem = problem,
                  .tensors = tensors,
                  .q = fa_numbers_of(problem, tensors->q, fa_problem_q_count(problem)),
                  .k = fa_numbers_of(problem, tensors->k, fa_problem_k_count(problem)),
                  .dout = fa_numbers_of(problem, tensors->dout, fa_problem_o_count(problem)),
                  .least_square = problem->dtype == FA_DTYPE_BF16 ? 0.0 : 0x1p-28,
                  .slip = *slip};
}

static work open_work(const fa_problem *problem, const fa_tensors *tensors, const double *forward, const fa_slip *slip)
{
    work w = open_numbers(problem, tensors, slip);
    w.v = fa_numbers_of(problem, tensors->v, fa_problem_v_count(problem));
    const double *lse = forward + fa_problem_o_count(problem);
    w.lse = fa_rows_of_head(problem, lse, slip->lse_of, slip->lse_times > 0.0 ? slip->lse_times : 1.0);
    if (slip->sink_more != 0.0)
        fa_add_sinks(problem, tensors, slip->sink_more, w.lse);
    make_deltas(&w, forward);
    double *own = w.delta;
    w.delta = fa_rows_of_head(problem, own, slip->delta_of, 1.0);
    free(own);
    return w;
}

static void close_work(work *w)
{
    free(w->q);
    free(w->k);
    free(w->v);
    free(w->dout);
    free(w->lse);
    free(w->delta);
    free(w->delta_size);
    free(w->delta_square);
    free(w->base_delta);
}

/* The score of q.k, and its derivative over the scale. */
static double score_of(const work *w, const fa_row *at, int32_t key, double product, double *slope)
{
    const fa_problem *p = w->problem;
    const double cap = (double)p->softcap;
    double score = (double)p->scale * product;
    *slope = 1.0;
    if (cap > 0.0) {
        const double bent = tanh(score / cap);
        score = cap * bent;
        *slope = w->slip.no_slope ? 1.0 : 1.0 - bent * bent;
    }
    if (p->alibi && !w->slip.no_alibi)
        score -= fa_slope(&w->tensors->scores, p, at->batch, at->head) *
                 fabs((double)at->row + at->seq_kv - at->seq_q - key);
    return score;
}

/* Row `row` (stored) and a key that it sees, at stored rows of K and V. */
static pair pair_of(const work *w, const fa_row *at, int64_t row, int32_t key, int64_t k_row, int64_t v_row, bool base)
{
    const fa_problem *p = w->problem;
    const int32_t dim = p->dim, dim_v = fa_problem_dim_v(p);
    const float *q = w->q + row * dim, *k = w->k + k_row * dim;
    const float *dout = w->dout + row * dim_v, *v = w->v + v_row * dim_v;
    double slope, dp = dot(dout, v, dim_v);
    pair of = {.p = exp(score_of(w, at, key, dot(q, k, dim), &slope) - w->lse[row])};
    of.ds = of.p * (dp - w->delta[row]) * slope;
    of.p_size = of.p * (1.0 + fabs(w->lse[row]) / 16);
    of.size = of.p_size * (fabs(dp) + w->delta_size[row]);
    of.square = of.ds * of.ds + of.p * of.p * w->delta_square[row];
    if (w->slip.weights_swapped)
        of = (pair){.p = of.ds, .ds = of.p};
    if (!base)
        return of;
    const float score = (float)score_of(w, at, key, (double)base_dot(q, k, dim), &slope);
    const float weight = expf(score - w->tensors->lse[row]);
    of.base_p = fa_element_round(p->dtype, weight);
    of.base_ds = fa_element_round(p->dtype, weight * (base_dot(dout, v, dim_v) - w->base_delta[row]) * (float)slope);
    return of;
}

static void add(sums *to, double factor, float base_factor, const float *restrict row, int32_t count)
{
    double *restrict exact = to->exact;
    float *restrict base = to->base;
    for (int32_t d = 0; d < count; d++)
        exact[d] += factor * (double)row[d];
    for (int32_t d = 0; base != NULL && d < count; d++)
        base[d] += base_factor * row[d];
}

/* A sum is done: times `factor`, and the baseline rounded. */
static void finish(const work *w, sums *to, double factor, int32_t count)
{
    for (int32_t d = 0; d < count; d++)
        to->exact[d] *= factor;
    for (int32_t d = 0; to->base != NULL && d < count; d++)
        to->base[d] = fa_element_round(w->problem->dtype, to->base[d] * (float)factor);
    to->size *= factor;
    to->square *= factor * factor;
}

/* The keys that a row sees. */
static fa_keys keys_of(const work *w, const fa_row *at)
{
    const int32_t pos = w->slip.top_left ? at->row : at->row + at->seq_kv - at->seq_q;
    fa_keys keys = w->slip.no_mask ? (fa_keys){0, at->seq_kv} : fa_problem_keys_at(w->problem, pos, at->seq_kv);
    const int32_t first = keys.first - w->slip.sooner, end = keys.end + w->slip.later;
    keys.first = first < 0 ? 0 : first > keys.end ? keys.end : first;
    keys.end = end > at->seq_kv ? at->seq_kv : end < keys.first ? keys.first : end;
    return keys;
}

static void row_of_dq(const work *w, int64_t row, sums *dq)
{
    const fa_problem *p = w->problem;
    const fa_row at = fa_problem_row(p, row);
    const fa_keys keys = keys_of(w, &at);
    const int32_t kv_head = w->slip.modulo ? at.head % p->kv_heads : at.head / (p->heads / p->kv_heads);
    double weight = 0.0;
    for (int32_t key = keys.first; key < keys.end; key++) {
        const int64_t k_row = fa_problem_key_row(p, at.batch, (kv_head + w->slip.k_by) % p->kv_heads, key);
        const int64_t v_row = fa_problem_key_row(p, at.batch, (kv_head + w->slip.v_by) % p->kv_heads, key);
        const int64_t dq_row = fa_problem_key_row(p, at.batch, (kv_head + w->slip.dq_by) % p->kv_heads, key);
        const pair of = pair_of(w, &at, row, key, k_row, v_row, dq->base != NULL);
        add(dq, of.ds, of.base_ds, (w->slip.rows_swapped ? w->v : w->k) + dq_row * p->dim, p->dim);
        dq->size += of.size;
        dq->square += of.ds * of.ds + w->least_square;
        weight += of.p;
    }
    dq->square += weight * weight * w->delta_square[row]; /* D is the same for all keys */
    finish(w, dq, (double)p->scale, p->dim);
}

static void row_of_dk_and_dv(const work *w, int64_t key_row, sums *dk, sums *dv)
{
    const fa_problem *p = w->problem;
    const fa_row key = fa_problem_key_at(p, key_row);
    const int32_t group = p->heads / p->kv_heads, dim_v = fa_problem_dim_v(p);
    for (int32_t n = 0; n < group; n++) {
        const int32_t head = w->slip.modulo ? key.head + n * p->kv_heads : key.head * group + n;
        const bool counts = n + 1 != w->slip.lost && (w->slip.only == 0 || n + 1 == w->slip.only);
        for (int32_t i = 0; counts && i < key.seq_q; i++) {
            const fa_row at = {.batch = key.batch, .head = head, .row = i, .seq_q = key.seq_q, .seq_kv = key.seq_kv};
            const fa_keys keys = keys_of(w, &at);
            if (key.row < keys.first || key.row >= keys.end)
                continue;
            const int64_t row = fa_problem_flat(p, key.batch, head, i);
            const pair of = pair_of(w, &at, row, key.row, key_row, key_row, dk->base != NULL);
            add(dv, of.p, of.base_p, (w->slip.rows_swapped ? w->q : w->dout) + row * dim_v, dim_v);
            add(dk, of.ds, of.base_ds, (w->slip.rows_swapped ? w->dout : w->q) + row * p->dim, p->dim);
            dv->size += of.p_size;
            dk->size += of.size;
            dv->square += of.p * of.p + w->least_square;
            dk->square += of.square + w->least_square;
        }
    }
    finish(w, dk, (double)p->scale, p->dim);
    finish(w, dv, 1.0, dim_v);
}

/* dsinks = - the sum of e^(sink - LSE) D over all rows of a head. */
static void row_of_dsinks(const work *w, sums *dsinks)
{
    const int64_t rows = fa_problem_rows(w->problem);
    for (int64_t row = 0; row < rows; row++) {
        const fa_row at = fa_problem_row(w->problem, row);
        if (!at.used)
            continue;
        const double sink = fa_sink_taken(w->problem, w->tensors, at.head, w->slip.sink_of);
        const double weight = exp(sink - w->lse[row]);
        dsinks->exact[at.head] -= weight * w->delta[row];
        dsinks->size += weight * (1.0 + fabs(w->lse[row]) / 16) * w->delta_size[row];
        dsinks->square += weight * weight * w->delta_square[row];
        if (dsinks->base != NULL)
            dsinks->base[at.head] -= expf((float)sink - w->tensors->lse[row]) * w->base_delta[row];
    }
}

static void keep(const work *w, fa_gradient *of, int64_t i, const sums *row, fa_most factor)
{
    const double least = w->problem->dtype == FA_DTYPE_BF16 ? 1e-30 : 0x1p-25; /* FP32 sums may underflow, too */
    of->slack[i] = ldexp(row->size * factor.element, -19) + least;
    of->noise[i] = ldexp(sqrt(row->square) * factor.row, -fa_dtype_bits(w->problem->dtype));
}

static sums sums_at(const fa_gradient *of, int64_t i)
{
    const size_t at = (size_t)i * (size_t)of->columns;
    return (sums){.exact = of->exact + at, .base = of->baseline + at};
}

static void make_rows(const work *w, fa_gradients *g)
{
    const fa_problem *p = w->problem;
    fa_gradient *dq = &g->of[FA_GRAD_DQ], *dk = &g->of[FA_GRAD_DK], *dv = &g->of[FA_GRAD_DV];
    const int64_t rows = fa_problem_rows(p), keys = fa_gradient_rows(p, FA_GRAD_DK);
    const fa_most q = fa_most_of(w->q, rows, p->dim), k = fa_most_of(w->k, keys, p->dim),
                  dout = fa_most_of(w->dout, rows, fa_problem_dim_v(p));
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < dq->row_count; i++) {
        sums row = sums_at(dq, i);
        row_of_dq(w, dq->rows[i], &row);
        keep(w, dq, i, &row, k);
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < dk->row_count; i++) {
        sums k_row = sums_at(dk, i), v_row = sums_at(dv, i);
        row_of_dk_and_dv(w, dk->rows[i], &k_row, &v_row);
        keep(w, dk, i, &k_row, q);
        keep(w, dv, i, &v_row, dout);
    }
    if (g->of[FA_GRAD_DSINKS].row_count > 0) {
        sums all = sums_at(&g->of[FA_GRAD_DSINKS], 0);
        row_of_dsinks(w, &all);
        keep(w, &g->of[FA_GRAD_DSINKS], 0, &all, (fa_most){1.0, 1.0});
    }
}

fa_gradients fa_gradients_of_rows(const fa_problem *problem, const fa_tensors *tensors, const double *forward,
                                  int64_t *q_rows, int64_t q_count, int64_t *k_rows, int64_t k_count)
{
    work w = open_work(problem, tensors, forward, &none);
    fa_gradients g = {
        .of[FA_GRAD_DQ] = {.row_count = q_count, .rows = q_rows},
        .of[FA_GRAD_DK] = {.row_count = k_count, .rows = k_rows},
        .of[FA_GRAD_DV] = {.row_count = k_count, .rows = fa_alloc((size_t)(k_count + 1) * sizeof *k_rows)},
        .of[FA_GRAD_DSINKS] = {.row_count = fa_gradient_rows(problem, FA_GRAD_DSINKS),
                               .rows = fa_alloc(sizeof *k_rows)}};
    memcpy(g.of[FA_GRAD_DV].rows, k_rows, (size_t)k_count * sizeof *k_rows);
    for (int32_t i = 0; i < FA_GRADS; i++) {
        fa_gradient *of = &g.of[i];
        of->columns = fa_gradient_columns(problem, i);
        const size_t count = (size_t)of->row_count * (size_t)of->columns + 1;
        of->exact = fa_alloc(count * sizeof *of->exact);
        of->baseline = fa_alloc(count * sizeof *of->baseline);
        of->noise = fa_alloc(((size_t)of->row_count + 1) * sizeof *of->noise);
        of->slack = fa_alloc(((size_t)of->row_count + 1) * sizeof *of->slack);
    }
    make_rows(&w, &g);
    close_work(&w);
    return g;
}

fa_gradients fa_gradients_make(const fa_problem *problem, const fa_tensors *tensors, const double *forward,
                               int32_t tile_m, int32_t tile_n, uint64_t seed)
{
    int64_t q_count, k_count;
    int64_t *q_rows = fa_gradient_choose(problem, FA_GRAD_DQ, tile_m, seed, &q_count);
    int64_t *k_rows = fa_gradient_choose(problem, FA_GRAD_DK, tile_n, seed, &k_count);
    return fa_gradients_of_rows(problem, tensors, forward, q_rows, q_count, k_rows, k_count);
}

/* The plain kernel leaves size and square of each row: sums of the terms, without the factors of keep. */
fa_gradients fa_gradients_of_plain(const fa_problem *problem, const fa_tensors *tensors, const double *plain)
{
    work w = open_numbers(problem, tensors, &none);
    const int64_t rows = fa_problem_rows(problem), keys = fa_gradient_rows(problem, FA_GRAD_DK);
    const fa_most factors[FA_GRADS] = {fa_most_of(w.k, keys, problem->dim),
                                       fa_most_of(w.q, rows, problem->dim),
                                       fa_most_of(w.dout, rows, fa_problem_dim_v(problem)),
                                       {1.0, 1.0}};
    const double scale = (double)problem->scale;
    fa_gradients g = {.of[0].columns = 0};
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
        fa_gradient *of = &g.of[tensor];
        *of = (fa_gradient){.columns = fa_gradient_columns(problem, tensor),
                            .row_count = fa_gradient_rows(problem, tensor),
                            .exact = (double *)(uintptr_t)plain};
        plain += of->row_count * of->columns;
        of->noise = fa_alloc(((size_t)of->row_count + 1) * sizeof *of->noise);
        of->slack = fa_alloc(((size_t)of->row_count + 1) * sizeof *of->slack);
    }
    for (int32_t tensor = 0; tensor < FA_GRAD_DSINKS; tensor++) {
        fa_gradient *of = &g.of[tensor];
        const double factor = tensor == FA_GRAD_DV ? 1.0 : scale;
        for (int64_t i = 0; i < of->row_count; i++, plain += 2) {
            const sums row = {.size = plain[0] * factor, .square = plain[1] * factor * factor};
            keep(&w, of, i, &row, factors[tensor]);
        }
    }
    close_work(&w);
    return g;
}

void fa_gradients_free_plain(fa_gradients *gradients)
{
    for (int32_t i = 0; i < FA_GRADS; i++) {
        free(gradients->of[i].noise);
        free(gradients->of[i].slack);
    }
}

void fa_gradients_free(fa_gradients *gradients)
{
    for (int32_t i = 0; i < FA_GRADS; i++) {
        free(gradients->of[i].rows);
        free(gradients->of[i].exact);
        free(gradients->of[i].baseline);
    }
    fa_gradients_free_plain(gradients);
    *gradients = (fa_gradients){.of[0].columns = 0};
}

void fa_gradients_slip(const fa_problem *problem, const fa_tensors *tensors, const double *forward, const fa_slip *slip,
                       int32_t tensor, const int64_t *rows, int64_t count, double *out)
{
    const int32_t columns = fa_gradient_columns(problem, tensor);
    const size_t other_columns = (size_t)(tensor == FA_GRAD_DK ? fa_problem_dim_v(problem) : problem->dim);
    work w = open_work(problem, tensors, forward, slip);
    double *beside = fa_alloc(other_columns * sizeof *beside);
    memset(out, 0, (size_t)count * (size_t)columns * sizeof *out);
    for (int64_t i = 0; i < count; i++) {
        sums row = {.exact = out + i * columns}, other = {.exact = beside};
        memset(beside, 0, other_columns * sizeof *beside);
        if (tensor == FA_GRAD_DQ)
            row_of_dq(&w, rows[i], &row);
        else if (tensor == FA_GRAD_DSINKS)
            row_of_dsinks(&w, &row);
        else
            row_of_dk_and_dv(&w, rows[i], tensor == FA_GRAD_DK ? &row : &other, tensor == FA_GRAD_DK ? &other : &row);
    }
    free(beside);
    close_work(&w);
}
