/* FP64 attention and its plain twin in the type of the tensors, rows in blocks of one head, keys in tiles. Inner loops
 * run over keys (Q K^T, K transposed) or columns (P V), never along a sum: they vectorise without reordering one
 * addition, so the result is the same for any thread count and any vector width (-ffp-contract=off, as -std=c17
 * implies). */
#include "check/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "check/choose_rows.h"
#include "check/scores.h"

enum {
    TILE_KEYS = 64,
    BLOCK_ROWS = 64,        /* query rows that share a conversion of K and V */
    BLOCK_LOGITS = 1 << 20, /* rows * seq_kv of a block: 16 MiB of scratch per thread at most */
};
/* One thread's working memory for a block of rows. Logits become probabilities in place. */
typedef struct scratch {
    double *logits;     /* [rows][seq_kv_padded] */
    float *half_logits; /* the baseline's, same shape */
    double *q, *out;    /* [rows][dim], [rows][dim_v] */
    float *half_q, *half_out;
    double *tile; /* [dim][TILE_KEYS] of K or [TILE_KEYS][dim_v] of V */
    float *half_tile;
    size_t stride; /* seq_kv rounded up to TILE_KEYS */
} scratch;

fa_place fa_place_of(const fa_problem *problem, int64_t flat, int32_t col)
{
    const fa_row at = fa_problem_row(problem, flat);
    return (fa_place){.batch = at.batch, .head = at.head, .row = at.row, .col = col};
}

static scratch scratch_make(const fa_problem *problem, int32_t block_rows)
{
    const size_t dim = (size_t)problem->dim, dim_v = (size_t)fa_problem_dim_v(problem), rows = (size_t)block_rows;
    const size_t tile = TILE_KEYS * (dim > dim_v ? dim : dim_v);
    scratch s = {.stride = ((size_t)problem->seq_kv + TILE_KEYS - 1) / TILE_KEYS * TILE_KEYS};
    s.logits = fa_alloc(rows * s.stride * sizeof *s.logits);
    s.half_logits = fa_alloc(rows * s.stride * sizeof *s.half_logits);
    s.q = fa_alloc(rows * dim * sizeof *s.q);
    s.out = fa_alloc(rows * dim_v * sizeof *s.out);
    s.half_q = fa_alloc(rows * dim * sizeof *s.half_q);
    s.half_out = fa_alloc(rows * dim_v * sizeof *s.half_out);
    s.tile = fa_alloc(tile * sizeof *s.tile);
    s.half_tile = fa_alloc(tile * sizeof *s.half_tile);
    return s;
}

static void scratch_free(scratch *s)
{
    free(s->logits);
    free(s->half_logits);
    free(s->q);
    free(s->out);
    free(s->half_q);
    free(s->half_out);
    free(s->tile);
    free(s->half_tile);
}

/* Rows of one (batch, head) that are worked on together. */
typedef struct block {
    const fa_problem *problem;
    int32_t count, seq_kv;
    int32_t batch, kv_head;
    fa_keys keys[BLOCK_ROWS]; /* what each row sees */
    fa_keys all;              /* from the first key of any row to the last, from a tile's beginning */
    bool acc_fp16;
    fa_dtype dtype_kv;
    float q_descale, k_descale, v_descale;
} block;

/* The row of K or V that holds a key of the block. */
static const uint16_t *row_of(const block *b, const uint16_t *tensor, int32_t dim, int32_t key)
{
    return tensor + fa_problem_key_row(b->problem, b->batch, b->kv_head, key) * dim;
}

/* K tile from key `first` to FP64 and FP32, transposed to [dim][TILE_KEYS]; keys past the end are 0. */
static void convert_keys(const block *b, const uint16_t *k, int32_t first, int32_t dim, scratch *s)
{
    for (int32_t j = 0; j < TILE_KEYS; j++) {
        const uint16_t *row = first + j < b->seq_kv ? row_of(b, k, dim, first + j) : NULL;
        for (int32_t d = 0; d < dim; d++) {
            const float value = row != NULL ? fa_element_to_float(b->dtype_kv, row[d]) : 0.0f;
            s->half_tile[d * TILE_KEYS + j] = value * b->k_descale;
            s->tile[d * TILE_KEYS + j] = (double)value * (double)b->k_descale;
        }
    }
}

static void convert_rows(fa_dtype dtype, float descale, const uint16_t *from, size_t count, float *half_to, double *to)
{
    for (size_t i = 0; i < count; i++) {
        const float value = fa_element_to_float(dtype, from[i]);
        half_to[i] = value * descale;
        to[i] = (double)value * (double)descale;
    }
}

#define DOT_TILE(name, real)                                                                                          \
    FA_CLONES static void name(const real *restrict q, const real *restrict tile, int32_t dim, real *restrict logits) \
    {                                                                                                                 \
        real sum[TILE_KEYS] = {0};                                                                                    \
        for (int32_t d = 0; d < dim; d += 4) {                                                                        \
            const real *t = tile + d * TILE_KEYS;                                                                     \
            for (int32_t j = 0; j < TILE_KEYS; j++)                                                                   \
                sum[j] += (q[d] * t[j] + q[d + 1] * t[TILE_KEYS + j]) +                                               \
                          (q[d + 2] * t[2 * TILE_KEYS + j] + q[d + 3] * t[3 * TILE_KEYS + j]);                        \
        }                                                                                                             \
        memcpy(logits, sum, sizeof sum);                                                                              \
    }
