#include "check/recompute.h"

#include <math.h>

enum { ROOM_BEYOND = 512 }; /* keys that a tile may have past the end */

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t largest(int32_t a, int32_t b) { return a > b ? a : b; }

void fa_recipe_look(fa_recipe *recipe, int32_t seq_kv)
{
    recipe->keys = fa_problem_keys_at(&recipe->see, recipe->pos, seq_kv);
    recipe->keys.end = least(recipe->keys.end, recipe->readable);
}

bool fa_recipe_read(fa_recipe *recipe, int32_t batch, int32_t kv_head)
{
    const fa_problem *p = recipe->problem;
    const int64_t all = (int64_t)fa_problem_stored_batch_kv(p) * p->kv_heads * fa_problem_stored_kv(p);
    if (batch < 0 || batch >= p->batch || kv_head < 0 || (p->pages != NULL && kv_head >= p->kv_heads))
        return false;
    const bool no_page = p->pages != NULL && fa_problem_seq_kv(p, batch) == 0;
    const int64_t first = no_page ? 0 : fa_problem_key_row(p, batch, kv_head, 0);
    if (first >= all)
        return false;
    recipe->batch = batch;
    recipe->kv_head = kv_head;
    if (kv_head < p->kv_heads) {
        recipe->k_times = (double)fa_descale(recipe->tensors->scores.k_descale, p, false, batch, kv_head);
        recipe->v_times = (double)fa_descale(recipe->tensors->scores.v_descale, p, false, batch, kv_head);
    }
    recipe->first = first;
    recipe->readable = p->pages != NULL          ? fa_problem_seq_kv(p, batch)
                       : all - first < INT32_MAX ? (int32_t)(all - first)
                                                 : INT32_MAX;
    recipe->keys.end = least(recipe->keys.end, recipe->readable);
    return true;
}

/* Where the tensors hold a key. */
static int64_t row_of(const fa_recipe *r, int32_t key)
{
    return r->problem->pages != NULL ? fa_problem_key_row(r->problem, r->batch, r->kv_head, key) : r->first + key;
}

void fa_recipe_bias(fa_recipe *recipe, int32_t batch, int32_t head)
{
    const fa_problem *p = recipe->problem;
    const fa_score_tensors *t = &recipe->tensors->scores;
    const int64_t plane = (int64_t)(t->bias_batch > 1 ? batch : 0) * t->bias_heads + (t->bias_heads > 1 ? head : 0);
    recipe->bias = t->bias + (plane * p->seq_q + recipe->at.row) * p->seq_kv;
}

fa_recipe fa_recipe_of(const fa_problem *problem, const fa_tensors *tensors, int64_t flat)
{
    const fa_row at = fa_problem_row(problem, flat);
    fa_recipe r = {.problem = problem,
                   .tensors = tensors,
                   .tile_m = 1,
                   .tile_n = 64,
                   .at = at,
                   .see = *problem,
                   .pos = (int64_t)at.row + at.seq_kv - at.seq_q,
                   .q = tensors->q + flat * problem->dim,
                   .k = tensors->k,
                   .v = tensors->v,
                   .dims = problem->dim,
                   .columns = fa_problem_dim_v(problem),
                   .scale = (double)problem->scale,
                   .softcap = (double)problem->softcap,
                   .slope = problem->alibi ? fa_slope(&tensors->scores, problem, at.batch, at.head) : 0.0,
                   .bias_times = 1.0,
                   .exponent = 1.0,
                   .sink = problem->sinks ? (double)tensors->scores.sinks[at.head] : -INFINITY,
                   .sink_times = 1.0,
                   .q_times = (double)fa_descale(tensors->scores.q_descale, problem, true, at.batch, at.head),
                   .tree = problem->tree ? FA_TREE_RIGHT : FA_TREE_IGNORED};
    r.alibi_pos = (double)r.pos;
    r.alibi_behind = 1.0;
    fa_recipe_read(&r, at.batch, at.head / (problem->heads / problem->kv_heads));
    fa_recipe_look(&r, at.seq_kv);
    if (problem->bias)
        fa_recipe_bias(&r, at.batch, at.head);
    return r;
}

