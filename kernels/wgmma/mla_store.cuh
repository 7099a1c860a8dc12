/* How wgmma_mla stores O, and combines the splits of a tile in the same launch: every block writes its part to the
 * workspace; the last to arrive reads them all, in the order of the splits, so that repeats are equal to the last bit.
 */
#pragma once

#include "wgmma/mla_work.cuh"

/* Workspace, per block: a counter (only those of split 0 are used), references and sums of 64 rows, 64 x 512 of O. */
constexpr int COUNTER_BYTES = 16, STATS_BYTES = 64 * 8, PART_BYTES = 64 * FA_DIM_V * 4;

/* What a thread of a warpgroup knows of its two rows, lane / 4 of its warp's 16 and 8 further down. sum: over the
 * thread's columns of the blocks that its warpgroup owns. end: the keys that they see end before it. */
struct softmax_rows {
    float ref[2], sum[2];
    int end[2];
};

/* A warpgroup: its number, which is that of its columns of O and of the buffer that it owns; and the thread in it. */
struct consumer {
    int me, thread, lane, row; /* row: the thread's first in the tile */
};

/* Stores O = o_r / sum of a thread's two rows, and the log-sum-exp. */
__device__ __forceinline__ void store_rows(const fa_params &p, const block_work &work, const float (&o_r)[O_REGS],
                                           const softmax_rows &rows, const consumer &c)
{
    fa_element *o_g = query_rows(p.o, work.seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, 0);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const packed_row row = find_packed_row(work.tile, work.tile.row0 + c.row + 8 * h);
        if (!row.exists)
            continue;
#if FA_LSE
        if (c.me == 0 && c.lane % 4 == 0)
            store_lse(p, work.seq, row.head, row.query, log_sum_exp(rows.ref[h], rows.sum[h]));
#endif
        const float scale = inverse_of_sum(rows.sum[h]);
        fa_element *row_g = o_g + row.head * p.o_stride_h + row.query * p.o_stride_s + c.me * HALF_DIM + c.lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < O_REGS / 4; ++i)
            *reinterpret_cast<unsigned *>(row_g + 8 * i) =
                pack_elements(o_r[4 * i + 2 * h] * scale, o_r[4 * i + 2 * h + 1] * scale);
    }
}

#if FA_SPLITS > 1
/* Addresses of a tile's parts in the workspace: the counter of arrivals; reference and sum of each row, and its O, of
 * split 0. Those of the next split are p.tiles units further. */
struct tile_parts {
    int *counter_g;
    float2 *stats_g;
    float *o_g;
};

__device__ __forceinline__ tile_parts parts_of_tile(const fa_params &p, int unit)
{
    char *workspace_g = static_cast<char *>(p.workspace);
    const fa_i64 blocks = static_cast<fa_i64>(p.tiles) * FA_SPLITS;
    return {reinterpret_cast<int *>(workspace_g + static_cast<fa_i64>(unit) * COUNTER_BYTES),
            reinterpret_cast<float2 *>(workspace_g + blocks * COUNTER_BYTES) + unit * 64,
            reinterpret_cast<float *>(workspace_g + blocks * (COUNTER_BYTES + STATS_BYTES)) +
                static_cast<fa_i64>(unit) * 64 * FA_DIM_V};
}

/* Writes this split's part and counts it. True for the last split of the tile to arrive. */
__device__ __forceinline__ bool write_part(const fa_params &p, const block_work &work, const tile_parts &parts,
                                           const float (&o_r)[O_REGS], const softmax_rows &rows, unsigned last_s,
                                           const consumer &c)
{
    const fa_i64 row_of_split = static_cast<fa_i64>(work.tile.split) * p.tiles * 64;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const fa_i64 row = row_of_split + c.row + 8 * h;
        if (work.tile.row0 + c.row + 8 * h >= work.tile.rows)
            continue;
        if (c.me == 0 && c.lane % 4 == 0)
            parts.stats_g[row] = make_float2(rows.ref[h], rows.sum[h]);
        if (work.first == work.end)
            continue;
        float *to_g = parts.o_g + row * FA_DIM_V + c.me * HALF_DIM + c.lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < O_REGS / 4; ++i)
            *reinterpret_cast<float2 *>(to_g + 8 * i) = make_float2(o_r[4 * i + 2 * h], o_r[4 * i + 2 * h + 1]);
    }
    __threadfence(); /* the part before its arrival ... */
    bar_sync(BAR_BOTH, CONSUMER_THREADS);
    if (c.me == 0 && c.thread == 0) {
        const bool last = atomicAdd(parts.counter_g, 1) == FA_SPLITS - 1;
        if (last)
            *parts.counter_g = 0;
        __threadfence(); /* ... and the arrivals before the parts */
        st_shared_at(last_s, last ? 1.0f : 0.0f);
    }
    bar_sync(BAR_BOTH, CONSUMER_THREADS);
    return ld_shared_at(last_s) != 0.0f;
}

