/* How wgmma stores O: a warp's 16 rows go through shared memory, by stmatrix and TMA, so that no register moves between
 * lanes. Where the pipelines leave no room for that, straight from the registers (store_o_direct). */
#pragma once

#include "wgmma/config.cuh"
#include "wgmma/softmax.cuh"

constexpr int O_BOX_BYTES = 16 * BOX_ROW_BYTES;
constexpr int O_WARP_BYTES = O_BUFFER_COLS / BOX_COLS * O_BOX_BYTES;

/* Waits until TMA has read the warp's buffer: before it is written again, or the block ends. */
__device__ __forceinline__ void wait_for_store(int lane)
{
    if (O_BUFFER_COLS > 0 && lane == 0)
        tma_store_wait_read();
    __syncwarp();
}

/* The factors of a thread's two rows of O. Where the sums are columns of O they are known only when it is complete.
 * Where keys are split, the sums. */
struct row_scale {
    float of[2];
};

#if KEEP_REFERENCES
/* The references of a thread's two rows wait in shared memory, after the buffers of O, until O is stored: registers
 * would spill. The sums come with O (SUM_BY_MMA) or are the scale of the rows (where keys are split). */
__device__ __forceinline__ unsigned reference_address(unsigned buffers_s, int warpgroup, unsigned thread)
{
    return buffers_s + O_BUFFER_BYTES + (64 * warpgroup + thread / 32 * 16 + thread % 32 / 4) * 4;
}

__device__ __forceinline__ void keep_references(const softmax_rows &rows, unsigned buffers_s, int warpgroup,
                                                unsigned thread)
{
    make_opaque(buffers_s, thread); /* the compiler would keep the address in a register through the main loop */
    if (FA_SPLITS > 1 && thread % 4 == 0)
        st_shared_pair_at(reference_address(buffers_s, warpgroup, thread), rows.ref[0], rows.ref[1]);
    if (FA_SPLITS == 1 && thread % 4 < 2) /* the lane that needs it */
        st_shared_at(reference_address(buffers_s, warpgroup, thread) + thread % 2 * 32,
                     thread % 2 ? rows.ref[1] : rows.ref[0]);
}
#endif

/* The factor of a row's output, its sink included. */
__device__ __forceinline__ float scale_with_sink(const fa_params &p, int head, float ref, float sum)
{
    const float factor = add_sink(p, head, ref, sum), inverse = inverse_of_sum(sum);
    return HAS_SINK ? factor * inverse : inverse;
}

/* buffers_s: the first warp's buffer of O. head: needed with sinks. */
__device__ __forceinline__ row_scale row_scale_of(const fa_params &p, const softmax_rows &rows, unsigned buffers_s,
                                                  int head, int warpgroup, unsigned thread)
{
#if KEEP_REFERENCES
    keep_references(rows, buffers_s, warpgroup, thread);
#endif
    row_scale scale = {{0.0f, 0.0f}};
    if (!SUM_BY_MMA) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
            scale.of[h] =
                FA_SPLITS > 1 ? quad_sum(rows.sum[h]) : scale_with_sink(p, head, rows.ref[h], quad_sum(rows.sum[h]));
    }
    return scale;
}

#if FA_LSE && !KEEP_REFERENCES
/* Stores the log-sum-exp of a thread's two rows where their sums are known before O is: under the last product. */
__device__ __forceinline__ void store_lse_before_o(const fa_params &p, const softmax_rows &rows, const row_scale &scale,
                                                   const announced_tile &tile, int warpgroup, unsigned thread)
{
    float lse[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        lse[h] = log_sum_exp_of_inverse(rows.ref[h], scale.of[h]);
        if (HAS_SINK && scale.of[h] == 0.0f) /* the row has its sink alone */
            lse[h] = p.sinks[tile.z];
    }
    const int row = PACKED ? tile.x : tile.x + 64 * warpgroup + thread / 32 * 16;
    store_lse_of_rows(p, lse, sequence_of_tile(p, tile), tile.z, row, thread % 32);
}
#endif

