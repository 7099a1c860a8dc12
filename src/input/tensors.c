/* Inputs from a counter: every element is a hash of (seed, tensor, index), looked up in a table of quantiles. Whole
 * rows (dim elements) are the unit of work, because the distributions with a meaning give a row to a query or a key. */
#include "input/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "input/descales.h"

enum { TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_SIDE, TENSOR_DO = 32 };

/* What a row needs to know of its place. */
typedef struct place {
    const fa_problem *problem;
    fa_dist dist;
    int tensor;
    uint64_t seed, stream;
    int64_t flat;   /* stored row of the tensor: (batch * heads + head) * rows + row */
    int32_t dim;    /* of the tensor */
    fa_dtype dtype; /* that it is drawn in */
    int32_t batch, head, row;
} place;

static uint16_t element_of(const place *at, float value) { return fa_element_of_float(at->dtype, value); }

static float uniform(uint64_t bits) { return ((float)(bits & 0xFFFF) - 32767.5f) / 32768.0f; }

static void drawn_row(const place *at, float (*draw)(uint64_t bits), float scale, uint16_t *out)
{
    const int32_t dim = at->dim;
    for (int32_t d = 0; d < dim; d += 4) {
        const uint64_t bits = fa_draw_bits(at->stream, (uint64_t)(at->flat * dim + d));
        for (int32_t i = 0; i < 4; i++)
            out[d + i] = element_of(at, scale * draw(bits >> (16 * i)));
    }
}

static void normal_row(const place *at, float scale, uint16_t *out) { drawn_row(at, fa_draw_normal, scale, out); }

static void outlier_row(const place *at, uint16_t *out)
{
    normal_row(at, 1.0f, out);
    const uint64_t side = fa_draw_stream(at->stream, TENSOR_SIDE);
    for (int32_t d = 0; d < at->dim; d++)
        if (fa_draw_bits(side, (uint64_t)(at->flat * at->dim + d)) % 1000 == 0)
            out[d] = element_of(at, 10.0f * fa_element_to_float(at->dtype, out[d]));
}

/* Logit of (row, key) = slope(row) * key, exactly: the key goes in three digits of base 128 (exact in either type) into
 * three columns of K, and Q carries slope, 128 slope and 16384 slope. Slopes have all significant bits of the type and
 * differ from row to row; the logits cover 2 to 8 whatever the length, and every key is above (falling: below) all keys
 * before it. */
static void ramp_row(const place *at, bool falling, uint16_t *out)
{
    const fa_problem *problem = at->problem;
    memset(out, 0, (size_t)at->dim * sizeof *out);
    if (at->tensor == TENSOR_K) {
        for (int32_t digit = 0; digit < 3; digit++)
            out[digit] = element_of(at, (float)(at->row >> (7 * digit) & 127));
        return;
    }
    int exponent;
    frexp(4.0 / ((double)problem->seq_kv * (double)problem->scale), &exponent);
    /* FP16 sets the limits: 11 bits above 2^-24 below, 16384 slope within it above. */
    exponent = exponent - 1 < -14 ? -14 : exponent - 1 > 1 ? 1 : exponent - 1;
    const uint64_t steps = (uint64_t)1 << (fa_dtype_bits(at->dtype) - 1);
    const double mantissa = 1.0 + (double)(fa_draw_bits(at->stream, (uint64_t)at->flat) % steps) / (double)steps;
    const double slope = ldexp(falling ? -mantissa : mantissa, exponent);
    for (int32_t digit = 0; digit < 3; digit++)
        out[digit] = element_of(at, (float)ldexp(slope, 7 * digit));
}

/* Sign of column d in the code of a key: its index in the first 16 columns (so that no two of 65536 keys share a code),
 * hashed bits in the others. */
static float needle_sign(uint64_t seed, uint64_t key_row, int32_t key, int32_t d)
{
    const uint64_t bits = d < 16 ? (uint64_t)key ^ 0x5A5A
                                 : fa_draw_bits(fa_draw_stream(seed, TENSOR_SIDE), key_row * 4 + (uint64_t)(d / 64));
    return bits >> (d % 64) & 1 ? 1.0f : -1.0f;
}

/* V holds the key's index in digits of base 32: column d has digit d % 4, as (digit - 16) / 16. */
static void index_row(const place *at, uint16_t *out)
{
    for (int32_t d = 0; d < at->dim; d++)
        out[d] = element_of(at, (float)((at->row >> (5 * (d % 4)) & 31) - 16) / 16.0f);
}

