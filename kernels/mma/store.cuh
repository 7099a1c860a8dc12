/* How results of `mma` are stored: a warp's rows through shared memory; or the parts that groups of warps and split
 * blocks have of a tile, combined. */
#pragma once

#include "mma/block.cuh"
#include "mma/warp.cuh"

/* Where a block's results go. */
struct output {
    head_rows head;
    int first_row, rows; /* of the block; of the tensor */
    bool aligned;
};

__device__ __forceinline__ void store_partial(const output &out, const block_state &block, int row, int chunk,
                                              const partial &value, const fa_params &p)
{
    float max = value.max, sum = value.sum;
    const float weight = add_sink(p, block.head, max, sum), factor = inverse_of_sum(sum) * weight;
#if FA_LSE
    if (chunk == 0)
        store_lse(p, block.batch, block.head, out.first_row + row, log_sum_exp(max, sum));
#endif
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
            float sum = w.sum[b][2 * h], ref = sum > 0.0f ? -w.minus_row_ref[b][h] : NO_MAX;
            add_sink(p, block.head, ref, sum);
            if (row < p.seq_q)
                store_lse(p, block.batch, block.head, row, log_sum_exp(ref, sum));
        }
}
#endif

/* The warp's rows, normalised, through its own rows of Q in shared memory to 16-byte stores. */
__device__ __forceinline__ void store_rows(const warp_state &w, unsigned char *rows_s, const output &out, int warp_row,
                                           int head, const fa_params &p)
{
    constexpr int CHUNKS = v_row::CHUNKS, XORS = v_row::XORS;
    const unsigned lane = threadIdx.x % 32;
    if (O_BYTES > Q_BYTES)
        __syncthreads(); /* the rows reach into those of other warps, and into K and V */
    __syncwarp();
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float sum = w.sum[b][2 * h], ref = HAS_SINK && sum > 0.0f ? -w.minus_row_ref[b][h] : NO_MAX;
            const float weight = add_sink(p, head, ref, sum), factor = inverse_of_sum(sum) * weight;
#pragma unroll
            for (int t = 0; t < V_STEPS * 2; ++t)
                *reinterpret_cast<unsigned *>(rows_s + (b * 16 + h * 8) * V_ROW_BYTES + t / XORS * XORS * 16 +
                                              (v_row::offset(lane / 4, 0) ^ t % XORS * 16) + lane % 4 * 4) =
                    pack_elements(w.o[b][t][2 * h] * factor, w.o[b][t][2 * h + 1] * factor);
        }
    __syncwarp();
    constexpr int EACH = 32 / CHUNKS; /* rows at once */
    if constexpr (32 % CHUNKS == 0 && XORS == 8 && FA_DIM_V % 16 == 0)
        if (out.aligned && out.head.stride == FA_DIM_V && out.first_row + M <= out.rows) [[likely]] {
            uint4 *dst_g = reinterpret_cast<uint4 *>(out.head.data_g + (out.first_row + warp_row) * FA_DIM_V) + lane;
            const unsigned lane_offset = v_row::offset(lane / CHUNKS, lane % CHUNKS);
#pragma unroll
            for (int i = 0; i < ROWS / EACH; ++i)
                dst_g[i * 32] = *reinterpret_cast<const uint4 *>(rows_s + (lane_offset ^ i * EACH % 8 * 16) +
                                                                 i * EACH * V_ROW_BYTES);
            return;
        }
#pragma unroll 1
    for (int item = lane; item < ROWS * CHUNKS; item += 32) {
        const int row = item / CHUNKS, chunk = item % CHUNKS, global_row = out.first_row + warp_row + row;
        if (global_row < out.rows && chunk * 8 < FA_DIM_V)
            store_chunk(out.head.data_g + global_row * out.head.stride + chunk * 8,
                        *reinterpret_cast<const uint4 *>(rows_s + v_row::offset(row, chunk)), out.aligned);
    }
}

/* Results of groups of warps and of splits, combined. */
__device__ __forceinline__ void store_combined(const warp_state &w, unsigned char *smem, const output &out,
                                               const block_state &block, int group, int warp_row, const fa_params &p)
{
    const int lane = threadIdx.x % 32;
    float *parts_s = reinterpret_cast<float *>(smem);
    __syncthreads(); /* K and V are used up */
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = group * M + warp_row + b * 16 + h * 8 + lane / 4;
            const float sum = w.sum[b][2 * h];
            put_part_row(parts_s + row * PART_PITCH, w.o[b], h, sum > 0.0f ? -w.minus_row_ref[b][h] : NO_MAX, sum,
                         lane);
        }
    __syncthreads();
    combine_parts<GROUPS, THREADS>(
        p, parts_s, blockIdx.x / SPLITS, blockIdx.x % SPLITS, min(M, out.rows - out.first_row),
        [&](int row, int chunk, const partial &value) { store_partial(out, block, row, chunk, value, p); });
}
