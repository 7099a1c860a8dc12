#include "simulate.h"
#include "unit.h"

#include <math.h>

void close_bench(bench *b)
{
    fa_reference_free(&b->reference);
    fa_tensors_free(&b->tensors);
    fa_problem_free(&b->problem);
    free(b->output);
}

static float *to_floats(fa_dtype dtype, const uint16_t *from, size_t count)
{
    float *to = fa_alloc(count * sizeof *to);
    for (size_t i = 0; i < count; i++)
        to[i] = fa_element_to_float(dtype, from[i]);
    return to;
}

static float rounded(fa_dtype dtype, float value)
{
    return fa_element_to_float(dtype, fa_element_of_float(dtype, value));
}

static float to_bf16(float value)
{
    const uint32_t bits = fa_bits_of_float(value);
    return fa_float_of_bits((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}

static int32_t keys_of(const fa_problem *problem, int32_t row, sim_fault fault)
{
    int32_t keys = fa_problem_keys(problem, 0, row).end;
    if (fault == SIM_MEAN_OF_V)
        return problem->seq_kv;
    if (!problem->causal)
        return keys;
    keys += fault == SIM_CAUSAL_LATE ? 1 : fault == SIM_CAUSAL_EARLY ? -1 : 0;
    if (fault == SIM_CAUSAL_TOP_LEFT)
        keys = row + 1;
    return keys < 0 ? 0 : keys > problem->seq_kv ? problem->seq_kv : keys;
}

/* k_t: [dim][seq_kv] */
static void flash_row(const fa_problem *problem, const float *q, const float *k_t, const float *v, int32_t keys,
                      int32_t tile_n, sim_fault fault, float *logits, float *acc, uint16_t *out)
{
    const int32_t dim = problem->dim;
    const float log2e = 1.44269504f, scale = problem->scale * (fault == SIM_SCALE_OFF ? 1.02f : 1.0f) * log2e;
    float max = -INFINITY, sum = 0.0f;
    memset(acc, 0, (size_t)dim * sizeof *acc);
    const int32_t last_tile = (keys - 1) / tile_n * tile_n;
    for (int32_t first = 0; first < keys; first += tile_n) {
        if (fault == SIM_DROP_LAST_TILE && first == last_tile && first > 0)
            break;
        const int32_t n = keys - first < tile_n ? keys - first : tile_n;
        const int32_t wide = fault == SIM_NO_TAIL_MASK ? tile_n : n;
        memset(logits, 0, (size_t)tile_n * sizeof *logits);
        for (int32_t d = 0; d < dim; d++) {
            const float x = q[d], *k = k_t + (size_t)d * (size_t)problem->seq_kv + first;
            for (int32_t j = 0; j < n; j++)
                logits[j] += x * k[j];
        }
        float tile_max = -INFINITY;
        for (int32_t j = 0; j < wide; j++) {
            logits[j] = fault == SIM_MEAN_OF_V ? 0.0f : fault == SIM_LOGITS_BF16 ? to_bf16(logits[j]) : logits[j];
            tile_max = fmaxf(tile_max, logits[j]);
        }
        const float new_max = fmaxf(max, tile_max * scale);
        const float factor = exp2f(max - new_max);
        max = new_max;
        if (fault != SIM_SUM_NOT_RESCALED)
            sum *= factor;
        if (fault != SIM_NO_RESCALE)
            for (int32_t d = 0; d < dim; d++)
                acc[d] *= factor;
        for (int32_t j = 0; j < wide; j++) {
            float p = exp2f(logits[j] * scale - max);
            sum += fault == SIM_GOOD_SUM_P16 ? rounded(problem->dtype, p) : p;
            p = fault == SIM_GOOD_P32 ? p : rounded(problem->dtype, p);
            if (j < n)
                for (int32_t d = 0; d < dim; d++)
                    acc[d] += p * v[(size_t)(first + j) * (size_t)dim + (size_t)d];
        }
        if (fault == SIM_ACC_ROUNDED)
            for (int32_t d = 0; d < dim; d++)
                acc[d] = rounded(problem->dtype, acc[d]);
    }
    for (int32_t d = 0; d < dim; d++)
        out[d] = fa_element_of_float(
            problem->dtype, keys > 0 && sum > 0.0f ? acc[d] / sum * (fault == SIM_OUTPUT_SCALED ? 1.02f : 1.0f) : 0.0f);
}

static void flash_head(const fa_problem *problem, const fa_tensors *tensors, const int64_t *rows, int64_t count,
                       int32_t tile_n, sim_fault fault, uint16_t *output)
{
    const size_t dim = (size_t)problem->dim, seq_kv = (size_t)problem->seq_kv;
    const int64_t batch = rows[0] / problem->seq_q / problem->heads, head = rows[0] / problem->seq_q % problem->heads;
    const int64_t kv_head =
        fault == SIM_WRONG_KV_HEAD ? head % problem->kv_heads : head / (problem->heads / problem->kv_heads);
    const size_t at = ((size_t)batch * (size_t)problem->kv_heads + (size_t)kv_head) * seq_kv * dim;
    const bool swap = fault == SIM_SWAP_KV;
    FREED float *k = to_floats(problem->dtype, (swap ? tensors->v : tensors->k) + at, seq_kv * dim);
    FREED float *v = to_floats(problem->dtype, (swap ? tensors->k : tensors->v) + at, seq_kv * dim);
    FREED float *k_t = fa_alloc(seq_kv * dim * sizeof *k_t);
    for (size_t j = 0; j < seq_kv; j++)
        for (size_t d = 0; d < dim; d++)
            k_t[d * seq_kv + j] = k[j * dim + d];
    FREED float *logits = fa_alloc((size_t)tile_n * sizeof *logits), *acc = fa_alloc(dim * sizeof *acc);
    for (int64_t i = 0; i < count; i++) {
        FREED float *q = to_floats(problem->dtype, tensors->q + (size_t)rows[i] * dim, dim);
        const int32_t keys = keys_of(problem, (int32_t)(rows[i] % problem->seq_q), fault);
        flash_row(problem, q, k_t, v, keys, tile_n, fault, logits, acc, output + (size_t)rows[i] * dim);
    }
}

void sim_flash(const fa_problem *problem, const fa_tensors *tensors, const fa_reference *reference, int32_t tile_n,
               sim_fault fault, uint16_t *output)
{
    memset(output, 0, fa_problem_q_count(problem) * sizeof *output);
    const int64_t all_heads = (int64_t)problem->batch * problem->heads;
#pragma omp parallel for schedule(dynamic) if (reference->row_count * problem->seq_kv * problem->dim > 1 << 20)
    for (int64_t head = 0; head < all_heads; head++) {
        int64_t first = 0, last;
        while (first < reference->row_count && reference->rows[first] / problem->seq_q < head)
            first++;
        for (last = first; last < reference->row_count && reference->rows[last] / problem->seq_q == head; last++)
            ;
        if (last > first)
            flash_head(problem, tensors, reference->rows + first, last - first, tile_n, fault, output);
    }
}