/* buffer_s: the warp's buffer. row: first of the warp's rows. */
__device__ __forceinline__ void store_o_by_tma(const fa_params &p, const float (&o_r)[O_REGS], const row_scale &scale,
                                               const announced_tile &tile, unsigned buffer_s, int row, unsigned lane)
{
    tma_row to = {row, tile.w};
    bool has_keys = true;
    if constexpr (HAS_VARLEN) {
        to = tma_query_row(p, sequence_of_tile(p, tile), row);
        has_keys = sequence_of_tile(p, tile).seq_kv > 0; /* else V was a row of another sequence, or NaN (row_in_map) */
    }
    /* stmatrix: lanes 8 i to 8 i + 7 name the rows of matrix i; i % 2: rows 8 to 15, i / 2: columns 8 to 15. */
    const unsigned to_s = buffer_s + lane % 16 * BOX_ROW_BYTES + ((lane / 16) ^ swizzle_of_row(lane % 16)) * 16;
    constexpr int PER_ROUND = O_BUFFER_COLS / BOX_COLS;
#pragma unroll
    for (int first = 0; first < BOXES_V; first += PER_ROUND) {
        wait_for_store(lane);
#pragma unroll
        for (int step = BOX_STEPS * first; step < BOX_STEPS * (first + PER_ROUND) && step < O_DIM / 16; ++step) {
            unsigned w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = place_of_column(16 * step + 8 * (i / 2)) / 2 + 2 * (i % 2);
                w[i] = has_keys ? pack_elements(o_r[at] * scale.of[i % 2], o_r[at + 1] * scale.of[i % 2]) : 0;
            }
            stmatrix_x4_at((to_s ^ (step % BOX_STEPS * 32)) + (step / BOX_STEPS - first) * O_BOX_BYTES, w);
        }
        fence_async_proxy();
        __syncwarp();
        if (lane == 0 && (!HAS_VARLEN || to.row < p.seq_q)) { /* row_in_map says why */
#pragma unroll
            for (int box = first; box < first + PER_ROUND && box < BOXES_V; ++box)
                store_box<SHORT>(&p.o_map, buffer_s + (box - first) * O_BOX_BYTES, box * BOX_COLS, to.row, tile.z,
                                 to.batch);
            tma_store_commit();
        }
    }
}

#if FA_SPLITS > 1
/* Writes this split's part of a warp's rows. The last split to arrive has them all in o_r, with their scale, and stores
 * their log-sum-exp. Returns true for it. */
__device__ __forceinline__ bool combine_splits(const fa_params &p, float (&o_r)[O_REGS], row_scale &scale,
                                               const announced_tile &tile, int row, unsigned lse_s, int warp, int lane)
{
    row_sums rows;
    __syncwarp(); /* one lane of each quad kept the references */
    ld_shared_pair_at(rows.ref, lse_s);
#pragma unroll
    for (int h = 0; h < 2; ++h)
        rows.sum[h] = SUM_BY_MMA ? o_r[O_REGS - 4 + 2 * h] : scale.of[h];
#if VARLEN
    const int unit = tile.z * p.tiles_m + tile.flat;
#else
    const int unit = (tile.w * p.heads + tile.z) * p.tiles_m + tile.x / FA_M;
#endif
    const warp_parts parts = parts_of_warp(p, unit, warp, lane);
    if (!write_part(parts, o_r, rows, tile.y, lane))
        return false;
    read_parts(parts, o_r, rows);
    const float factor[2] = {add_sink(p, tile.z, rows.ref[0], rows.sum[0]),
                             add_sink(p, tile.z, rows.ref[1], rows.sum[1])};
#if FA_LSE
    const float lse[2] = {log_sum_exp(rows.ref[0], rows.sum[0]), log_sum_exp(rows.ref[1], rows.sum[1])};
    store_lse_of_rows(p, lse, sequence_of_tile(p, tile), tile.z, row, lane);
#endif
#pragma unroll
    for (int h = 0; h < 2; ++h)
        scale.of[h] = HAS_SINK ? factor[h] * inverse_of_sum(rows.sum[h]) : inverse_of_sum(rows.sum[h]);
    return true;
}
#endif

