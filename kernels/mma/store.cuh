/* How results of `mma` are stored: a warp's rows through shared memory; or the parts that groups of warps and split
 * blocks have of a tile, combined. */
#ifndef FA_MMA_STORE_CUH
#define FA_MMA_STORE_CUH

#include "mma/block.cuh"
#include "mma/warp.cuh"

/* Where a block's results go. */
struct output {
    head_rows head;
    int first_row, rows; /* of the block; of the tensor */
    bool aligned;
};

/* 8 columns of an output row, its maximum and its sum: what groups of warps and split blocks pass on. */
struct partial {
    float o[8], max, sum;
};

/* Partial results lie as [part][M rows][stride] floats, their maxima and sums as [part][M][2]. Combines `parts` of them
 * for 8 columns of a row. */
__device__ __forceinline__ partial combine(const float *o, const float *stats, int parts, fa_i64 part_o,
                                           fa_i64 part_stats, int row, int stride, int chunk)
{
    partial sum = {{0, 0, 0, 0, 0, 0, 0, 0}, NO_MAX, 0};
    for (int i = 0; i < parts; ++i)
        sum.max = fmaxf(sum.max, stats[i * part_stats + row * 2]);
    for (int i = 0; i < parts; ++i) {
        const float weight = exp2_approx(stats[i * part_stats + row * 2] - sum.max);
        const float4 *o4 = reinterpret_cast<const float4 *>(o + i * part_o + row * stride + chunk * 8);
        const float4 lo = o4[0], hi = o4[1];
        const float values[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        sum.sum += weight * stats[i * part_stats + row * 2 + 1];
        for (int e = 0; e < 8; ++e)
            sum.o[e] += weight * values[e];
    }
    return sum;
}

__device__ __forceinline__ void store_partial(const output &out, const block_state &block, int row, int chunk,
                                              const partial &value, const fa_params &p)
{
    if (out.first_row + row >= out.rows || chunk * 8 >= FA_DIM)
        return;
#if FA_LSE
    if (chunk == 0)
        store_lse(p, block.batch, block.head, out.first_row + row, log_sum_exp(value.max, value.sum));
#endif
    const float factor = fast_inverse_of_sum(value.sum);
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        words[i] = pack_elements(value.o[2 * i] * factor, value.o[2 * i + 1] * factor);
    store_chunk(out.head.data_g + (out.first_row + row) * out.head.stride + chunk * 8,
                make_uint4(words[0], words[1], words[2], words[3]), out.aligned);
}

#if FA_LSE
__device__ __forceinline__ void store_lse_of_rows(const warp_state &w, const block_state &block, int warp_row,
                                                  const fa_params &p)
{
    const int lane = threadIdx.x % 32;
    if (lane % 4 != 0)
        return;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = block.first_row + warp_row + b * 16 + h * 8 + lane / 4;
            if (row < p.seq_q)
                store_lse(p, block.batch, block.head, row, log_sum_exp(-w.minus_row_ref[b][h], w.sum[b][2 * h]));
        }
}
#endif

/* The warp's rows, normalised, through its own rows of Q in shared memory to 16-byte stores. */
__device__ __forceinline__ void store_rows(const warp_state &w, unsigned char *rows_s, const output &out, int warp_row)
{
    const unsigned lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float factor = fast_inverse_of_sum(w.sum[b][2 * h]);
#pragma unroll
            for (int t = 0; t < STEPS * 2; ++t)
                *reinterpret_cast<unsigned *>(rows_s + (b * 16 + h * 8) * ROW_BYTES + t / XORS * XORS * 16 +
                                              (tile_offset(lane / 4, 0) ^ t % XORS * 16) + lane % 4 * 4) =
                    pack_elements(w.o[b][t][2 * h] * factor, w.o[b][t][2 * h + 1] * factor);
        }
    __syncwarp();
    constexpr int EACH = 32 / CHUNKS; /* rows at once */
    if constexpr (32 % CHUNKS == 0 && XORS == 8 && FA_DIM % 16 == 0)
        if (out.aligned && out.head.stride == FA_DIM && out.first_row + M <= out.rows) [[likely]] {
            uint4 *dst_g = reinterpret_cast<uint4 *>(out.head.data_g + (out.first_row + warp_row) * FA_DIM) + lane;
            const unsigned lane_offset = tile_offset(lane / CHUNKS, lane % CHUNKS);
#pragma unroll
            for (int i = 0; i < ROWS / EACH; ++i)
                dst_g[i * 32] =
                    *reinterpret_cast<const uint4 *>(rows_s + (lane_offset ^ i * EACH % 8 * 16) + i * EACH * ROW_BYTES);
            return;
        }