DOT_TILE(dot_tile, double)
DOT_TILE(half_dot_tile, float)

/* --acc fp16: rounded after every addition. */
static void half_dot_tile_acc16(const float *restrict q, const float *restrict tile, int32_t dim,
                                float *restrict logits)
{
    float sum[TILE_KEYS] = {0};
    for (int32_t d = 0; d < dim; d++)
        for (int32_t j = 0; j < TILE_KEYS; j++)
            sum[j] = fa_round_half(sum[j] + q[d] * tile[d * TILE_KEYS + j]);
    memcpy(logits, sum, sizeof sum);
}

static void logits_of(const block *b, const uint16_t *k, scratch *s)
{
    const int32_t dim = b->problem->dim;
    for (int32_t first = b->all.first; first < b->all.end; first += TILE_KEYS) {
        convert_keys(b, k, first, dim, s);
        for (int32_t r = 0; r < b->count; r++) {
            if (first >= b->keys[r].end || first + TILE_KEYS <= b->keys[r].first)
                continue;
            const size_t at = (size_t)r * s->stride + (size_t)first;
            dot_tile(s->q + r * dim, s->tile, dim, s->logits + at);
            (b->acc_fp16 ? half_dot_tile_acc16 : half_dot_tile)(s->half_q + r * dim, s->half_tile, dim,
                                                                s->half_logits + at);
        }
    }
}

#define ADD_VALUES(name, real)                                                                            \
    FA_CLONES static void name(const real *restrict p, const real *restrict v, int32_t keys, int32_t dim, \
                               real *restrict out)                                                        \
    {                                                                                                     \
        int32_t j = 0;                                                                                    \
        for (; j + 4 <= keys; j += 4) {                                                                   \
            const real *v0 = v + j * dim;                                                                 \
            for (int32_t d = 0; d < dim; d++)                                                             \
                out[d] += (p[j] * v0[d] + p[j + 1] * v0[dim + d]) +                                       \
                          (p[j + 2] * v0[2 * dim + d] + p[j + 3] * v0[3 * dim + d]);                      \
        }                                                                                                 \
        for (; j < keys; j++)                                                                             \
            for (int32_t d = 0; d < dim; d++)                                                             \
                out[d] += p[j] * v[j * dim + d];                                                          \
    }
ADD_VALUES(add_values, double)
ADD_VALUES(half_add_values, float)

static void half_add_values_acc16(const float *restrict p, const float *restrict v, int32_t keys, int32_t dim,
                                  float *restrict out)
{
    for (int32_t j = 0; j < keys; j++)
        for (int32_t d = 0; d < dim; d++)
            out[d] = fa_round_half(out[d] + p[j] * v[j * dim + d]);
}