#if FA_LSE && FA_SPLITS == 1 && KEEP_REFERENCES
/* Runs after the store of O, whose fence would wait for this store. The two lanes of a quad that kept the references
 * have a row each. sum: of the lane's row. */
__device__ __forceinline__ void store_lse_after_o(const fa_params &p, float sum, const announced_tile &tile,
                                                  unsigned buffers_s, int warpgroup, unsigned thread)
{
    make_opaque(buffers_s, thread);
    const sequence seq = sequence_of_tile(p, tile);
    const unsigned row0 = PACKED ? tile.x : tile.x + 64 * warpgroup + thread / 32 * 16;
    const int query = row0 + thread % 32 / 4 + thread % 2 * 8;
    if (thread % 4 < 2 && query < seq.seq_q) {
        float ref = ld_shared_at(reference_address(buffers_s, warpgroup, thread) + thread % 2 * 32);
        add_sink(p, tile.z, ref, sum);
        store_lse(p, seq, tile.z, query, log_sum_exp(ref, sum));
    }
}
#endif

/* Stores O of a warpgroup's rows. tile: as the producer announced it. buffers_s: the first warp's buffer. */
__device__ __forceinline__ void store_o(const fa_params &p, float (&o_r)[O_REGS], row_scale scale,
                                        const announced_tile &tile, unsigned buffers_s, int warpgroup, unsigned thread)
{
    make_opaque(buffers_s, thread); /* the compiler would keep the addresses in registers through the main loop */
    if (SUM_BY_MMA && FA_SPLITS == 1) {
        float ref[2] = {0.0f, 0.0f};
#if SINK && KEEP_REFERENCES
        __syncwarp(); /* two lanes of each quad kept the references */
        ld_shared_pair_at(ref, reference_address(buffers_s, warpgroup, thread));
        __syncwarp(); /* before the next tile's are kept */
#endif
#pragma unroll
        for (int h = 0; h < 2; ++h)
            scale.of[h] = scale_with_sink(p, tile.z, ref[h], o_r[O_REGS - 4 + 2 * h]);
    }
    const int warp = uniform_by_shuffle(thread / 32), row = PACKED ? tile.x : tile.x + 64 * warpgroup + 16 * warp;
    const sequence seq = sequence_of_tile(p, tile);
    if (row >= seq.seq_q)
        return;
#if FA_SPLITS > 1
    if (!combine_splits(p, o_r, scale, tile, row, reference_address(buffers_s, warpgroup, thread), 4 * warpgroup + warp,
                        thread % 32))
        return;
#endif
    if constexpr (HAS_VARLEN && O_BUFFER_COLS == 0) {
        if (seq.seq_kv == 0) /* as in store_o_by_tma, where zeros here would spill */
            clear(o_r);
    }
    if constexpr (O_BUFFER_COLS > 0)
        store_o_by_tma(p, o_r, scale, tile, buffers_s + (4 * warpgroup + warp) * O_WARP_BYTES, row, thread % 32);
    else
        store_o_direct(
            o_r, scale.of, [&](int h) { return place_of_row(p, seq, tile.z, row + thread % 32 / 4 + 8 * h); },
            thread % 32);
#if FA_LSE && FA_SPLITS == 1 && KEEP_REFERENCES
    store_lse_after_o(p, thread % 2 ? o_r[O_REGS - 2] : o_r[O_REGS - 4], tile, buffers_s, warpgroup, thread);
#endif
}
