/* wgmma_decode's loads of K and V: by TMA, by TMA out of pages, or from an FP8 cache with pages of any size. The
 * producer's warpgroup copies the bytes of an FP8 cache by cp.async and converts them in shared memory. A thread
 * converts the pieces that it has copied: its copies need no barrier. */
#pragma once

#include "wgmma/packed_work.cuh"
#include "wgmma/pages.cuh"

/* Addresses in shared memory: of the first stage of each buffer, of its first barrier, of the bytes of an FP8 cache. */
struct shared_layout {
    unsigned k_s, v_s, ones_s;
    unsigned k_full, k_empty, v_full, v_empty;
    unsigned raw_s;
};

constexpr bool LOADS_BY_WARPS = HAS_PAGES || FA_FP8_KV;         /* not by one thread alone */
constexpr int LOADING_WARPS = FA_FP8_KV ? 4 : 1;                /* each arrives at a full barrier */
constexpr int RAW_PIECES = FA_FP8_KV ? FA_N * DIM_PAD / 16 : 0; /* of 16 elements, in a tile */
constexpr int RAW_BYTES = FA_STAGES * 2 * RAW_PIECES * 16;

#if FA_FP8_KV
/* The place of 16 elements in a tile: row, box, number in the row of the box. Eight lanes have four pieces of one row
 * and four of the next. Converted, these fall in different banks. */
struct raw_piece {
    int row, box, chunk;
};
__device__ __forceinline__ raw_piece piece_of(int item)
{
    return {item / 8 / BOXES * 2 + item / 4 % 2, item / 8 % BOXES, item % 4};
}

/* K or V of a sequence, and the bytes of their tiles. */
struct fp8_cache {
    kv_rows rows;
    unsigned raw_s;
    int seq_kv;
    bool aligned;
};

/* This thread's pieces of key tile n, if it is before `end`; zeros past the last key and past dim. Commits once. */
__device__ __forceinline__ void load_raw(const fp8_cache &from, int stage, int n, int end)
{
#pragma unroll 4
    for (int item = threadIdx.x; n < end && item < RAW_PIECES; item += 128) {
        const raw_piece at = piece_of(item);
        const int key = n * FA_N + at.row, column = at.box * BOX_COLS + at.chunk * 16;
        const int bytes = key < from.seq_kv ? min(max(FA_DIM - column, 0), 16) : 0;
        const fa_element_kv *from_g = row_at(from.rows, min(key, from.seq_kv - 1), column < FA_DIM ? column : 0);
        const unsigned to_s = from.raw_s + (stage * 2 * RAW_PIECES + item) * 16;
        if (from.aligned) {
            cp_async_16_at(to_s, from_g, bytes);
            continue;
        }
        unsigned words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 16; ++i)
            if (i < bytes)
                words[i / 4] |= static_cast<unsigned>(from_g[i].__x) << i % 4 * 8;
        st_shared_16_at(to_s, make_uint4(words[0], words[1], words[2], words[3]));
    }
    cp_async_commit();
}

/* The pieces become elements where TMA would put them. */
__device__ __forceinline__ void convert_raw(unsigned raw_s, unsigned tile_s)
{
#pragma unroll 2
    for (int item = threadIdx.x; item < RAW_PIECES; item += 128) {
        const raw_piece at = piece_of(item);
        uint4 raw;
        ld_shared_16_at(raw, raw_s + item * 16);
        const unsigned four[4] = {raw.x, raw.y, raw.z, raw.w};
        unsigned w[8];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            unpack_e4m3(w[2 * i], w[2 * i + 1], __byte_perm(four[i], 0, 0x3120));
        const unsigned row_s = tile_s + (at.box * FA_N + at.row) * BOX_ROW_BYTES, swizzle = swizzle_of_row(at.row);
        st_shared_16_at(row_s + (at.chunk * 2 ^ swizzle) * 16, make_uint4(w[0], w[1], w[2], w[3]));
        st_shared_16_at(row_s + (at.chunk * 2 + 1 ^ swizzle) * 16, make_uint4(w[4], w[5], w[6], w[7]));
    }
}