/* Combines the parts of the tile's rows, in the order of the splits, and stores O: a warp takes every eighth row. */
__device__ __forceinline__ void combine(const fa_params &p, const block_work &work, const tile_parts &parts,
                                        const consumer &c)
{
    constexpr int ROUNDS = (FA_SPLITS + 31) / 32;
    const int rows = min(FA_M, work.tile.rows - work.tile.row0);
    fa_element *o_g = query_rows(p.o, work.seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, 0);
    for (int at = c.me * 4 + c.thread / 32; at < rows; at += FA_WARPS) {
        const packed_row row = find_packed_row(work.tile, work.tile.row0 + at);
        float2 stats[ROUNDS]; /* of split `lane`, and 32 further */
        float ref = NO_MAX, sum = 0.0f, weight[ROUNDS], o_r[16] = {};
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r) {
            const int split = r * 32 + c.lane;
            stats[r] = split < FA_SPLITS ? parts.stats_g[static_cast<fa_i64>(split) * p.tiles * 64 + at]
                                         : make_float2(NO_MAX, 0.0f);
            ref = fmaxf(ref, stats[r].x);
        }
        ref = warp_max(ref);
#pragma unroll
        for (int r = 0; r < ROUNDS; ++r) {
            weight[r] = stats[r].y > 0.0f ? exp2_approx(stats[r].x - ref) : 0.0f;
            sum = fmaf(weight[r], stats[r].y, sum);
        }
        sum = warp_sum(sum);
#pragma unroll 4
        for (int split = 0; split < FA_SPLITS; ++split) {
            const float w = __shfl_sync(ALL_LANES, split < 32 ? weight[0] : weight[ROUNDS - 1], split % 32);
            const float *from_g = parts.o_g + (static_cast<fa_i64>(split) * p.tiles * 64 + at) * FA_DIM_V + c.lane * 4;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float4 part = w > 0.0f ? *reinterpret_cast<const float4 *>(from_g + j * 128)
                                             : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                o_r[4 * j] = fmaf(w, part.x, o_r[4 * j]);
                o_r[4 * j + 1] = fmaf(w, part.y, o_r[4 * j + 1]);
                o_r[4 * j + 2] = fmaf(w, part.z, o_r[4 * j + 2]);
                o_r[4 * j + 3] = fmaf(w, part.w, o_r[4 * j + 3]);
            }
        }
#if FA_LSE
        if (c.lane == 0)
            store_lse(p, work.seq, row.head, row.query, log_sum_exp(ref, sum));
#endif
        const float scale = inverse_of_sum(sum);
        fa_element *row_g = o_g + row.head * p.o_stride_h + row.query * p.o_stride_s + c.lane * 4;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            *reinterpret_cast<uint2 *>(row_g + j * 128) =
                make_uint2(pack_elements(o_r[4 * j] * scale, o_r[4 * j + 1] * scale),
                           pack_elements(o_r[4 * j + 2] * scale, o_r[4 * j + 3] * scale));
    }
}
#endif

/* Stores O, or with splits this block's part. Each warpgroup has the sums of its own blocks. */
__device__ __forceinline__ void finish(const fa_params &p, const shared_layout &at, const block_work &work,
                                       const float (&o_r)[O_REGS], softmax_rows &rows, const consumer &c)
{
    const float mine[2] = {quad_sum(rows.sum[0]), quad_sum(rows.sum[1])};
    if (c.lane % 4 == 0)
        st_shared_pair_at(at.sums(c.me) + c.row * 4, mine[0], mine[1]);
    bar_sync(BAR_BOTH, CONSUMER_THREADS);
    ld_shared_pair_at(rows.sum, at.sums(1 - c.me) + c.row * 4);
    rows.sum[0] += mine[0];
    rows.sum[1] += mine[1];
#if FA_SPLITS > 1
    const tile_parts parts = parts_of_tile(p, work.tile.unit);
    if (write_part(p, work, parts, o_r, rows, at.base_s + LAST_OFFSET, c))
        combine(p, work, parts, c);
#else
    store_rows(p, work, o_r, rows, c);
#endif
}
