/* How `wgmma` stores O: a warp's 16 rows through shared memory, by stmatrix and TMA, so that no register moves between
 * lanes. Straight from the registers (fa_store_o) where no room is left beside the rings. Included by wgmma.cu after its
 * constants. */
#ifndef FA_WGMMA_STORE_CUH
#define FA_WGMMA_STORE_CUH

constexpr int o_box_bytes = 16 * fa_box_row_bytes;
constexpr int o_warp_bytes = o_columns / 64 * o_box_bytes;

/* Before the buffer is written again, or the block leaves: TMA has read it. */
__device__ __forceinline__ void wait_for_store(int lane)
{
    if (o_columns > 0 && lane == 0)
        fa_tma_store_wait_read();
    __syncwarp();
}

/* What the rows of o are multiplied with before they are stored: early, where the sums are no part of o. */
typedef struct row_scale {
    float of[2];
} row_scale;

__device__ __forceinline__ row_scale scale_of(const fa_rows &rows)
{
    row_scale scale = {{0.0f, 0.0f}};
    if (!FA_SUM_BY_MMA) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
            scale.of[h] = fa_inverse_or_zero(fa_quad_sum(rows.sum[h]));
    }
    return scale;
}

/* stage: the warp's buffer. row: first of the warp's rows. */
__device__ __forceinline__ void store_by_tma(const fa_params &p, const float (&o)[fa_o_regs], const row_scale &scale,
                                             const int4 &tile, fa_u32 stage, int row, fa_u32 lane)
{
    /* stmatrix: lanes 8 i to 8 i + 7 name the rows of matrix i; i % 2: rows 8 to 15, i / 2: columns 8 to 15. */
    const fa_u32 to = stage + lane % 16 * fa_box_row_bytes + ((lane / 16) ^ (lane % 8)) * 16;
    constexpr int per_round = o_columns / 64;
#pragma unroll
    for (int first = 0; first < fa_boxes; first += per_round) {
        wait_for_store(lane);
#pragma unroll
        for (int step = 4 * first; step < 4 * first + 4 * per_round && step < 4 * fa_boxes; ++step) {
            fa_u32 w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = 8 * step + 4 * (i / 2) + 2 * (i % 2);
                w[i] = pack_half2(o[at] * scale.of[i % 2], o[at + 1] * scale.of[i % 2]);
            }
            fa_stmatrix_x4((to ^ (step % 4 * 32)) + (step / 4 - first) * o_box_bytes, w);
        }
        fa_fence_async_proxy();
        __syncwarp();
        if (lane == 0) {
#pragma unroll
            for (int box = first; box < first + per_round && box < fa_boxes; ++box)
                fa_tma_store(&p.o_map, stage + (box - first) * o_box_bytes, box * 64, row, tile.z, tile.w);
            fa_tma_store_commit();
        }
    }
}

/* O of a warpgroup's rows of a tile. */
__device__ __forceinline__ void store(const fa_params &p, const float (&o)[fa_o_regs], row_scale scale,
                                      const int4 &tile, fa_u32 stages, int warpgroup, fa_u32 thread)
{
    asm volatile("" : "+r"(stages), "+r"(thread)); /* or the addresses hold registers through the loop */
    if (FA_SUM_BY_MMA) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
            scale.of[h] = fa_inverse_or_zero(o[fa_o_regs - 4 + 2 * h]);
    }
    const int warp = fa_uniform(thread / 32), row = tile.x + 64 * warpgroup + 16 * warp;
    if (row >= p.seq_q)
        return;
    if constexpr (o_columns > 0)
        store_by_tma(p, o, scale, tile, stages + (4 * warpgroup + warp) * o_warp_bytes, row, thread % 32);
    else
        fa_store_o(p, o, scale.of, tile.w, tile.z, row, thread % 32);
}

#endif
