/* mma_backward's dQ: the product, and the reductions that add it to the workspace. */
#pragma once

#include "mma/backward.cuh"

/* The sums of 8 rows, of which `count` exist, and 16 columns. Accumulators of dQ^T are 512 bytes of a box. */
__device__ __forceinline__ void add_some(float *eight_g, int count, const float (&sums)[4])
{
    const int lane = threadIdx.x % WARP_SIZE;
    if (count >= 8)
        red_add_4(eight_g, lane, sums);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (count < 8 && lane % 4 * 2 + i % 2 < count)
            red_add(eight_g + (lane % 4 * 2 + i % 2) * 16 + i / 2 * 8 + lane / 4, sums[i]);
}

/* A warp makes dQ for 32 or 16 rows, and for 16 * DQ_STEPS columns at once. COLUMN_WARPS warps share the columns. */
constexpr int DQ_BANDS =
    QUERY_BANDS % 2 == 0 && (WARPS * 2 % QUERY_BANDS == 0 || QUERY_BANDS % (WARPS * 2) == 0) ? 2 : 1;
constexpr int DQ_GROUPS = QUERY_BANDS / DQ_BANDS, COLUMN_WARPS = larger(WARPS / DQ_GROUPS, 1);
constexpr int DQ_STEPS = qk_row::STEPS >= 4 * COLUMN_WARPS ? 4 : qk_row::STEPS >= 2 * COLUMN_WARPS ? 2 : 1; // STEPS

using dq_sums = float[DQ_STEPS][DQ_BANDS * 2][4];
template <bool WHOLE>
__device__ __forceinline__ void add_sums(float *box_g, fa_i64 all, int count, int steps, const dq_sums &sums)
{
#pragma unroll
    for (int j = 0; j < DQ_STEPS; ++j)
#pragma unroll
        for (int t = 0; t < DQ_BANDS * 2; ++t)
            if (qk_row::STEPS % DQ_STEPS != 0 && j >= steps)
                continue;
            else if (WHOLE)
                red_add_4(box_g + j * 16 * all + t * 8 * 16, threadIdx.x % WARP_SIZE, sums[j][t]);
            else
                add_some(box_g + j * 16 * all + t * 8 * 16, count - t * 8, sums[j][t]);
}

/* Adds K^T dS^T to dQ^T of a tile, whose first `count` rows exist. dq_g: where its first row is in the first box. A box
 * has `all` rows. */
__device__ __forceinline__ void add_to_dq(float *dq_g, fa_i64 all, int count, smem_addr ds_at, smem_addr k_at)
{
    const unsigned lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const smem_addr a_at = k_at + k_lane_offset<qk_row>(lane), b_at = ds_at + v_lane_offset<pair_row>(lane);
    for (int group = warp % DQ_GROUPS; group < DQ_GROUPS; group += WARPS) {
#pragma unroll 1
        for (int step = warp / DQ_GROUPS * DQ_STEPS; step < qk_row::STEPS; step += COLUMN_WARPS * DQ_STEPS) {
            dq_sums sums = {};
#pragma unroll
            for (int k = 0; k < KEY_STEPS; ++k) {
                unsigned ds[DQ_BANDS][4];
#pragma unroll
                for (int b = 0; b < DQ_BANDS; ++b)
                    ldmatrix_x4_trans_at(ds[b], fragment<pair_row>(b_at, group * DQ_BANDS + b, k));
#pragma unroll
                for (int j = 0; j < DQ_STEPS; ++j) {
                    if (qk_row::STEPS % DQ_STEPS != 0 && step + j >= qk_row::STEPS)
                        continue;
                    unsigned columns[4];
                    ldmatrix_x4_trans_at(columns, fragment<qk_row>(a_at, step + j, k));
#pragma unroll
                    for (int t = 0; t < DQ_BANDS * 2; ++t) {
                        const unsigned eight[2] = {ds[t / 2][t % 2 * 2], ds[t / 2][t % 2 * 2 + 1]};
                        mma_m16n8k16(sums[j][t], columns, eight);
                    }
                }
            }
            const int first = group * DQ_BANDS * 16;
            float *box_g = dq_g + first * 16 + step * 16 * all;
            if (first + DQ_BANDS * 16 <= count) [[likely]]
                add_sums<true>(box_g, all, count - first, qk_row::STEPS - step, sums);
            else
                add_sums<false>(box_g, all, count - first, qk_row::STEPS - step, sums);
        }
    }
}
