/* wgmma_decode loads K and V in one of three ways: by TMA, by TMA out of pages, or from an FP8 cache (any page size).
 * FP8 cache: two warps copy the bytes of K by cp.async and convert them in shared memory, two do so for V. A thread
 * converts what it has copied, so its copies need no barrier. */
#pragma once

#include "wgmma/packed_work.cuh"
#include "wgmma/pages.cuh"

/* Addresses in shared memory: of the first stage of each buffer, of its first barrier, of the bytes of an FP8 cache. */
struct shared_layout {
    unsigned k_s, v_s, ones_s;
    unsigned k_full, k_empty, v_full, v_empty;
    unsigned raw_s;
};

#define PAGES_BY_TMA ((FA_FEATURES & FA_FEATURE_PAGED) != 0 && !FA_FP8_KV)
constexpr int LOADING_WARPS = FA_FP8_KV ? 2 : HAS_PAGES ? PAGE_WARPS : 1; /* each arrives at a full barrier */
constexpr int WARP_ROWS = FA_N / 2;                                       /* of a tile of K or V, FP8 */
constexpr int PART_BYTES = FA_FP8_KV ? WARP_ROWS * DIM_PAD : 0;           /* a warp's share of a tile */
constexpr int RAW_STAGE_BYTES = 4 * PART_BYTES, RAW_BYTES = FA_STAGES * RAW_STAGE_BYTES;

#if FA_FP8_KV
/* A step copies or converts 32 pieces of 16 elements: eight rows of a box. Eight lanes have four pieces of a row and
 * four of the next: converted, these fall in different banks. */
constexpr int STEPS = PART_BYTES / 512, LOOK_UPS = ceil_div(WARP_ROWS, 32);

struct raw_piece {
    int row, column; /* of the warp's share of a tile; the row modulo eight is the same in every step */
};
__device__ __forceinline__ raw_piece piece_of(int step)
{
    const int lane = threadIdx.x % 32;
    return {step / BOXES * 8 + lane / 4, step % BOXES * BOX_COLS + lane % 4 * 16};
}

/* A warp's share of K or V of a sequence. Addresses in shared memory are those of the first stage. */
struct fp8_cache {
    kv_rows rows;
    int first_row, seq_kv;   /* the warp's first row of a tile; keys of the sequence */
    unsigned raw_s, piece_s; /* of the warp's bytes, of the elements of this lane's first piece */
    unsigned full, empty;
    bool aligned;
};

/* The bytes of this lane's first piece. */
__device__ __forceinline__ unsigned raw_piece_s(const fp8_cache &from, int stage)
{
    return from.raw_s + stage * RAW_STAGE_BYTES + reload_thread_index() % 32 * 16;
}

/* Where this lane's rows of a tile are: row 32 i + lane of the warp's. Past the last key the last one. */
struct row_places {
    int page[LOOK_UPS], row[LOOK_UPS];
};

/* The address of a row. Its page, which may be on its way from memory, is not waited for earlier. */
__device__ __forceinline__ u64 address_of(const kv_rows &rows, int page, int row)
{
    const fa_element_kv *row_g = rows.data_g + row * rows.stride;
#if FA_FEATURES & FA_FEATURE_PAGED
    first_use(page);
    row_g += page * rows.stride_page;
#endif
    return reinterpret_cast<u64>(row_g);
}

__device__ __forceinline__ row_places find_rows(const fp8_cache &from, int n)
{
    row_places to;
#pragma unroll
    for (int i = 0; i < LOOK_UPS; ++i) {
        const int key = min(n * FA_N + from.first_row + 32 * i + static_cast<int>(threadIdx.x % 32), from.seq_kv - 1);
#if FA_FEATURES & FA_FEATURE_PAGED
        to.page[i] = page_at(from.rows, key, to.row[i]);
#else
        to.page[i] = 0, to.row[i] = key;
#endif
    }
    return to;
}

/* Bytes of a piece that are read: none past the last key and past dim. */
__device__ __forceinline__ int bytes_of(int column, bool is_key)
{
    if constexpr (FA_DIM % 16 == 0)
        return is_key && column < FA_DIM ? 16 : 0;
    return is_key ? min(max(FA_DIM - column, 0), 16) : 0;
}

