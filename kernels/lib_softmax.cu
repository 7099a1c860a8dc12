/* Row softmax between the two GEMMs of the unfused `cublas` baseline.
 * idea:        one warp per row; scores read twice (online maximum and sum, then the weights), weights written over the scores.
 * predecessor: none: the part of unfused attention that the GEMM library does not have.
 * tile knobs:  none; 8 rows per block, 512 keys per step.
 * layout:      no shared memory. A row of scores is `ld` floats; its weights are the first 2*ld halves of the same bytes.
 * limits:      ld a multiple of 4 and >= seq_kv; scores 16-byte aligned. */
#include "prims.cuh"

#include <math_constants.h>

static constexpr int LANES = 32;
static constexpr int ROWS_PER_BLOCK = 8;
static constexpr int VECTORS = 4; /* float4 loads in flight per lane */
static constexpr int STEP = LANES * 4 * VECTORS;

/* Scores of this lane in one step, in units of log2(e); -inf from `keys` on, so that exp2 makes them 0. */
struct lane_scores {
    float value[VECTORS][4];
};

__device__ static int column_of(int base, int vector, int lane) { return base + (vector * LANES + lane) * 4; }

__device__ static lane_scores load_scores(const float *row_g, int base, int keys, float scale_log2) {
    const int lane = threadIdx.x % LANES;
    lane_scores scores;
#pragma unroll
    for (int vector = 0; vector < VECTORS; vector++) {
        const int column = column_of(base, vector, lane);
        float4 raw = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (column < keys)
            raw = *reinterpret_cast<const float4 *>(row_g + column);
        const float flat[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            scores.value[vector][i] = column + i < keys ? flat[i] * scale_log2 : -CUDART_INF_F;
    }
    return scores;
}

/* Maximum and sum of exp2 over a row, the same in every lane. A NaN score makes the sum NaN, and so the whole row. */
__device__ static float2 max_and_sum(const float *row_g, int keys, float scale_log2) {
    float high = -CUDART_INF_F, sum = 0.0f;
    for (int base = 0; base < keys; base += STEP) {
        const lane_scores scores = load_scores(row_g, base, keys, scale_log2);
        float higher = high;
#pragma unroll
        for (int i = 0; i < VECTORS * 4; i++)
            higher = fmaxf(higher, scores.value[i / 4][i % 4]);
        /* A lane past the end of a short row has seen nothing: -inf less -inf would be NaN. */
        const float origin = higher == -CUDART_INF_F ? 0.0f : higher;
        sum *= exp2f(high - origin);
#pragma unroll
        for (int i = 0; i < VECTORS * 4; i++)
            sum += exp2f(scores.value[i / 4][i % 4] - origin);
        high = higher;
    }
    float row_high = high;
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        row_high = fmaxf(row_high, __shfl_xor_sync(0xffffffffu, row_high, offset));
    const float origin = row_high == -CUDART_INF_F ? 0.0f : row_high;
    sum *= exp2f(high - origin);
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    return make_float2(origin, sum);
}

/* Step `base` reads bytes [4 base, ...) and writes bytes [2 base, 2 base + 2 STEP): scores already used up, except within the
 * first step, where the barrier parts the warp's loads from its stores. */
__device__ static void write_weights(float *row_g, int keys, int seq_kv, float scale_log2, float high, float factor) {
    const int lane = threadIdx.x % LANES;
    __half *weights_g = reinterpret_cast<__half *>(row_g);
    for (int base = 0; base < seq_kv; base += STEP) {
        const lane_scores scores = load_scores(row_g, base, keys, scale_log2);
        __syncwarp();
#pragma unroll
        for (int vector = 0; vector < VECTORS; vector++) {
            const int column = column_of(base, vector, lane);
            if (column >= seq_kv)
                continue;
            const float *value = scores.value[vector];
            __half2 packed[2] = {
                __floats2half2_rn(exp2f(value[0] - high) * factor, exp2f(value[1] - high) * factor),
                __floats2half2_rn(exp2f(value[2] - high) * factor, exp2f(value[3] - high) * factor)};
            *reinterpret_cast<uint2 *>(weights_g + column) = *reinterpret_cast<const uint2 *>(packed);
        }
    }
}

/* scores: [rows, ld] FP32, row r being query row (first_row + r) % seq_q. In place: weights [rows, 2*ld] FP16, columns < seq_kv. */
extern "C" __global__ void __launch_bounds__(LANES *ROWS_PER_BLOCK)
    fa_softmax(float *scores, fa_i64 ld, fa_i64 rows, fa_i64 first_row, fa_i32 seq_q, fa_i32 seq_kv, fa_i32 causal, fa_f32 scale) {
    const fa_i64 row = static_cast<fa_i64>(blockIdx.x) * ROWS_PER_BLOCK + threadIdx.x / LANES;
    if (row >= rows)
        return;
    int keys = seq_kv;
    if (causal) {
        const int query = static_cast<int>((first_row + row) % seq_q);
        keys = max(0, min(seq_kv, query + 1 + seq_kv - seq_q));
    }
    const float scale_log2 = scale * 1.4426950408889634f;
    float *row_g = scores + row * ld;
    const float2 stats = max_and_sum(row_g, keys, scale_log2);
    write_weights(row_g, keys, seq_kv, scale_log2, stats.x, keys > 0 ? 1.0f / stats.y : 0.0f);
}
