/* How wgmma_decode loads K and V: by TMA, by TMA out of pages, or from an FP8 cache in pages of any size.
 * FP8 cache: two warps copy the bytes of K and convert them in shared memory, two those of V. Each has half the keys.
 * They copy boxes of 16 rows by TMA, or rows by cp.async where pages or addresses are not multiples of 16. */
#pragma once

#include "wgmma/packed_work.cuh"
#include "wgmma/pages.cuh"

/* Addresses in shared memory: of the first stage of each buffer, of its first barrier, of the bytes of an FP8 cache. */
struct shared_layout {
    unsigned k_s, v_s, ones_s;
    unsigned k_full, k_empty, v_full, v_empty;
    unsigned raw_s, raw_full;
};

#define PAGES_BY_TMA ((FA_FEATURES & FA_FEATURE_PAGED) != 0 && !FA_FP8_KV)
constexpr int LOADING_WARPS = FA_FP8_KV ? 2 : HAS_PAGES ? PAGE_WARPS : 1; /* each arrives at a full barrier */
constexpr int WARP_ROWS = FA_N / 2;                                       /* of a tile of K or V, FP8 */
constexpr int PART_BYTES = FA_FP8_KV ? WARP_ROWS * DIM_PAD : 0;           /* a warp's share of a tile */
constexpr int RAW_STAGE_BYTES = 4 * PART_BYTES, RAW_BYTES = FA_STAGES * RAW_STAGE_BYTES;
/* Bytes of a row of a box; by 128 a whole line of the L2 comes at once. */
constexpr int RAW_ROW = BOXES % 2 == 0 ? 128 : 64;

#if FA_FP8_KV
/* A warp's bytes of a tile are DIM_PAD / RAW_ROW boxes of WARP_ROWS rows, swizzled as TMA does. A step copies 32 pieces
 * of 16 bytes, or converts them: eight rows of 64 columns. */
constexpr int STEPS = PART_BYTES / 512, LOOK_UPS = ceil_div(WARP_ROWS, 32);
constexpr int RAW_COLUMN_BYTES = WARP_ROWS * RAW_ROW;
constexpr int LOOKED_UP = HAS_PAGES && LOOK_UPS == 1 && FA_WARPS == 4 ? 3 : 1; /* tiles ahead: a look-up takes long */

/* Where a row has its pieces: piece i at place i ^ swizzle_of_raw_row(row). */
__device__ __forceinline__ unsigned swizzle_of_raw_row(unsigned row) { return RAW_ROW == 128 ? row % 8 : row / 2 % 4; }

/* A warp's share of K or V of a sequence. Addresses in shared memory are those of the first stage. */
struct fp8_cache {
    kv_rows rows;
    int first_row, seq_kv;   /* the warp's first row of a tile; keys of the sequence */
    unsigned raw_s, piece_s; /* of the warp's bytes, of the elements of this lane's first piece */
    unsigned full, empty, raw_full;
    bool by_tma, aligned;
    const fa_tensor_map *map; /* by TMA */
    int kv_head;
    tma_row key0;
};

/* Where this lane's rows of a tile are: row 32 i + lane of the warp's. Past the last key the last one. */
struct row_places {
    int page[LOOK_UPS], row[LOOK_UPS];
};

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

/* Bytes of a piece that are read: none past the last key and past dim. */
__device__ __forceinline__ int bytes_of(int column, bool is_key)
{
    if constexpr (FA_DIM % 16 == 0)
        return is_key && column < FA_DIM ? 16 : 0;
    return is_key ? min(max(FA_DIM - column, 0), 16) : 0;
}

/* The piece that this lane copies: its row of the warp's share, its column, its place in shared memory. */
struct raw_piece {
    int row, column;
    unsigned to_s;
};
__device__ __forceinline__ raw_piece piece_of(unsigned raw_s, int step)
{
    constexpr int LANES = RAW_ROW / 16, ROWS = 32 / LANES; /* of a row; of a step */
    const unsigned lane = reload_thread_index() % 32, row = step % (WARP_ROWS / ROWS) * ROWS + lane / LANES;
    return {static_cast<int>(row), static_cast<int>(step / (WARP_ROWS / ROWS) * RAW_ROW + lane % LANES * 16),
            raw_s + step * 512 + lane / LANES * RAW_ROW + (lane % LANES ^ swizzle_of_raw_row(row)) * 16};
}

/* A tile's bytes from rows that do not start on 16 bytes. */
__device__ __forceinline__ void copy_bytes(const fp8_cache &from, unsigned raw_s, int key0)
{
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) {
        const raw_piece at = piece_of(raw_s, step);
        const int key = key0 + at.row, bytes = bytes_of(at.column, key < from.seq_kv);
        const fa_element_kv *from_g = row_at(from.rows, min(key, from.seq_kv - 1), bytes > 0 ? at.column : 0);
        unsigned words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 16; ++i)
            if (i < bytes)
                words[i / 4] |= static_cast<unsigned>(from_g[i].__x) << i % 4 * 8;
        st_shared_16_at(at.to_s, make_uint4(words[0], words[1], words[2], words[3]));
    }
}