/* load_raw from rows that do not start on 16 bytes. */
__device__ __forceinline__ void load_raw_bytes(const fp8_cache &from, unsigned to_s, int key0)
{
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) {
        const raw_piece at = piece_of(step);
        const int key = key0 + at.row, bytes = bytes_of(at.column, key < from.seq_kv);
        const fa_element_kv *from_g = row_at(from.rows, min(key, from.seq_kv - 1), bytes > 0 ? at.column : 0);
        unsigned words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 16; ++i)
            if (i < bytes)
                words[i / 4] |= static_cast<unsigned>(from_g[i].__x) << i % 4 * 8;
        st_shared_16_at(to_s + step * 512, make_uint4(words[0], words[1], words[2], words[3]));
    }
}

/* This thread's pieces of key tile n, if it is before `end`; zeros past the last key and past dim. Commits once. The
 * pages of the next tile are looked up: a look-up takes longer than a tile. */
__device__ __forceinline__ void load_raw(const fp8_cache &from, row_places &places, int stage, int n, int end)
{
    const int key0 = n * FA_N + from.first_row, left = from.seq_kv - key0;
    const unsigned to_s = raw_piece_s(from, stage);
    if (n < end && from.aligned) {
        u64 rows_g[LOOK_UPS], row_g = 0, piece_g = 0;
#pragma unroll
        for (int i = 0; i < LOOK_UPS; ++i)
            rows_g[i] = address_of(from.rows, places.page[i], places.row[i]);
        places = find_rows(from, n + 1);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const raw_piece at = piece_of(step);
            if (step % BOXES == 0) {
                row_g = __shfl_sync(ALL_LANES, rows_g[step / BOXES / 4], at.row % 32);
                piece_g = row_g + at.column;
            }
            const u64 from_g = at.column < FA_DIM ? piece_g + step % BOXES * BOX_COLS : row_g;
            cp_async_16_at(to_s + step * 512, reinterpret_cast<const void *>(from_g),
                           bytes_of(at.column, at.row < left));
        }
    } else if (n < end) {
        load_raw_bytes(from, to_s, key0);
    }
    cp_async_commit();
}

/* The pieces become elements where TMA would put them. Several are read before the first is written. */
__device__ __forceinline__ void convert_raw(unsigned raw_s, unsigned piece_s)
{
    constexpr int BATCH = 4;
#pragma unroll
    for (int first = 0; first < STEPS; first += BATCH) {
        uint4 raw[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH && first + i < STEPS; ++i)
            ld_shared_16_at(raw[i], raw_s + (first + i) * 512);
#pragma unroll
        for (int i = 0; i < BATCH && first + i < STEPS; ++i) {
            const int step = first + i, offset = (step % BOXES * FA_N + step / BOXES * 8) * BOX_ROW_BYTES;
            unsigned w[8];
            unpack_e4m3_pairs(w[0], w[1], raw[i].x);
            unpack_e4m3_pairs(w[2], w[3], raw[i].y);
            unpack_e4m3_pairs(w[4], w[5], raw[i].z);
            unpack_e4m3_pairs(w[6], w[7], raw[i].w);
            st_shared_16_at(piece_s + offset, make_uint4(w[0], w[1], w[2], w[3]));
            st_shared_16_at(xor_address(piece_s, 16) + offset, make_uint4(w[4], w[5], w[6], w[7]));
        }
    }
}

/* Converts the oldest tile, and starts the copy of the one that takes its place. */
__device__ __forceinline__ void convert_tile(const fp8_cache &from, row_places &places, const pipeline_state &to,
                                             int next, int end)
{
    cp_async_wait<FA_STAGES - 1>();
    mbarrier_wait(from.empty + 8 * to.stage, to.phase ^ 1);
    convert_raw(raw_piece_s(from, to.stage), from.piece_s + to.stage * K_TILE_BYTES);
    fence_async_proxy();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        mbarrier_arrive(from.full + 8 * to.stage);
    load_raw(from, places, to.stage, next, end);
}

/* What this warp loads. */
__device__ __forceinline__ fp8_cache cache_of(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                              const sequence &seq)
{
    const int warp = uniform_by_shuffle(threadIdx.x / 32), lane = threadIdx.x % 32, row = lane / 4;
    const bool values = warp >= 2;
    kv_rows k = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, seq.batch, tile.kv_head);
    kv_rows v = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, seq.batch, tile.kv_head);
    k.data_g = key_rows(p.k, seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile.kv_head);
    v.data_g = key_rows(p.v, seq, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile.kv_head);
    fp8_cache cache = {values ? v : k, warp % 2 * WARP_ROWS, seq.seq_kv};
    cache.raw_s = at.raw_s + warp * PART_BYTES;
    cache.piece_s = (values ? at.v_s : at.k_s) + (cache.first_row + row) * BOX_ROW_BYTES +
                    (lane % 4 * 2 ^ swizzle_of_row(row)) * 16;
    cache.full = values ? at.v_full : at.k_full;
    cache.empty = values ? at.v_empty : at.k_empty;
    cache.aligned = on_16_bytes(p, k, v);
    return cache;
}