/* K holds codes of +-1, Q the code of one key its row sees, so long that this key's logit is 96 and nearly all of the
 * weight is its own. V holds the key's index. */
static void needle_row(const place *at, uint16_t *out)
{
    const fa_problem *problem = at->problem;
    const int32_t dim = at->dim, group = problem->heads / problem->kv_heads;
    int32_t key = at->row;
    int32_t kv_head = at->head;
    float length = 1.0f;
    if (at->tensor == TENSOR_V) {
        index_row(at, out);
        return;
    }
    if (at->tensor == TENSOR_Q) {
        key = fa_problem_some_key(problem, at->batch, at->row, fa_draw_bits(at->stream, (uint64_t)at->flat));
        key = key < 0 ? 0 : key;
        kv_head = at->head / group;
        length = fminf(96.0f / ((float)dim * problem->scale), 16384.0f);
    }
    const uint64_t key_row =
        ((uint64_t)at->batch * (uint64_t)problem->kv_heads + (uint64_t)kv_head) * (uint64_t)problem->seq_kv +
        (uint64_t)key;
    for (int32_t d = 0; d < dim; d++)
        out[d] = element_of(at, length * needle_sign(at->seed, key_row, key, d));
}

/* One key has all of a row's weight, as with needle, and each column of its code but the last is worth 48. The last
 * column adds 20000 to a logit, or takes 20000 away. In a K/V head of odd number it does the same to every key: it adds
 * in odd rows, and takes away in even ones. In a head of even number the two halves of the keys differ in sign, so what
 * a causal mask hides may lie 40000 above all that a row sees. BF16 has larger steps, so that its codes stay apart. */
static void cliff_row(const place *at, uint16_t *out)
{
    const fa_problem *problem = at->problem;
    const int32_t last = at->dim - 1, group = problem->heads / problem->kv_heads;
    const int32_t half = (problem->seq_kv + 1) / 2;
    const fa_dtype coarser = fa_problem_has_descales(problem) ? FA_DTYPE_BF16 : problem->dtype; /* of Q, K and V */
    const float unit = (float)fa_dtype_coarseness(coarser) / problem->scale;
    int32_t key = at->row, kv_head = at->head;
    float length = 1.0f, height = fminf(sqrtf(20000.0f * unit), 32768.0f);
    if (at->tensor == TENSOR_V) {
        index_row(at, out);
        return;
    }
    if (at->tensor == TENSOR_Q) {
        kv_head = at->head / group;
        const fa_keys seen = fa_problem_keys(problem, at->batch, at->row);
        const bool upwards = at->row % 2 == 1, split = kv_head % 2 == 0;
        const int32_t begin = split && upwards && seen.end > half && seen.first < half ? half : seen.first;
        const int32_t end = split && !upwards && seen.end > half && seen.first < half ? half : seen.end;
        key =
            end > begin ? begin + (int32_t)(fa_draw_bits(at->stream, (uint64_t)at->flat) % (uint64_t)(end - begin)) : 0;
        length = fminf(48.0f * unit, 16384.0f);
        height = upwards ? height : -height;
    } else if (kv_head % 2 == 0 && key < half) {
        height = -height;
    }
    const uint64_t key_row =
        ((uint64_t)at->batch * (uint64_t)problem->kv_heads + (uint64_t)kv_head) * (uint64_t)problem->seq_kv +
        (uint64_t)key;
    for (int32_t d = 0; d < last; d++)
        out[d] = element_of(at, length * needle_sign(at->seed, key_row, key, d));
    out[last] = element_of(at, height);
}

/* Same row for every key of a head: the weights sum to one, so O equals it. */
static void constant_row(const place *at, uint16_t *out)
{
    place first = *at;
    first.flat = at->flat - at->row;
    normal_row(&first, 1.0f, out);
}

/* Columns 0, 1, 2, 3 (mod 4) of V: batch, K/V head, column, and a ramp over the keys. The first three are the same for
 * every key, so the output shows where it was read from; the ramp shows which keys took part. All exact in the type:
 * codes from -half to half - 1, in units of 1 / half. */
