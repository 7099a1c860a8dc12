/* What mma_decode and mma_mla share: packed rows, the keys that a block streams through shared memory by cp.async, and
 * the store of combined rows. */
#pragma once

#include "mma/combine.cuh"
#include "shared/packed.cuh"
#include "shared/schedule.cuh"
#include "shared/score.cuh"

constexpr int M = FA_M, N = FA_N, SPLITS = FA_SPLITS;

/* The keys that a block works on: tiles [begin, end) of a K/V head. */
struct key_tiles {
    kv_rows k, v;
    int begin, end;
    bool aligned; /* 16-byte copies */
};

__device__ __forceinline__ key_tiles find_keys(const fa_params &p, const packed_tile &tile)
{
    key_tiles keys;
#if FA_FEATURES & (FA_FEATURE_WINDOW | FA_FEATURE_CHUNK)
    const key_range seen = keys_seen_by_any(p, own_sequence(p, tile.batch), first_query(tile), last_query(tile));
    const int first = seen.first / N, some = seen.first < seen.end ? (seen.end - 1) / N + 1 - first : 0;
#else
    const int first = 0, some = (keys_of_row(p, last_query(tile)) + N - 1) / N;
#endif
    const fa_i64 tiles = some;
#if FA_UNLIKE_SPLITS
    const int splits = tile.splits;
#else
    constexpr int splits = SPLITS;
#endif
    keys.begin = first + static_cast<int>(tiles * tile.split / splits);
    keys.end = first + static_cast<int>(tiles * (tile.split + 1) / splits);
    keys.k = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile.batch, tile.kv_head);
    keys.v = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile.batch, tile.kv_head);
    keys.aligned = on_16_bytes(p, keys.k, keys.v);
    return keys;
}

/* A chunk has 16 bytes of K or V; CHUNK counts its elements. pitch_of: elements from row to row in shared memory. The
 * number of chunks is odd: ldmatrix reads without bank conflicts. */
constexpr int CHUNK = 16 / sizeof(fa_element_kv);
__host__ __device__ constexpr int pitch_of(int columns) { return (ceil_div(columns, 16) * 16 / CHUNK | 1) * CHUNK; }

/* N rows of K or V from `row` on into a tile; rows past the last key become zero. */
template <int COLUMNS, int THREADS>
__device__ __forceinline__ void load_tile(fa_element_kv *tile_s, const kv_rows &rows, int row, int seq_kv, bool aligned,
                                          int thread)
{
    constexpr int CHUNKS = ceil_div(COLUMNS, CHUNK), LAST = COLUMNS - (CHUNKS - 1) * CHUNK; /* elements of the last */
    constexpr int AT_ONCE = (HAS_PAGES || FA_FP8_KV) && M == 64 ? 2 : 4;                    /* more would spill */
#pragma unroll AT_ONCE
    for (int item = thread; item < N * CHUNKS; item += THREADS) {
        const int at = item / CHUNKS, chunk = item % CHUNKS, key = row + at;
        const int elements = LAST < CHUNK && chunk == CHUNKS - 1 ? LAST : CHUNK;
        fa_element_kv *to_s = tile_s + at * pitch_of(COLUMNS) + chunk * CHUNK;
        const fa_element_kv *from_g = row_at(rows, min(key, seq_kv - 1), chunk * CHUNK);
        if (aligned) {
            cp_async_16(to_s, from_g, key < seq_kv ? elements * 16 / CHUNK : 0);
        } else {
#pragma unroll
            for (int e = 0; e < CHUNK; ++e)
                to_s[e] = key < seq_kv && e < elements ? from_g[e] : fa_element_kv(0.0f);
        }
    }
}

/* A row that saw no key gives 0. */
__device__ __forceinline__ void store_partial(const fa_params &p, const packed_tile &tile, int row, int chunk,
                                              const partial &value)
{
    const packed_row to = find_packed_row(tile, tile.row0 + row);
    float max = value.max, sum = value.sum;
    const float weight = add_sink(p, to.head, max, sum);
    const float factor = inverse_of_sum(sum) * weight * value_scale_of_kv_head(p, tile.batch, tile.kv_head);
#if FA_LSE
    if (chunk == 0)
        store_lse(p, tile.batch, to.head, to.query, log_sum_exp(max, sum));
#endif
    fa_element *to_g = static_cast<fa_element *>(p.o) + tile.batch * p.o_stride_b + to.head * p.o_stride_h +
                       to.query * p.o_stride_s + chunk * 8;
    uint4 words;
    words.x = pack_elements(value.o[0] * factor, value.o[1] * factor);
    words.y = pack_elements(value.o[2] * factor, value.o[3] * factor);
    words.z = pack_elements(value.o[4] * factor, value.o[5] * factor);
    words.w = pack_elements(value.o[6] * factor, value.o[7] * factor);
    if (reinterpret_cast<fa_i64>(to_g) % 16 == 0) {
        *reinterpret_cast<uint4 *>(to_g) = words;
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        to_g[e] = fa_element(value.o[e] * factor);
}

/* Combines the parts of a tile and stores its rows. */
template <int GROUPS, int THREADS>
__device__ __forceinline__ void store_combined(const fa_params &p, float *parts_s, const packed_tile &tile)
{
    const auto store = [&](int row, int chunk, const partial &value) { store_partial(p, tile, row, chunk, value); };
    const int rows = min(M, tile.rows - tile.row0);
#if FA_UNLIKE_SPLITS
    combine_splits<GROUPS, THREADS>(p, parts_s, tile.first_block, tile.first_block, tile.split, tile.splits, rows,
                                    store);
#else
    combine_parts<GROUPS, THREADS>(p, parts_s, tile.unit, tile.split, rows, store);
#endif
}
