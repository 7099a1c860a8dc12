/* Kernels with one mistake are told by name, on several shapes; outputs with another fault are not. The mistakes are
 * made apart from src/check/recompute.c: by the reference with another problem or other tensors, or by simulate.c. */
#include "check/hypotheses.h"
#include "check/lse.h"
#include "check/recompute.h"
#include "check/rules.h"
#include "simulate.h"
#include "unit.h"

#include <math.h>

enum { TILE_M = 16, TILE_N = 32, FEW_KEYS = 4 };

static bench open_bench(const char *line)
{
    bench b = {.problem = problem_of(line)};
    b.tensors = fa_tensors_make(&b.problem, FA_DIST_NORMAL, 42);
    b.reference = fa_reference_make(&b.problem, &b.tensors, TILE_M, false, 1);
    b.count = fa_problem_o_count(&b.problem);
    b.output = fa_alloc(b.count * sizeof *b.output);
    return b;
}

/* The output of a kernel that has another problem or other tensors. */
static void compute(bench *b, const fa_problem *problem, const fa_tensors *tensors)
{
    CLEANUP(fa_reference_free) fa_reference other = fa_reference_make(problem, tensors, TILE_M, false, 1);
    assert_int_equal(other.row_count, fa_problem_rows(&b->problem)); /* all rows: the problems are small */
    for (size_t i = 0; i < fa_problem_o_count(&b->problem); i++)
        b->output[i] = fa_element_of_float(fa_problem_dtype_o(problem), (float)other.exact[i]);
}

static int32_t tile_n = TILE_N;

static fa_verdict judge(const bench *b, double rule)
{
    fa_reference reference = b->reference;
    reference.tensors = &b->tensors;
    reference.tile_n = tile_n;
    return fa_judge(&b->problem, &reference, b->output, TILE_M, rule, rule);
}

static void named(const bench *b, const char *line, const char *mistake)
{
    char wanted[160];
    const fa_verdict v = judge(b, fa_rule_tolerance(b->problem.dtype));
    snprintf(wanted, sizeof wanted, "looks like: %s (explains ", mistake);
    if (v.passed || strstr(v.failure, wanted) == NULL)
        fail_msg("%s: not '%s' but '%s'", line, mistake, v.failure);
}

TEST(the_right_recipe_gives_the_reference)
{
    const char *const lines[] = {
        "--batch 2 --heads 4 --kv-heads 2 --seq 20 --seq-kv 33 --dim 24 --causal",
        "--batch 2 --heads 2 --seq 20 --seq-kv 33 --window 7,3 --chunk 9 --dim 16 --dim-v 40",
        "--heads 3 --seq 20 --seq-kv 9 --causal --sinks --alibi --bias --softcap 3 --dtype bf16",
        "--heads 2 --lengths 9,0,17:40,30:5 --strides padded --mask tree --bias --sinks",
        "--heads 4 --kv-heads 1 --lengths 9:0,17:40,30:5 --causal --alibi --window 5,0",
        "--heads 4 --kv-heads 2 --lengths 9:0,17:40,30:5 --page-size 8 --causal --dim-v 24",
        "--heads 4 --kv-heads 2 --lengths 9:0,17:40,30:5 --page-size 8 --causal --dtype e4m3 --sinks --bias",
        "--batch 2 --heads 4 --kv-heads 2 --seq 20 --kv-dtype e4m3 --dim 24"};
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        CLEANUP(close_bench) bench b = open_bench(lines[l]);
        const int32_t dim = fa_problem_dim_v(&b.problem);
        const size_t room = (size_t)fa_recipe_room(&b.problem);
        FREED double *products = fa_alloc(room * sizeof *products), *weights = fa_alloc(room * sizeof *weights);
        FREED double *out = fa_alloc((size_t)dim * sizeof *out);
        for (int64_t i = 0; i < b.reference.row_count; i++) {
            const fa_recipe right = fa_recipe_of(&b.problem, &b.tensors, b.reference.rows[i]);
            if (!right.at.used)
                continue;
            fa_recipe other = right; /* of a batch with fewer keys no more are read */
            if (fa_recipe_read(&other, (right.at.batch + 1) % b.problem.batch, 0))
                assert_true(other.keys.end <= other.readable);
            for (int32_t online = 0; online < 9; online += 4) { /* a softmax of tiles that is rescaled is right, too */
                fa_recipe same = right;
                same.online = online;
                fa_recipe_products(&right, products);
                fa_recipe_output(&same, weights, fa_recipe_weigh(&same, &right, products, weights), 0, dim, out);
                for (int32_t d = 0; d < dim; d++)
                    if (!(fabs(out[d] - b.reference.exact[i * dim + d]) < 1e-12))
                        fail_msg("%s: row %lld: %g for %g", lines[l], (long long)i, out[d],
                                 b.reference.exact[i * dim + d]);
            }
        }
    }
}