__device__ __forceinline__ void copy_rows(const fp8_cache &from, const row_places &places, unsigned raw_s, int left)
{
    u64 rows_g[LOOK_UPS];
#pragma unroll
    for (int i = 0; i < LOOK_UPS; ++i)
        rows_g[i] = address_of(from.rows, places.page[i], places.row[i]);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const raw_piece at = piece_of(raw_s, step);
        const u64 row_g = __shfl_sync(ALL_LANES, rows_g[step * 512 / RAW_ROW % WARP_ROWS / 32], at.row % 32);
        cp_async_16_at(at.to_s, reinterpret_cast<const void *>(at.column < FA_DIM ? row_g + at.column : row_g),
                       bytes_of(at.column, at.row < left));
    }
}

/* By TMA: one lane loads the boxes that have a key. Others know where they begin, but ptxas loops over lanes that may
 * be several, 175 clocks a load (studies/wgmma_steps.md, 22). */
__device__ __forceinline__ void copy_boxes(const fp8_cache &from, const row_places &places, unsigned raw_s,
                                           unsigned bar, int left)
{
    const bool loads = elect_one();
    if (loads)
        mbarrier_arrive_expect(bar, min(max(left + 15, 0) / 16, WARP_ROWS / 16) * (16 * DIM_PAD));
#pragma unroll
    for (int row = 0; row < WARP_ROWS; row += 16) {
        const int first = __shfl_sync(ALL_LANES, places.row[row / 32], row % 32);
        const int page = HAS_PAGES ? __shfl_sync(ALL_LANES, places.page[row / 32], row % 32) : 0;
        if (loads && row < left)
#pragma unroll
            for (int column = 0; column < DIM_PAD / RAW_ROW; ++column)
                tma_load(raw_s + column * RAW_COLUMN_BYTES + row * RAW_ROW, from.map, bar, column * RAW_ROW,
                         HAS_PAGES ? first : from.key0.row + first, from.kv_head, HAS_PAGES ? page : from.key0.batch);
    }
    __syncwarp();
}

/* Copies the warp's bytes of key tile n to a stage and commits. A tile from `end` on has none. Then finds the rows of
 * the tile LOOKED_UP tiles on. */
__device__ __forceinline__ void copy_tile(const fp8_cache &from, row_places &places, int stage, int n, int end)
{
    const int key0 = n * FA_N + from.first_row, left = from.seq_kv - key0;
    const unsigned raw_s = from.raw_s + stage * RAW_STAGE_BYTES;
    if (n < end) {
        if (from.by_tma)
            copy_boxes(from, places, raw_s, from.raw_full + 8 * stage, left);
        else if (from.aligned)
            copy_rows(from, places, raw_s, left);
        else
            copy_bytes(from, raw_s, key0);
        places = find_rows(from, n + LOOKED_UP);
    }
    cp_async_commit();
}

/* Zeros for rows past the last key: what a page has there may be NaN, and 0 times NaN is NaN. */
__device__ __forceinline__ void clear_rows(unsigned raw_s, int left)
{
#pragma unroll 1
    for (int at = max(left, 0) * RAW_ROW + static_cast<int>(threadIdx.x % 32) * 16; at < RAW_COLUMN_BYTES; at += 512)
#pragma unroll
        for (int column = 0; column < DIM_PAD / RAW_ROW; ++column)
            st_shared_16_at(raw_s + column * RAW_COLUMN_BYTES + at, make_uint4(0, 0, 0, 0));
}

/* The warp's bytes become elements where TMA would put them. Eight lanes have four pieces of a row and four of the
 * next: converted, these fall in different banks. So do the bytes: of rows of 128, lanes with an odd row take the
 * second 64 columns first. Several pieces are read before the first is written. */