int32_t fa_other_head(const fa_problem *problem, int32_t head, int32_t way)
{
    const int32_t all = problem->heads, group = all / problem->kv_heads, first = head / group * group;
    const int32_t next = (head + 1) % all, last = (head + all - 1) % all, of_kv = head % problem->kv_heads;
    const int32_t heads[FA_OTHER_HEADS] = {head,         0,     next, last, all - 1 - head, head / group,
                                           head % group, of_kv, first};
    return heads[way];
}

static bool turns(const fa_turn *t) { return t->keys != 0 || t->columns != 0 || t->first != 0 || t->swapped != 0; }

/* Of a tensor with a row a key; 0 past the last key and column. */
static double element(const fa_recipe *r, const fa_turn *t, const uint16_t *tensor, int32_t pitch, int32_t key,
                      int32_t column)
{
    const int32_t other = (key ^ column) & t->swapped, row = key ^ other ^ t->keys,
                  at = (column ^ other ^ t->columns) + t->first;
    return row >= r->at.seq_kv || at >= pitch
               ? 0.0
               : (double)fa_element_to_float(fa_problem_dtype_kv(r->problem), tensor[row_of(r, row) * pitch + at]);
}

static double dot(const fa_recipe *r, int32_t key)
{
    const fa_dtype dtype = r->problem->dtype, dtype_kv = fa_problem_dtype_kv(r->problem);
    const uint16_t *k = r->k + row_of(r, key) * r->problem->dim;
    const bool turned = turns(&r->k_turn);
    double sum = 0.0;
    for (int32_t d = 0; d < r->dims; d++)
        sum += (double)fa_element_to_float(dtype, r->q[d]) *
               (turned ? element(r, &r->k_turn, r->k, r->problem->dim, key, d)
                       : (double)fa_element_to_float(dtype_kv, k[d]));
    return sum;
}

void fa_recipe_products(const fa_recipe *right, double *products)
{
    for (int32_t j = 0; j < right->at.seq_kv; j++)
        products[j] = dot(right, j);
}

int64_t fa_recipe_room(const fa_problem *problem) { return (int64_t)problem->seq_kv + ROOM_BEYOND; }

/* Whether the tree shows a key, by bits that are read in some way. */
static bool tree_shows(const fa_recipe *r, int32_t key)
{
    const int32_t rows = r->problem->seq_q, n = least(rows, r->at.seq_kv), first = r->at.seq_kv - n;
    int64_t bit = (int64_t)r->at.row * n + key - first;
    if (key < first || key >= r->at.seq_kv || r->tree == FA_TREE_IGNORED)
        return key >= first || r->tree != FA_TREE_HIDES_EARLIER;
    if (r->tree == FA_TREE_RIGHT || r->tree >= FA_TREE_HIDES_EARLIER)
        return fa_problem_sees(r->problem, r->tree == FA_TREE_OF_BATCH_0 ? 0 : r->at.batch, r->at.row, key);
    bit = r->tree == FA_TREE_HIGH_BIT_FIRST ? bit ^ 7 : (int64_t)r->at.row * ((n + 7) / 8 * 8) + key - first;
    return bit / n < r->at.seq_q &&
           fa_problem_sees(r->problem, r->at.batch, (int32_t)(bit / n), first + (int32_t)(bit % n));
}

/* A score under the softcap: by tanh, or by what is taken for it. */
static double capped(const fa_recipe *r, double x)
{
    const double t = x / r->softcap, smooth = t / sqrt(1.0 + t * t), clamped = fmax(fmin(t, 1.0), -1.0);
    const double curves[FA_CURVES] = {tanh(t), clamped, smooth, t / (1.0 + fabs(t)), tanh(x), tanh(t) / r->softcap};
    return r->softcap * curves[r->curve];
}