/* Converts the oldest tile of K or of V, and starts the copy of the one that takes its place. */
__device__ __forceinline__ void convert_tile(const fp8_cache &from, unsigned ring_s, unsigned full, unsigned empty,
                                             const pipeline_state &to, int next, int end)
{
    cp_async_wait<2 * FA_STAGES - 1>();
    mbarrier_wait(empty + 8 * to.stage, to.phase ^ 1);
    convert_raw(from.raw_s + to.stage * 2 * RAW_PIECES * 16, ring_s + to.stage * K_TILE_BYTES);
    fence_async_proxy();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        mbarrier_arrive(full + 8 * to.stage);
    load_raw(from, to.stage, next, end);
}

__device__ __forceinline__ fp8_cache cache_of(const fa_params &p, const void *tensor, fa_i64 stride_b, fa_i64 stride_h,
                                              fa_i64 stride_s, const packed_tile &tile, const sequence &seq,
                                              unsigned raw_s)
{
    kv_rows rows = kv_rows_of(p, tensor, stride_b, stride_h, stride_s, seq.batch, tile.kv_head);
    rows.data_g = key_rows(tensor, seq, stride_b, stride_h, stride_s, tile.kv_head);
    return {rows, raw_s, seq.seq_kv, false};
}

/* The producer's warpgroup copies the first key tiles of [first, end) (COPIES), or it converts them all, and copies the
 * others as stages become free. */
template <bool COPIES>
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                        const sequence &seq, int first, int end, pipeline_state &to, pipeline_state &,
                                        bool)
{
    fp8_cache k = cache_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile, seq, at.raw_s);
    fp8_cache v = cache_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile, seq, at.raw_s + RAW_PIECES * 16);
    k.aligned = v.aligned = on_16_bytes(p, k.rows, v.rows);
#pragma unroll 1
    for (int i = 0; COPIES && i < FA_STAGES; ++i) { /* commits for tiles that there are not, too */
        load_raw(k, i, first + i, end);
        load_raw(v, i, first + i, end);
    }
#pragma unroll 1
    for (int n = first; !COPIES && n < end; ++n) {
        convert_tile(k, at.k_s, at.k_full, at.k_empty, to, n + FA_STAGES, end);
        convert_tile(v, at.v_s, at.v_full, at.v_empty, to, n + FA_STAGES, end);
        advance<FA_STAGES>(to);
    }
}
#else
/* The producer loads key tiles [first, end): one thread, or with pages a warp of which one lane leads. The warp looks
 * up the pages of TILES_AT_ONCE tiles at once, ahead of them: a look-up takes longer than a tile. */
template <bool>
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                        const sequence &seq, int first, int end, pipeline_state &k_to,
                                        pipeline_state &v_to, bool leads)
{
#if FA_FEATURES & FA_FEATURE_PAGED
    const paged_rows k = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, seq.batch, tile.kv_head);
    const paged_rows v = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, seq.batch, tile.kv_head);
    constexpr int BOXES_OF_TILE = FA_N / PAGE_BOX, TILES_AT_ONCE = 32 / BOXES_OF_TILE;
    box_place now = {0, 0}, later = find_box(k, first * FA_N, seq.seq_kv);
#else
    const tma_row key0 = tma_key_row(p, seq, 0);
#endif
    for (int n = first; n < end; ++n) {
#if FA_FEATURES & FA_FEATURE_PAGED
        const int box = (n - first) % TILES_AT_ONCE * BOXES_OF_TILE;
        if (box == 0) {
            now = later;
            later = find_box(k, (n + TILES_AT_ONCE) * FA_N, seq.seq_kv);
        }
        load_kv_from_pages<BOXES, false>(&p.k_map, k, now, box, at.k_s, at.k_full, at.k_empty, k_to, n * FA_N,
                                         seq.seq_kv, tile.kv_head, leads);
        load_kv_from_pages<BOXES_V, true>(&p.v_map, v, now, box, at.v_s, at.v_full, at.v_empty, v_to, n * FA_N,
                                          seq.seq_kv, tile.kv_head, leads);
#else
        const int row = row_in_map(p, key0.row + n * FA_N);
        load_kv<BOXES>(&p.k_map, at.k_s, at.k_full, at.k_empty, k_to, row, tile.kv_head, key0.batch);
        load_kv<BOXES_V>(&p.v_map, at.v_s, at.v_full, at.v_empty, v_to, row, tile.kv_head, key0.batch);
#endif
    }
}
#endif