static int32_t largest(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static void outputs_of(const block *b, const uint16_t *v, scratch *s)
{
    const int32_t dim = fa_problem_dim_v(b->problem);
    memset(s->out, 0, (size_t)b->count * (size_t)dim * sizeof *s->out);
    memset(s->half_out, 0, (size_t)b->count * (size_t)dim * sizeof *s->half_out);
    for (int32_t first = b->all.first; first < b->all.end; first += TILE_KEYS) {
        const int32_t tile_keys = least(b->all.end - first, TILE_KEYS);
        for (int32_t j = 0; j < tile_keys; j++)
            convert_rows(b->dtype_kv, b->v_descale, row_of(b, v, dim, first + j), (size_t)dim, s->half_tile + j * dim,
                         s->tile + j * dim);
        for (int32_t r = 0; r < b->count; r++) {
            const int32_t begin = largest(b->keys[r].first - first, 0), end = least(b->keys[r].end - first, tile_keys);
            if (end <= begin)
                continue;
            const size_t at = (size_t)r * s->stride + (size_t)(first + begin);
            add_values(s->logits + at, s->tile + begin * dim, end - begin, dim, s->out + r * dim);
            (b->acc_fp16 ? half_add_values_acc16 : half_add_values)(s->half_logits + at, s->half_tile + begin * dim,
                                                                    end - begin, dim, s->half_out + r * dim);
        }
    }
}

/* Rows [first, first + count) of the reference, all of one (batch, head). */
static void reference_block(const fa_problem *problem, const fa_tensors *tensors, const fa_reference *reference,
                            int64_t first, int32_t count, bool acc_fp16, scratch *s)
{
    const int32_t dim = problem->dim;
    const size_t size = (size_t)dim, size_v = (size_t)fa_problem_dim_v(problem);
    const int64_t *rows = reference->rows + first;
    fa_row at = fa_problem_row(problem, rows[0]);
    block b = {.problem = problem,
               .count = count,
               .seq_kv = at.seq_kv,
               .batch = at.batch,
               .kv_head = at.head / (problem->heads / problem->kv_heads),
               .acc_fp16 = acc_fp16,
               .dtype_kv = fa_problem_dtype_kv(problem)};
    const fa_score_tensors *scores = &tensors->scores;
    const fa_dtype dtype_o = fa_problem_dtype_o(problem);
    b.q_descale = fa_descale(scores->q_descale, problem, true, b.batch, at.head);
    b.k_descale = fa_descale(scores->k_descale, problem, false, b.batch, b.kv_head);
    b.v_descale = fa_descale(scores->v_descale, problem, false, b.batch, b.kv_head);
    b.all.first = at.seq_kv;
    for (int32_t r = 0; r < count; r++) {
        const fa_keys keys = b.keys[r] = fa_problem_keys(problem, at.batch, fa_problem_row(problem, rows[r]).row);
        b.all.end = largest(b.all.end, keys.end);
        b.all.first = keys.end > keys.first ? least(b.all.first, keys.first) : b.all.first;
        convert_rows(problem->dtype, b.q_descale, tensors->q + (size_t)rows[r] * size, size, s->half_q + r * dim,
                     s->q + r * dim);
    }
    b.all.first -= b.all.first % TILE_KEYS;
    logits_of(&b, tensors->k, s);
    for (int32_t r = 0; r < count; r++) {
        const size_t row = (size_t)r * s->stride;
        at.row = fa_problem_row(problem, rows[r]).row;
        reference->lse[first + r] = fa_scores_softmax(problem, &tensors->scores, &at, b.keys[r], s->logits + row);
        reference->baseline_lse[first + r] = fa_scores_baseline(problem, &tensors->scores, &at, b.keys[r], acc_fp16,
                                                                s->half_logits + row, reference->sway + first + r);
    }
    outputs_of(&b, tensors->v, s);
    memcpy(reference->exact + (size_t)first * size_v, s->out, (size_t)count * size_v * sizeof *s->out);
    for (size_t i = 0; i < (size_t)count * size_v; i++)
        reference->baseline[(size_t)first * size_v + i] =
            fa_element_of_float(dtype_o, fa_element_round(dtype_o, s->half_out[i]));
}

/* Cuts the rows into blocks: runs of at most block_rows rows of one head of a sequence. Returns how many. */
static int64_t cut_blocks(const fa_problem *problem, const fa_reference *reference, int32_t block_rows, int64_t *starts)
{
    int64_t blocks = 0;
    fa_row before = {.batch = -1};
    for (int64_t i = 0; i < reference->row_count; i++) {
        const fa_row at = fa_problem_row(problem, reference->rows[i]);
        if (at.batch != before.batch || at.head != before.head || i - starts[blocks - 1] == block_rows)
            starts[blocks++] = i;
        before = at;
    }
    starts[blocks] = reference->row_count;
    return blocks;
}

fa_reference fa_reference_of_rows(const fa_problem *problem, const fa_tensors *tensors, int64_t *rows,
                                  int64_t row_count, bool acc_fp16)
{
    const size_t count = (size_t)row_count * (size_t)fa_problem_dim_v(problem);
    const fa_reference reference = {.unit = 1.0,
                                    .row_count = row_count,
                                    .rows = rows,
                                    .exact = fa_alloc(count * sizeof *reference.exact),
                                    .baseline = fa_alloc(count * sizeof *reference.baseline),
                                    .lse = fa_alloc((size_t)row_count * sizeof *reference.lse),
                                    .baseline_lse = fa_alloc((size_t)row_count * sizeof *reference.baseline_lse),
                                    .sway = fa_alloc((size_t)row_count * sizeof *reference.sway)};
    const int32_t fitting = BLOCK_LOGITS / largest(problem->seq_kv, 1);
    const int32_t block_rows = fitting < 1 ? 1 : fitting < BLOCK_ROWS ? fitting : BLOCK_ROWS;
    int64_t *starts = fa_alloc((size_t)(row_count + 1) * sizeof *starts);
    const int64_t blocks = cut_blocks(problem, &reference, block_rows, starts);
    const bool worth_threads = row_count * problem->seq_kv * problem->dim > 1 << 20;
#pragma omp parallel if (worth_threads)
    {
        scratch s = scratch_make(problem, block_rows);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < blocks; i++)
            reference_block(problem, tensors, &reference, starts[i], (int32_t)(starts[i + 1] - starts[i]), acc_fp16,
                            &s);
        scratch_free(&s);
    }
    free(starts);
    return reference;
}

fa_reference fa_reference_make(const fa_problem *problem, const fa_tensors *tensors, int32_t tile_m, bool acc_fp16,
                               uint64_t seed)
{
    FA_ASSERT(tile_m >= 1, "tile of %d rows", tile_m);
    int64_t row_count, *rows = fa_choose_rows(problem, tile_m, seed, &row_count);
    return fa_reference_of_rows(problem, tensors, rows, row_count, acc_fp16);
}

void fa_reference_free(fa_reference *reference)
{
    free(reference->rows);
    free(reference->exact);
    free(reference->baseline);
    free(reference->lse);
    free(reference->baseline_lse);
    free(reference->sway);
    *reference = (fa_reference){0};
}