static double score(const fa_recipe *r, double product, int32_t key)
{
    double x = product * r->q_times * r->k_times * (r->cap_before_scale ? 1.0 : r->scale), more = 0.0;
    if (r->bias != NULL && key < r->problem->seq_kv)
        more += r->bias_times * (double)fa_element_to_float(fa_problem_dtype_o(r->problem), r->bias[key]);
    if (r->slope != 0.0)
        more -= r->slope * fabs(r->alibi_pos - key) * (key > r->alibi_pos ? r->alibi_behind : 1.0);
    if (r->cap_after_bias)
        x += more;
    if (r->softcap > 0.0)
        x = capped(r, x);
    if (r->cap_before_scale)
        x *= r->scale;
    return (r->cap_after_bias ? x : x + more) * r->exponent;
}

/* Scores become weights; returns their sum. With a tile, `kept` are exponentials that are reduced by the maximum of the
 * tiles so far, and never rescaled. */
static double weigh(const fa_recipe *r, int32_t count, double *x)
{
    double max = r->online > 0  ? -INFINITY
                 : r->zeros > 0 ? fmax(r->sink, 0.0)
                                : r->sink,
           running = -INFINITY, sum = 0.0;
    for (int32_t j = 0; j < count; j++)
        max = fmax(max, x[j]);
    if (max == -INFINITY)
        max = 0.0;
    for (int32_t begin = 0, end = 0; begin < count; begin = end) {
        end = r->online == 0
                  ? count
                  : least(count, (r->keys.first + begin) / r->online * r->online + r->online - r->keys.first);
        for (int32_t j = begin; r->online > 0 && j < end; j++)
            running = fmax(running, x[j]);
        for (int32_t j = begin; j < end; j++) {
            const double right = exp(x[j] - max), kept = running > -INFINITY ? exp(x[j] - running) : 0.0;
            x[j] = r->keeps_output ? kept : right;
            sum += r->keeps_sum ? kept : right;
        }
    }
    return sum + r->sink_times * exp(r->sink - max) + r->zeros * exp(-max);
}

double fa_recipe_weigh(const fa_recipe *recipe, const fa_recipe *right, const double *products, double *weights)
{
    const int32_t first = recipe->keys.first, count = recipe->keys.end - first;
    const bool known = recipe->q == right->q && recipe->k == right->k && recipe->batch == right->batch &&
                       recipe->first == right->first && recipe->dims == right->dims && !turns(&recipe->k_turn);
    for (int32_t i = 0; i < count; i++) {
        const int32_t key = first + i;
        const bool shown =
            tree_shows(recipe, key) && (recipe->capped == 0 || (key >= right->keys.first && key < right->keys.end));
        weights[i] = shown ? score(recipe, known && key < right->at.seq_kv ? products[key] : dot(recipe, key), key)
                     : key < recipe->capped ? -recipe->softcap
                                            : -INFINITY;
    }
    return weigh(recipe, count, weights);
}

void fa_recipe_output(const fa_recipe *recipe, const double *weights, double sum, int32_t from, int32_t to, double *out)
{
    const int32_t dim_v = fa_problem_dim_v(recipe->problem), end = largest(from, least(to, recipe->columns));
    const int32_t pitch = recipe->v == recipe->tensors->k ? recipe->problem->dim : dim_v;
    const fa_dtype dtype = fa_problem_dtype_kv(recipe->problem);
    const bool turned = turns(&recipe->v_turn);
    for (int32_t d = from; d < to; d++)
        out[d] = 0.0;
    for (int32_t j = recipe->keys.first; j < recipe->keys.end && sum > 0.0; j++) {
        const double weight = weights[j - recipe->keys.first] / sum * recipe->v_times;
        const uint16_t *v = recipe->v + row_of(recipe, j) * pitch;
        if (weight == 0.0)
            continue;
        for (int32_t d = from; d < end; d++)
            out[d] += weight * (turned ? element(recipe, &recipe->v_turn, recipe->v, pitch, j, d)
                                       : (double)fa_element_to_float(dtype, v[d]));
    }
}