__device__ __forceinline__ void convert_raw(unsigned raw_s, unsigned piece_s)
{
    constexpr int BATCH = 4;
    const unsigned lane = reload_thread_index() % 32, row = lane / 4, odd = RAW_ROW == 128 ? row % 2 : 0;
    const unsigned first_s = raw_s + row * RAW_ROW + ((odd * 4 + lane % 4) ^ swizzle_of_raw_row(row)) * 16;
    const unsigned to_s[2] = {piece_s + odd * (FA_N * BOX_ROW_BYTES), piece_s + (1 - odd) * (FA_N * BOX_ROW_BYTES)};
#pragma unroll
    for (int first = 0; first < STEPS; first += BATCH) {
        uint4 raw[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH && first + i < STEPS; ++i) {
            const int box = (first + i) % BOXES, offset = (first + i) / BOXES * 8 * RAW_ROW;
            if (RAW_ROW == 128)
                ld_shared_16_at(raw[i], xor_address(first_s, box % 2 * 64) + box / 2 * RAW_COLUMN_BYTES + offset);
            else
                ld_shared_16_at(raw[i], first_s + box * RAW_COLUMN_BYTES + offset);
        }
#pragma unroll
        for (int i = 0; i < BATCH && first + i < STEPS; ++i) {
            const int box = (first + i) % BOXES, pair = RAW_ROW == 128 ? box % 2 : 0;
            const unsigned at_s = to_s[pair], offset = ((box - pair) * FA_N + (first + i) / BOXES * 8) * BOX_ROW_BYTES;
            unsigned w[8];
            unpack_e4m3_pairs(w[0], w[1], raw[i].x);
            unpack_e4m3_pairs(w[2], w[3], raw[i].y);
            unpack_e4m3_pairs(w[4], w[5], raw[i].z);
            unpack_e4m3_pairs(w[6], w[7], raw[i].w);
            st_shared_16_at(at_s + offset, make_uint4(w[0], w[1], w[2], w[3]));
            st_shared_16_at(xor_address(at_s, 16) + offset, make_uint4(w[4], w[5], w[6], w[7]));
        }
    }
}

/* Converts key tile n, the oldest, and starts the copy of the one that takes its place. */
__device__ __forceinline__ void convert_tile(const fp8_cache &from, row_places &places, const pipeline_state &to, int n,
                                             int end)
{
    const int left = from.seq_kv - (n * FA_N + from.first_row);
    const unsigned raw_s = from.raw_s + to.stage * RAW_STAGE_BYTES;
    if (from.by_tma) {
        mbarrier_wait(from.raw_full + 8 * to.stage, to.phase);
        if (left < WARP_ROWS)
            clear_rows(raw_s, left);
    } else {
        cp_async_wait<FA_STAGES - 1>();
    }
    __syncwarp(); /* other lanes' copies and zeros */
    mbarrier_wait(from.empty + 8 * to.stage, to.phase ^ 1);
    convert_raw(raw_s, from.piece_s + to.stage * K_TILE_BYTES);
    fence_async_proxy();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        mbarrier_arrive(from.full + 8 * to.stage);
    copy_tile(from, places, to.stage, n + FA_STAGES, end);
}

/* Whether K and V have maps, and boxes lie in one page each. */
__device__ __forceinline__ bool has_boxes(const fa_params &p)
{
    const u64 addresses = reinterpret_cast<u64>(p.k) | reinterpret_cast<u64>(p.v);
    const fa_i64 strides = p.k_stride_b | p.k_stride_h | p.k_stride_s | p.v_stride_b | p.v_stride_h | p.v_stride_s;
    return FA_DIM % 16 == 0 && (addresses | strides | (HAS_PAGES ? p.page_size : 0)) % 16 == 0;
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
    cache.raw_full = at.raw_full + warp * (8 * FA_STAGES);
    cache.by_tma = has_boxes(p);
    cache.aligned = on_16_bytes(p, k, v);
    cache.map = values ? &p.v_map : &p.k_map;
    cache.kv_head = tile.kv_head;
    cache.key0 = tma_key_row(p, seq, 0);
    return cache;
}

/* The producer's warpgroup copies the first key tiles of [first, end) (COPIES), or it converts them all, and copies the
 * others as stages become free. */
template <bool COPIES>
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                        const sequence &seq, int first, int end, pipeline_state &, pipeline_state &,
                                        bool)
{
    if (first == end) /* the table may have no page */
        return;
    const fp8_cache cache = cache_of(p, at, tile, seq);
    row_places places[LOOKED_UP];
#pragma unroll
    for (int i = 0; i < LOOKED_UP; ++i)
        places[i] = find_rows(cache, first + (COPIES ? 0 : FA_STAGES) + i);
    if (COPIES && threadIdx.x % 32 == 0) {
        for (int i = 0; i < FA_STAGES; ++i)
            mbarrier_init(cache.raw_full + 8 * i, 1);
        mbarrier_init_fence();
    }
    __syncwarp();
    pipeline_state at_tile = {0, 0};
    const int last = COPIES ? first + FA_STAGES : end; /* copies commit for tiles that there are not, too */
#pragma unroll 1
    for (int n = first; n < last;) {
#pragma unroll
        for (int i = 0; i < LOOKED_UP && n < last; ++i, ++n) { /* unrolled: a move would wait for its look-up */
            if (COPIES)
                copy_tile(cache, places[i], at_tile.stage, n, end);
            else
                convert_tile(cache, places[i], at_tile, n, end);
            advance<FA_STAGES>(at_tile);
        }
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