/* The producer's warpgroup copies the first key tiles of [first, end) (COPIES), or it converts them all, and copies the
 * others as stages become free. */
template <bool COPIES>
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                        const sequence &seq, int first, int end, pipeline_state &to, pipeline_state &,
                                        bool)
{
    if (first == end) /* the table may have no page */
        return;
    const fp8_cache cache = cache_of(p, at, tile, seq);
    row_places places = find_rows(cache, COPIES ? first : first + FA_STAGES);
#pragma unroll 1
    for (int i = 0; COPIES && i < FA_STAGES; ++i) /* commits for tiles that there are not, too */
        load_raw(cache, places, i, first + i, end);
#pragma unroll 1
    for (int n = first; !COPIES && n < end; ++n) {
        convert_tile(cache, places, to, n + FA_STAGES, end);
        advance<FA_STAGES>(to);
    }
}
#elif PAGES_BY_TMA
constexpr int LOOKED_UP = 3; /* tiles at once: a look-up takes longer than a tile */

enum { BAR_READY = 2, BAR_LOADERS }; /* named barriers: consumers and loaders wait for barriers; loaders alone */

/* The producer's warpgroup loads the key tiles. The first look-ups are on their way while barriers are initialized. */
template <class INIT>
__device__ __forceinline__ void produce_from_pages(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                                   const sequence &seq, const tile_range &keys, int warp, bool inits,
                                                   INIT init_barriers)
{
    const int first = keys.first, end = keys.end;
    const paged_rows rows = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, seq.batch, tile.kv_head);
    box_places places[LOOKED_UP];
#pragma unroll
    for (int i = 0; i < LOOKED_UP; ++i)
        find_boxes(places[i], rows, (first + i) * FA_N, seq.seq_kv, warp);
    if (inits) {
        tma_prefetch_map(&p.k_map);
        tma_prefetch_map(&p.v_map);
        init_barriers();
    }
    bar_sync(BAR_LOADERS, 32 * PAGE_WARPS);
    bar_arrive(BAR_READY, 32 * (PAGE_WARPS + FA_WARPS));
    if (first == end)
        return;
    const int last_left = max(min(seq.seq_kv - (end - 1) * FA_N, FA_N), 0), whole = end - (last_left < FA_N);
    const bool leads = elect_one();
    auto load_v = [&](const box_places &from, int boxes, pipeline_state &to) {
        load_boxes<BOXES_V>(&p.v_map, from, boxes, at.v_s, at.v_full, at.v_empty, to, tile.kv_head, warp);
    };
    if (leads) {
        pipeline_state k_to = {0, 0}, v_to = {0, 0};
        for (int n = first; n < end;) {
#pragma unroll
            for (int i = 0; i < LOOKED_UP && n < end; ++i, ++n) { /* unrolled: a move would wait for its look-up */
                load_boxes<BOXES>(&p.k_map, places[i], n < whole ? TILE_BOXES : boxes_of<false>(last_left), at.k_s,
                                  at.k_full, at.k_empty, k_to, tile.kv_head, warp);
                if (n < whole)
                    load_v(places[i], TILE_BOXES, v_to);
                find_boxes(places[i], rows, (n + LOOKED_UP) * FA_N, seq.seq_kv, warp);
            }
        }
    }
    if (whole == end)
        return;
    pipeline_state to = state_of<FA_STAGES>(whole - first);
    load_last_values(rows, at.v_s, at.v_empty, to, whole * FA_N, last_left);
    find_boxes(places[0], rows, whole * FA_N, seq.seq_kv, warp);
    if (leads)
        load_v(places[0], boxes_of<true>(last_left), to);
}
#else
/* The producer, one thread, loads key tiles [first, end). */
template <bool>
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                        const sequence &seq, int first, int end, pipeline_state &k_to,
                                        pipeline_state &v_to, bool)
{
    const tma_row key0 = tma_key_row(p, seq, 0);
    for (int n = first; n < end; ++n) {
        const int row = row_in_map(p, key0.row + n * FA_N);
        load_kv<BOXES>(&p.k_map, at.k_s, at.k_full, at.k_empty, k_to, row, tile.kv_head, key0.batch);
        load_kv<BOXES_V>(&p.v_map, at.v_s, at.v_full, at.v_empty, v_to, row, tile.kv_head, key0.batch);
    }
}
#endif