#pragma unroll 1
    for (int item = lane; item < ROWS * CHUNKS; item += 32) {
        const int row = item / CHUNKS, chunk = item % CHUNKS, global_row = out.first_row + warp_row + row;
        if (global_row < out.rows && chunk * 8 < FA_DIM)
            store_chunk(out.head.data_g + global_row * out.head.stride + chunk * 8,
                        *reinterpret_cast<const uint4 *>(rows_s + tile_offset(row, chunk)), out.aligned);
    }
}

/* Results of the groups meet in shared memory, those of the splits in the workspace: a counter of 16 bytes per block,
 * then per block M rows of output, maxima and sums. The last block of a tile to arrive combines, and resets the
 * counter. */
__device__ __forceinline__ void store_combined(const warp_state &w, unsigned char *smem, const output &out,
                                               const block_state &block, int group, int warp_row, const fa_params &p)
{
    const int lane = threadIdx.x % 32;
    float *o_s = reinterpret_cast<float *>(smem), *stats_s = o_s + GROUPS * M * PARTIAL_STRIDE;
    __syncthreads(); /* K and V are used up */
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = group * M + warp_row + b * 16 + h * 8 + lane / 4;
            if (lane % 4 == 0) {
                stats_s[row * 2] = w.sum[b][2 * h] > 0.0f ? -w.minus_row_ref[b][h] : NO_MAX;
                stats_s[row * 2 + 1] = w.sum[b][2 * h];
            }
#pragma unroll
            for (int t = 0; t < STEPS * 2; ++t)
                *reinterpret_cast<float2 *>(o_s + row * PARTIAL_STRIDE + t * 8 + lane % 4 * 2) =
                    make_float2(w.o[b][t][2 * h], w.o[b][t][2 * h + 1]);
        }
    __syncthreads();
    const int unit = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
    int *counters_g = static_cast<int *>(p.workspace);
    float *parts_g = reinterpret_cast<float *>(static_cast<char *>(p.workspace) + gridDim.x * 16ll);
    float *part_g = parts_g + (static_cast<fa_i64>(unit) * SPLITS + split) * WORKSPACE_FLOATS;
    for (int item = threadIdx.x; item < M * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        const partial sum = combine(o_s, stats_s, GROUPS, M * PARTIAL_STRIDE, M * 2, row, PARTIAL_STRIDE, chunk);
        if (SPLITS == 1) {
            store_partial(out, block, row, chunk, sum, p);
            continue;
        }
        float4 *o4 = reinterpret_cast<float4 *>(part_g + row * DIM16 + chunk * 8);
        o4[0] = make_float4(sum.o[0], sum.o[1], sum.o[2], sum.o[3]);
        o4[1] = make_float4(sum.o[4], sum.o[5], sum.o[6], sum.o[7]);
        if (chunk == 0) {
            part_g[M * DIM16 + row * 2] = sum.max;
            part_g[M * DIM16 + row * 2 + 1] = sum.sum;
        }
    }
    if (SPLITS == 1)
        return;
    __threadfence(); /* this block's part before its arrival ... */
    __syncthreads();
    int *arrived_s = reinterpret_cast<int *>(smem);
    if (threadIdx.x == 0)
        *arrived_s = atomicAdd(&counters_g[unit * 4], 1);
    __syncthreads();
    if (*arrived_s != SPLITS - 1)
        return;
    __threadfence(); /* ... and the others' arrivals before their parts */
    parts_g += static_cast<fa_i64>(unit) * SPLITS * WORKSPACE_FLOATS;
    for (int item = threadIdx.x; item < M * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        store_partial(
            out, block, row, chunk,
            combine(parts_g, parts_g + M * DIM16, SPLITS, WORKSPACE_FLOATS, WORKSPACE_FLOATS, row, DIM16, chunk), p);
    }
    if (threadIdx.x == 0)
        counters_g[unit * 4] = 0;
}

#endif