static void coded_row(const place *at, uint16_t *out)
{
    const fa_problem *problem = at->problem;
    const int32_t half = at->dtype == FA_DTYPE_BF16 ? 256 : 512, count = 2 * half;
    for (int32_t d = 0; d < at->dim; d++) {
        const int32_t codes[4] = {at->batch % count, at->head % count, d,
                                  (int32_t)((int64_t)at->row * count / problem->seq_kv)};
        out[d] = element_of(at, (float)(codes[d % 4] - half) / (float)half);
    }
}

/* The last column of Q times that of K takes 128 off every logit. */
static void low_row(const place *at, uint16_t *out)
{
    const int32_t last = at->dim - 1;
    const float length = fminf(sqrtf(128.0f / at->problem->scale), 32768.0f);
    normal_row(at, 1.0f, out);
    if (at->tensor != TENSOR_V)
        out[last] = element_of(at, at->tensor == TENSOR_Q ? -length : length);
}

/* dO is normal, unless the distribution says how large elements are. */
static void fill_row(const place *at, uint16_t *out)
{
    const bool small = at->dist == FA_DIST_UNIFORM || at->dist == FA_DIST_OUTLIER;
    const bool is_v = at->tensor == TENSOR_V;
    switch (at->tensor == TENSOR_DO && !small ? FA_DIST_NORMAL : at->dist) {
    case FA_DIST_UNIFORM:
        drawn_row(at, uniform, 1.0f, out);
        return;
    case FA_DIST_OUTLIER:
        outlier_row(at, out);
        return;
    case FA_DIST_SHARP:
        normal_row(at, at->tensor == TENSOR_Q ? 4.0f : 1.0f, out);
        return;
    case FA_DIST_RISING:
    case FA_DIST_FALLING:
        if (is_v)
            normal_row(at, 1.0f, out);
        else
            ramp_row(at, at->dist == FA_DIST_FALLING, out);
        return;
    case FA_DIST_NEEDLE:
        needle_row(at, out);
        return;
    case FA_DIST_CONSTANT_V:
        if (is_v)
            constant_row(at, out);
        else
            normal_row(at, 1.0f, out);
        return;
    case FA_DIST_CODED:
        if (is_v)
            coded_row(at, out);
        else
            normal_row(at, 1.0f, out);
        return;
    case FA_DIST_LOW:
        low_row(at, out);
        return;
    case FA_DIST_CLIFF:
        cliff_row(at, out);
        return;
    case FA_DIST_MEAN:
        normal_row(at, 1.0f, out);
        for (int32_t d = 0; is_v && d < at->dim; d++)
            out[d] = element_of(at, 1.0f + fa_element_to_float(at->dtype, out[d]));
        return;
    case FA_DIST_NORMAL:
        normal_row(at, 1.0f, out);
        return;
    }
    FA_ASSERT(false, "distribution %d", (int)at->dist);
}

/* Where a stored row lies; false where it belongs to no sequence. */
static bool find_place(const fa_problem *problem, bool query, int64_t flat, place *at)
{
    const fa_row row = query ? fa_problem_row(problem, flat) : fa_problem_key_at(problem, flat);
    at->flat = flat;
    at->batch = row.batch;
    at->head = row.head;
    at->row = row.row;
    return row.used;
}

static int64_t rows_of(const fa_problem *problem, bool query)
{
    return query ? fa_problem_rows(problem)
                 : (int64_t)fa_problem_stored_batch_kv(problem) * problem->kv_heads * fa_problem_stored_kv(problem);
}

static uint16_t *make_tensor(const fa_problem *problem, fa_dist dist, uint64_t seed, int tensor)
{
    const bool query = tensor == TENSOR_Q || tensor == TENSOR_DO;
    const fa_dtype dtype = query ? problem->dtype : fa_problem_dtype_kv(problem);
    const int64_t rows = rows_of(problem, query);
    const int32_t dim = tensor == TENSOR_V || tensor == TENSOR_DO ? fa_problem_dim_v(problem) : problem->dim;
    const uint64_t stream = fa_draw_stream(seed, tensor);
    uint16_t *data = fa_alloc((size_t)rows * (size_t)dim * sizeof *data);
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16) /* less is not worth waking threads */
    for (int64_t flat = 0; flat < rows; flat++) {
        place at = {.problem = problem,
                    .dist = dist,
                    .tensor = tensor,
                    .seed = seed,
                    .stream = stream,
                    .dim = dim,
                    .dtype = dtype == FA_DTYPE_E4M3 ? FA_DTYPE_BF16 : dtype};
        if (find_place(problem, query, flat, &at))
            fill_row(&at, data + flat * dim);
    }
    return data;
}