#define SHAPE "--batch 2 --heads 4 --kv-heads 2 --seq 40 "
TEST(simulated_mistakes_are_named)
{
    static const struct {
        sim_fault fault;
        const char *line, *mistake;
    } cases[] = {
        {SIM_NO_RESCALE, SHAPE "--seq-kv 130", "the accumulator is not rescaled when the maximum rises"},
        {SIM_NO_RESCALE, SHAPE "--causal --dtype bf16", "the accumulator is not rescaled when the maximum rises"},
        {SIM_SUM_NOT_RESCALED, SHAPE "--dim 128 --seq-kv 96", "the row sum is not rescaled when the maximum rises"},
        {SIM_SUM_NOT_RESCALED, SHAPE "--causal", "the row sum is not rescaled when the maximum rises"},
        {SIM_SWAP_KV, SHAPE, "K and V are swapped"},
        {SIM_SWAP_KV, SHAPE "--causal --dim 40", "K and V are swapped"},
        {SIM_CAUSAL_EARLY, SHAPE "--causal", "the causal mask hides the last key that a row sees"},
        {SIM_CAUSAL_EARLY, SHAPE "--causal --seq-kv 100", "the causal mask hides the last key that a row sees"},
        {SIM_CAUSAL_LATE, SHAPE "--causal --seq-kv 100 --dtype bf16", "the causal mask shows one key too many"},
        {SIM_CAUSAL_LATE, SHAPE "--causal --seq-kv 33", "the causal mask shows one key too many"},
        {SIM_CAUSAL_TOP_LEFT, SHAPE "--causal --seq-kv 47", "the mask is aligned top-left, not bottom-right"},
        {SIM_CAUSAL_TOP_LEFT, SHAPE "--causal --seq-kv 33", "the mask is aligned top-left, not bottom-right"},
        {SIM_NO_TAIL_MASK, SHAPE "--seq-kv 33", "keys past the end count, with scores and values of 0"},
        {SIM_NO_TAIL_MASK, SHAPE "--seq-kv 70 --dim 16", "keys past the end count, with scores and values of 0"},
        {SIM_WRONG_KV_HEAD, SHAPE, "the K/V head is h % kv_heads, not h / (heads / kv_heads)"},
        {SIM_DROP_LAST_TILE, SHAPE "--seq-kv 130", "the last tile of keys is left out"},
        {SIM_DROP_LAST_TILE, SHAPE "--seq-kv 100 --causal",
         "the last keys of a row tile are left out: does its loop end with its first row?"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(close_bench) bench b = open_bench(cases[i].line);
        sim_flash(&b.problem, &b.tensors, &b.reference, TILE_N, cases[i].fault, b.output);
        named(&b, cases[i].line, cases[i].mistake);
    }
}

typedef void change(fa_problem *problem, fa_tensors *tensors);

static void rotate(uint16_t *elements, size_t count, size_t by)
{
    FREED uint16_t *all = fa_alloc(count * sizeof *all);
    memcpy(all, elements, count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        elements[i] = all[(i + by) % count];
}

static void rotate_kv(fa_tensors *t, int32_t parts)
{
    rotate(t->k, t->k_count, t->k_count / (size_t)parts);
    rotate(t->v, t->v_count, t->v_count / (size_t)parts);
}

static void next_batch(fa_problem *p, fa_tensors *t) { rotate_kv(t, p->batch); }
static void next_head(fa_problem *p, fa_tensors *t) { rotate_kv(t, p->batch * p->kv_heads); }
static void k_for_v(fa_problem *p, fa_tensors *t) { memcpy(t->v, t->k, t->k_count * sizeof *t->k); }
static void v_for_k(fa_problem *p, fa_tensors *t) { memcpy(t->k, t->v, t->k_count * sizeof *t->k); }
static void no_scale(fa_problem *p, fa_tensors *t) { p->scale = 1.0f; }
static void scale_twice(fa_problem *p, fa_tensors *t) { p->scale *= p->scale; }
static void scale_of_dim_v(fa_problem *p, fa_tensors *t) { p->scale = 1.0f / sqrtf((float)p->dim_v); }
static void own_scale(fa_problem *p, fa_tensors *t) { p->scale = 1.0f / sqrtf((float)p->dim); }
static void base_2(fa_problem *p, fa_tensors *t) { p->scale *= 0.6931472f; }
static void base_e(fa_problem *p, fa_tensors *t) { p->scale *= 1.442695f; }
static void no_mask(fa_problem *p, fa_tensors *t) { p->causal = p->tree = false; }
static void plain_causal(fa_problem *p, fa_tensors *t) { p->causal = true, p->tree = false; }
static void wide_left(fa_problem *p, fa_tensors *t) { p->window_left++; }
static void narrow_left(fa_problem *p, fa_tensors *t) { p->window_left--; }
static void wide_right(fa_problem *p, fa_tensors *t) { p->window_right++; }
static void narrow_right(fa_problem *p, fa_tensors *t) { p->window_right--; }
static void no_window(fa_problem *p, fa_tensors *t) { p->windowed = false; }
static void right_for_causal(fa_problem *p, fa_tensors *t) { p->causal = false; }
static void left_of_row(fa_problem *p, fa_tensors *t) { p->window_left += p->seq_kv - p->seq_q; }
static void no_chunk(fa_problem *p, fa_tensors *t) { p->chunk = 0; }
static void used_q(fa_problem *p, fa_tensors *t) { memcpy((void *)(uintptr_t)p->lengths->kv, p->lengths->q, 12); }
static void no_softcap(fa_problem *p, fa_tensors *t) { p->softcap = 0.0f; }
static void no_sink(fa_problem *p, fa_tensors *t) { p->sinks = false; }
static void no_alibi(fa_problem *p, fa_tensors *t) { p->alibi = false; }
static void no_bias(fa_problem *p, fa_tensors *t) { p->bias = false; }

static void times(float *values, int32_t count, float factor, float more)
{
    for (int32_t i = 0; i < count; i++)
        values[i] = values[i] * factor + more;
}

static void scaled_sink(fa_problem *p, fa_tensors *t) { times(t->scores.sinks, p->heads, p->scale, 0.0f); }
static void sink_often(fa_problem *p, fa_tensors *t) { times(t->scores.sinks, p->heads, 1.0f, logf(4.0f)); }
static void slope_base_2(fa_problem *p, fa_tensors *t) { times(t->scores.slopes, p->batch * p->heads, 0.6931f, 0.0f); }

static void slope_of_kv_head(fa_problem *p, fa_tensors *t)
{
    for (int32_t i = p->batch * p->heads - 1; i >= 0; i--)
        t->scores.slopes[i] = t->scores.slopes[i / p->heads * p->heads + i % p->heads / (p->heads / p->kv_heads)];
}

static void next_head_for_each(float *x, int32_t heads)
{
    const float first = x[0];
    for (int32_t i = 0; i < heads; i++)
        x[i] = i + 1 < heads ? x[i + 1] : first;
}

static void sink_of_next_head(fa_problem *p, fa_tensors *t) { next_head_for_each(t->scores.sinks, p->heads); }

static void slope_of_next_head(fa_problem *p, fa_tensors *t)
{
    for (int32_t i = 0; i < p->batch; i++)
        next_head_for_each(t->scores.slopes + i * p->heads, p->heads);
}

static void bias_of_head_0(fa_problem *p, fa_tensors *t)
{
    const size_t plane = (size_t)p->seq_q * (size_t)p->seq_kv;
    for (int32_t i = 0; i < t->scores.bias_batch * t->scores.bias_heads; i++)
        memmove(t->scores.bias + (size_t)i * plane,
                t->scores.bias + (size_t)(i / t->scores.bias_heads * t->scores.bias_heads) * plane,
                plane * sizeof(uint16_t));
}

/* Of [batch 2, heads]: what a kernel takes for a descale. */
static void no_k_descale(fa_problem *p, fa_tensors *t) { times(t->scores.k_descale, p->batch * p->kv_heads, 0, 1); }
static void no_v_descale(fa_problem *p, fa_tensors *t) { times(t->scores.v_descale, p->batch * p->kv_heads, 0, 1); }
static void no_q_descale(fa_problem *p, fa_tensors *t) { times(t->scores.q_descale, p->batch * p->heads, 0, 1); }
static void swapped_descales(fa_problem *p, fa_tensors *t)
{
    float *const k = t->scores.k_descale;
    t->scores.k_descale = t->scores.v_descale;
    t->scores.v_descale = k;
}
static void k_descale_for_v(fa_problem *p, fa_tensors *t)
{
    memcpy(t->scores.v_descale, t->scores.k_descale, (size_t)(p->batch * p->kv_heads) * sizeof(float));
}
static void turn_descales(float *descales, int32_t batch, int32_t heads, bool of_batch)
{
    float old[64];
    memcpy(old, descales, (size_t)(batch * heads) * sizeof *old);
    for (int32_t b = 0; b < batch; b++)
        for (int32_t h = 0; h < heads; h++)
            descales[b * heads + h] =
                of_batch ? old[(b + 1) % batch * heads + h] : old[b * heads + (h + heads - 1) % heads];
}
static void q_of_before(fa_problem *p, fa_tensors *t) { turn_descales(t->scores.q_descale, p->batch, p->heads, false); }
/* In each row of `columns` elements d and d ^ by change places. */
static void turn(uint16_t *row, size_t count, int32_t columns, int32_t by)
{
    for (; count > 0; row += columns, count -= (size_t)columns)
        for (int32_t d = 0; d < columns; d++)
            if ((d ^ by) < columns && (d & by) == 0) {
                const uint16_t one = row[d];
                row[d] = row[d ^ by];
                row[d ^ by] = one;
            }
}
static void q_columns_turned(fa_problem *p, fa_tensors *t) { turn(t->q, t->q_count, p->dim, 8); }
static void v_columns_turned(fa_problem *p, fa_tensors *t) { turn(t->v, t->v_count, fa_problem_dim_v(p), 1); }
static void v_keys_turned(fa_problem *p, fa_tensors *t) { turn(t->v, t->v_count, p->seq_kv * p->dim, 4 * p->dim); }
static void v_of_next(fa_problem *p, fa_tensors *t) { turn_descales(t->scores.v_descale, p->batch, p->kv_heads, true); }
static void k_descales_turned(fa_problem *p, fa_tensors *t)
{
    float old[64];
    memcpy(old, t->scores.k_descale, (size_t)(p->batch * p->kv_heads) * sizeof *old);
    for (int32_t b = 0; b < p->batch; b++)
        for (int32_t h = 0; h < p->kv_heads; h++)
            t->scores.k_descale[b * p->kv_heads + h] = old[h * p->batch + b];
}

TEST(other_problems_are_named)
{
    static const struct {
        change *make;
        const char *line, *mistake;
    } cases[] = {
        {k_for_v, SHAPE, "K is read for V"},
        {v_for_k, SHAPE "--causal", "V is read for K"},
        {no_scale, SHAPE, "the scale is missing"},
        {no_scale, SHAPE "--causal --dim 128 --dtype bf16", "the scale is missing"},
        {scale_twice, SHAPE "--dim 16", "the scale is applied twice, or doubled"},
        {own_scale, SHAPE "--scale 0.5", "the scale is 1/sqrt of some dim, not the launch's"},
        {scale_of_dim_v, SHAPE "--dim 96 --dim-v 32", "the scale is that of dim_v"},
        {scale_of_dim_v, SHAPE "--dim 32 --dim-v 96 --causal", "the scale is that of dim_v"},
        {base_2, SHAPE, "log2 e is missing: 2^x for e^x"},
        {base_e, SHAPE "--causal", "log2 e is applied to scores that go to exp"},
        {no_mask, SHAPE "--causal", "the causal mask is missing"},
        {no_mask, SHAPE "--causal --seq-kv 20 --dim 16", "the causal mask is missing"},
        {plain_causal, SHAPE "--mask tree --seq-kv 60", "the tree's mask is missing"},
        {next_batch, SHAPE, "K and V are those of another batch"},
        {next_batch, "--batch 5 --heads 1 --seq 40 --causal", "K and V are those of another batch"},
        {next_head, "--batch 1 --heads 5 --seq 40", "K and V are those of another head"},
        {wide_left, SHAPE "--window 8,0 --causal", "the window shows one key too many on the left"},
        {wide_left, SHAPE "--seq-kv 90 --window 16,5", "the window shows one key too many on the left"},
        {narrow_left, SHAPE "--window 8,0 --causal", "the window shows one key too few on the left"},
        {narrow_left, SHAPE "--window 9,9 --seq-kv 33", "the window shows one key too few on the left"},
        {wide_right, SHAPE "--window 8,3", "the window shows one key too many on the right"},
        {narrow_right, SHAPE "--window 8,3", "the window shows one key too few on the right"},
        {no_window, SHAPE "--window 8,0 --causal", "the window is missing, or one bound"},
        {no_window, SHAPE "--window 8,3", "the window is missing, or one bound"},
        {right_for_causal, SHAPE "--causal --window 8,3", "the window's right bound replaces the causal mask"},
        {left_of_row, SHAPE "--seq-kv 60 --window 4,0", "the window is not shifted bottom-right"},
        {no_chunk, SHAPE "--chunk 9 --causal", "chunks are missing"},
        {used_q, "--heads 2 --lengths 20:33,30:40,9:17 --window 9,4",
         "the number of queries is taken for that of keys"},
        {no_softcap, SHAPE "--softcap 1", "the softcap is missing"},
        {no_sink, SHAPE "--sinks", "the sink is missing"},
        {no_sink, SHAPE "--sinks --window 8,0 --causal --dtype bf16", "the sink is missing"},
        {scaled_sink, SHAPE "--sinks", "the sink is scaled, or in another unit (log2 e)"},
        {sink_often, SHAPE "--sinks", "the sink counts more than once (in every split?)"},
        {no_alibi, SHAPE "--alibi --causal", "ALiBi is missing"},
        {slope_base_2, SHAPE "--alibi", "the slope is in another unit or sign (scale, log2 e)"},
        {slope_of_kv_head, SHAPE "--alibi", "the slope is that of another batch or head"},
        {slope_of_next_head, SHAPE "--alibi", "the slope is that of another batch or head"},
        {sink_of_next_head, SHAPE "--sinks --causal", "the sink is that of another head"},
        {no_bias, SHAPE "--bias", "the bias is missing"},
        {bias_of_head_0, SHAPE "--bias", "the bias is that of another batch, head or row"},
        {q_columns_turned, SHAPE "--causal", "columns of Q and K do not pair: is a fragment or swizzle off?"},
        {v_columns_turned, SHAPE "--dim 24 --dim-v 16", "columns of O change places: is a fragment or swizzle off?"},
        {v_keys_turned, SHAPE "--seq-kv 96 --dtype bf16", "keys of P and V do not pair: is a fragment or swizzle off?"},
        {no_k_descale, SHAPE "--kv-dtype e4m3", "a descale is missing"},
        {no_v_descale, SHAPE "--dtype e4m3 --causal", "a descale is missing"},
        {no_q_descale, SHAPE "--dtype e4m3", "a descale is missing"},
        {swapped_descales, SHAPE "--dtype e4m3", "the descales of K and V are swapped, or one stands for both"},
        {k_descale_for_v, SHAPE "--kv-dtype e4m3 --dtype bf16",
         "the descales of K and V are swapped, or one stands for both"},
        {q_of_before, SHAPE "--dtype e4m3", "a descale is that of another batch or head"},
        {v_of_next, SHAPE "--dtype e4m3 --lengths 30,20,50", "a descale is that of another batch or head"},
        {k_descales_turned, SHAPE "--kv-dtype e4m3 --batch 3", "a descale is that of another batch or head"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(close_bench) bench b = open_bench(cases[i].line), other = open_bench(cases[i].line);
        cases[i].make(&other.problem, &other.tensors);
        compute(&b, &other.problem, &other.tensors);
        named(&b, cases[i].line, cases[i].mistake);
    }
}

/* What is off in another way has no name: sums that are too coarse, an output that is scaled, noise; one row in three
 * that has a mistake beside others that have none. */
TEST(other_faults_are_not_named)
{
    const char *const lines[] = {SHAPE "--seq-kv 200", SHAPE "--causal", SHAPE "--dim 16 --kv-heads 1 --seq-kv 33",
                                 SHAPE "--causal --dtype bf16 --seq-kv 100"};
    const sim_fault faults[] = {SIM_ACC_ROUNDED, SIM_LOGITS_BF16, SIM_OUTPUT_SCALED, SIM_SCALE_OFF};
    int failed = 0;
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        CLEANUP(close_bench) bench b = open_bench(lines[l]);
        const int32_t dim = fa_problem_dim_v(&b.problem);
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            sim_flash(&b.problem, &b.tensors, &b.reference, TILE_N, faults[f], b.output);
            const fa_verdict v = judge(&b, 1e-6);
            failed += !v.passed;
            if (strstr(v.failure, "(explains ") != NULL)
                fail_msg("%s, fault %d: %s", lines[l], (int)faults[f], v.failure);
        }
        for (int noisy = 0; noisy < 2; noisy++) {
            sim_flash(&b.problem, &b.tensors, &b.reference, TILE_N, SIM_GOOD, b.output);
            for (int64_t row = 0; row < fa_problem_rows(&b.problem); row++)
                for (int32_t d = 0; d < dim; d++) {
                    const double sign = (row * 7919 + d * 104729) % 13 - 6.0, right = b.reference.exact[row * dim + d];
                    b.output[row * dim + d] =
                        fa_element_of_float(b.problem.dtype, (float)(right + (noisy ? 0.05 : 0.004) * sign));
                }
            const fa_verdict v = judge(&b, 1e-3);
            assert_false(v.passed);
            assert_null(strstr(v.failure, "(explains "));
        }
    }
    assert_true(failed >= 8); /* of 16: some are no worse than the baseline */
}

/* A mistake in a few of the rows, and noise in the others. */
TEST(most_rows_must_be_explained)
{
    for (int every = 1; every < 8; every += 2) {
        CLEANUP(close_bench) bench b = open_bench(SHAPE);
        const int32_t dim = b.problem.dim;
        sim_flash(&b.problem, &b.tensors, &b.reference, TILE_N, SIM_SWAP_KV, b.output);
        for (int64_t row = 0; row < fa_problem_rows(&b.problem); row++)
            for (int32_t d = 0; d < dim && row % every != 0; d++)
                b.output[row * dim + d] = fa_element_of_float(FA_DTYPE_FP16, (float)((row + d * 31) % 11 - 5));
        const fa_verdict v = judge(&b, 1e-3);
        assert_int_equal(strstr(v.failure, "K and V are swapped (explains") != NULL, every == 1);
    }
}

/* NaN in rows that see no key, in those that see none of their tile's first keys, in one row of these groups more. */
TEST(rows_of_nan_say_what_they_share)
{
    static const struct {
        const char *line;
        int32_t tile_n;
        bool more; /* a row that sees keys from the first on */
        const char *words;
    } cases[] = {
        {SHAPE "--causal --seq-kv 20", TILE_N, false, "row, in rows that see no key: their sum is 0"},
        {SHAPE "--causal --seq-kv 20", TILE_N, true, "row"},
        {SHAPE "--seq-kv 24 --window 3,3", TILE_N, false, "row, in rows that see no key"},
        {SHAPE "--causal --window 8,0", FEW_KEYS, false, "row, in rows that see nothing of their tile's first keys"},
        {SHAPE "--causal --window 8,0", FEW_KEYS, true, "row"},
        {SHAPE "--seq-kv 36 --window 0,0", FEW_KEYS, false,
         "row, in rows that see nothing of their tile's first keys"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(close_bench) bench b = open_bench(cases[i].line);
        compute(&b, &b.problem, &b.tensors);
        for (int64_t flat = 0; flat < b.reference.row_count; flat++) {
            const fa_row at = fa_problem_row(&b.problem, flat);
            const fa_keys keys = fa_problem_keys(&b.problem, at.batch, at.row);
            const int32_t first = fa_problem_keys(&b.problem, at.batch, at.row / TILE_M * TILE_M).first;
            const bool empty = keys.first == keys.end, late = keys.first >= first + FEW_KEYS;
            if (empty || (late && cases[i].tile_n == FEW_KEYS) || (cases[i].more && at.row >= 2 * TILE_M))
                for (int32_t d = 0; d < b.problem.dim; d++)
                    b.output[flat * b.problem.dim + d] = 0x7E00;
        }
        tile_n = cases[i].tile_n;
        const fa_verdict v = judge(&b, 1e-3);
        const char *said = strstr(v.failure, "NaN or infinity throughout the ");
        const bool shared = said != NULL && strstr(said, "in rows that see") != NULL;
        if (said == NULL || strstr(said, cases[i].words) == NULL || shared == cases[i].more)
            fail_msg("%s: '%s'", cases[i].line, v.failure);
        tile_n = TILE_N;
    }
}

/* Wrong log-sum-exps, made from the right one and the largest score of a row. */
TEST(mistakes_of_a_log_sum_exp_are_named)
{
    static const struct {
        const char *line, *mistake;   /* NULL: none fits */
        double right, max, sink, pos; /* what is added up: times the right one, the maximum, ... */
        double off;
    } cases[] = {
        {SHAPE, "it is a logarithm to base 2", 1.442695, 0, 0, 0, 0},
        {SHAPE "--causal", "the maximum is natural, the sum's logarithm to base 2", 1.442695, -0.442695, 0, 0, 0},
        {SHAPE, "the maximum is in units of log2 e, the sum's logarithm natural", 1, 0.442695, 0, 0, 0},
        {SHAPE, "the maximum is missing", 1, -1, 0, 0, 0},
        {SHAPE "--sinks", "the logarithm of the sum is missing", 0, 1, 0, 0, 0},
        {SHAPE "--dim 16", "the maximum is not scaled", 1, 3, 0, 0, 0},
        {SHAPE "--sinks", "the sink is not part of it", 1, 0, 1, 0, 0},
        {SHAPE "--alibi --causal --seq-kv 50", "ALiBi's part that is the same", 1, 0, 0, 1, 0},
        {SHAPE "--sinks --alibi", NULL, 1, 0, 0, 0, 0.1},
        {SHAPE, NULL, 1.05, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(close_bench) bench b = open_bench(cases[i].line);
        FREED float *lse = fa_alloc((size_t)fa_problem_rows(&b.problem) * sizeof *lse);
        for (int64_t row = 0; row < b.reference.row_count; row++) {
            const fa_recipe r = fa_recipe_of(&b.problem, &b.tensors, row);
            double max = r.sink;
            for (int32_t key = r.keys.first; key < r.keys.end; key++) {
                double sum = 0.0;
                for (int32_t d = 0; d < b.problem.dim; d++)
                    sum += (double)fa_half_to_float(r.q[d]) *
                           (double)fa_half_to_float(r.k[(r.first + key) * b.problem.dim + d]);
                max = fmax(max, sum * (double)b.problem.scale);
            }
            const double right = b.reference.lse[row];
            lse[row] = (float)(cases[i].right * right + cases[i].max * max + cases[i].off);
            if (cases[i].sink > 0)
                lse[row] = (float)log(exp(right) - exp(r.sink));
            if (cases[i].pos > 0)
                lse[row] = (float)(right + r.slope * (double)r.pos);
        }
        fa_reference reference = b.reference;
        reference.tensors = &b.tensors;
        const fa_lse_verdict v = fa_judge_lse(&b.problem, &reference, lse, false);
        const char *said = strstr(v.failure, "; looks like: ");
        if (v.passed || (said != NULL) != (cases[i].mistake != NULL) ||
            (said != NULL && strstr(said, cases[i].mistake) == NULL))
            fail_msg("%s: '%s'", cases[i].line, v.failure);
    }
}