/* Rows between sequences become poison. */
static void poison_gaps(const fa_problem *problem, bool query, int32_t dim, uint16_t *data)
{
    const int64_t rows = rows_of(problem, query);
    if (problem->lengths == NULL && (problem->pages == NULL || query))
        return;
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16) /* free pages are most of a cache */
    for (int64_t flat = 0; flat < rows; flat++) {
        place at = {.problem = problem};
        if (!find_place(problem, query, flat, &at))
            memset(data + flat * dim, 0xFF, (size_t)dim * sizeof *data);
    }
}

static void quantise_all(const fa_problem *problem, uint64_t seed, fa_tensors *t)
{
    fa_score_tensors *scores = &t->scores;
    if (problem->dtype == FA_DTYPE_E4M3)
        scores->q_descale = fa_descales_quantise(problem, seed, FA_DESCALE_Q, t->q_count, t->q);
    if (fa_problem_has_descales(problem)) {
        scores->k_descale = fa_descales_quantise(problem, seed, FA_DESCALE_K, t->k_count, t->k);
        scores->v_descale = fa_descales_quantise(problem, seed, FA_DESCALE_V, t->v_count, t->v);
    }
}

void fa_tensors_complete(const fa_problem *problem, uint64_t seed, fa_tensors *tensors)
{
    poison_gaps(problem, true, problem->dim, tensors->q);
    poison_gaps(problem, false, problem->dim, tensors->k);
    poison_gaps(problem, false, fa_problem_dim_v(problem), tensors->v);
    tensors->scores = fa_score_tensors_make(problem, seed);
    if (problem->backward && tensors->dout == NULL)
        tensors->dout = make_tensor(problem, FA_DIST_NORMAL, seed, TENSOR_DO);
    if (problem->backward)
        poison_gaps(problem, true, fa_problem_dim_v(problem), tensors->dout);
}

void fa_tensors_take_v(const fa_problem *problem, fa_tensors *tensors)
{
    const uint16_t *k = tensors->k;
    if (!problem->v_in_k)
        return;
    const size_t dim = (size_t)problem->dim, dim_v = (size_t)fa_problem_dim_v(problem);
    const size_t rows = fa_problem_k_count(problem) / dim;
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (size_t row = 0; row < rows; row++)
        memcpy(tensors->v + row * dim_v, k + row * dim, dim_v * sizeof *k);
    for (int32_t i = 0; tensors->scores.v_descale != NULL && i < problem->batch * problem->kv_heads; i++)
        tensors->scores.v_descale[i] = tensors->scores.k_descale[i];
}

fa_tensors fa_tensors_make(const fa_problem *problem, fa_dist dist, uint64_t seed)
{
    fa_tensors tensors = {
        .q = make_tensor(problem, dist, seed, TENSOR_Q),
        .k = make_tensor(problem, dist, seed, TENSOR_K),
        .v = make_tensor(problem, dist, seed, TENSOR_V),
        .q_count = fa_problem_q_count(problem),
        .k_count = fa_problem_k_count(problem),
        .v_count = fa_problem_v_count(problem),
    };
    if (problem->backward)
        tensors.dout = make_tensor(problem, dist, seed, TENSOR_DO);
    fa_tensors_complete(problem, seed, &tensors);
    quantise_all(problem, seed, &tensors);
    fa_tensors_take_v(problem, &tensors);
    return tensors;
}

void fa_tensors_redraw_q(const fa_problem *problem, fa_dist dist, uint64_t seed, fa_tensors *tensors)
{
    free(tensors->q);
    free(tensors->scores.q_descale);
    tensors->q = make_tensor(problem, dist, seed, TENSOR_Q);
    poison_gaps(problem, true, problem->dim, tensors->q);
    tensors->scores.q_descale = problem->dtype == FA_DTYPE_E4M3
                                    ? fa_descales_quantise(problem, seed, FA_DESCALE_Q, tensors->q_count, tensors->q)
                                    : NULL;
}

void fa_tensors_free(fa_tensors *tensors)
{
    free(tensors->q);
    free(tensors->k);
    free(tensors->v);
    free(tensors->dout);
    free(tensors->o);
    free(tensors->lse);
    fa_score_tensors_free(&tensors->scores);
    *tensors = (fa_tensors){0};
}
