/* What a query row sees: the sequence that it belongs to, and the keys of it that lengths, the causal mask, windows and
 * chunks leave (FA_FEATURE_VARLEN, WINDOW, CHUNK). Keys that a row sees lie in one range [first, end), and neither end
 * moves back from a row to the next: the ranges of a tile's first and last row say what the tile needs.
 *
 *     sequence seq;
 *     if (!find_sequence<M>(seq, tile, p))      tile: of [0, tiles_m), all sequences of a head; then of its sequence
 *         return;
 *     for (key tiles of keys_seen_by_any(p, seq, first_row, last_row))
 *         those in keys_seen_by_all(p, seq, first_row, last_row) need no mask; for others: keys_seen(p, seq, row) */
#pragma once

#include "shared/common.cuh"

constexpr bool HAS_VARLEN = (FA_FEATURES & FA_FEATURE_VARLEN) != 0;
constexpr bool HAS_WINDOW = (FA_FEATURES & FA_FEATURE_WINDOW) != 0;
constexpr bool HAS_CHUNK = (FA_FEATURES & FA_FEATURE_CHUNK) != 0;
constexpr bool HAS_PAGES = (FA_FEATURES & FA_FEATURE_PAGED) != 0;
constexpr bool HAS_FIRST_KEY = HAS_WINDOW || HAS_CHUNK; /* a row may see nothing of the first keys */

struct sequence {
    int batch, seq_q, seq_kv; /* its number; rows and keys that count */
    int first_q, first_kv;    /* where its rows lie in the tensors of a head; with equal lengths 0 */
};

__device__ __forceinline__ int length_of(const fa_i32 *start, const fa_i32 *used, int batch)
{
    return used != nullptr ? used[batch] : start[batch + 1] - start[batch];
}

__device__ __forceinline__ sequence sequence_of(const fa_params &p, int batch)
{
    if constexpr (HAS_VARLEN)
        return {batch, length_of(p.start_q, p.used_q, batch), length_of(p.start_kv, p.used_kv, batch), p.start_q[batch],
                HAS_PAGES ? 0 : p.start_kv[batch]};
    return {batch, p.seq_q, p.seq_kv, 0, 0};
}

/* The sum over the lanes up to this one. A whole warp calls. */
__device__ __forceinline__ int sum_up_to_lane(int value)
{
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int step = 1; step < WARP_SIZE; step *= 2) {
        const int before = __shfl_up_sync(ALL_LANES, value, step);
        value += lane >= step ? before : 0;
    }
    return value;
}

/* The sequence of tile `tile` of a head, and `tile` counted from the first of that sequence. The tiles of the sequences
 * follow each other, ceil(seq_q * heads_packed / TILE_M) of each. False: the sequences end before this tile. A whole
 * warp calls: each lane looks at one sequence. */
template <int TILE_M>
__device__ __forceinline__ bool find_sequence(sequence &seq, int &tile, const fa_params &p, int heads_packed = 1)
{
    const int lane = threadIdx.x % WARP_SIZE;
    for (int first = 0; first < p.batch; first += WARP_SIZE) {
        const int batch = first + lane;
        const int rows = batch < p.batch ? length_of(p.start_q, p.used_q, batch) * heads_packed : 0;
        const int tiles = (rows + TILE_M - 1) / TILE_M;
        const int end = sum_up_to_lane(tiles); /* of this lane's sequence */
        const unsigned later = __ballot_sync(ALL_LANES, end > tile);
        if (later != 0) {
            const int found = __ffs(static_cast<int>(later)) - 1;
            tile -= __shfl_sync(ALL_LANES, end - tiles, found);
            seq = sequence_of(p, first + found);
            return true;
        }
        tile -= __shfl_sync(ALL_LANES, end, WARP_SIZE - 1);
    }
    return false;
}

/* Where the pages of a sequence stand in the table. */
__device__ __forceinline__ const fa_i32 *page_table(const fa_params &p, int batch)
{
    return p.pages + (p.page_start != nullptr ? p.page_start[batch] : batch * p.pages_stride);
}

/* The parameters of one sequence alone, as those of a dense batch of one: for kernels that read them in many places. */
__device__ __forceinline__ void become_sequence(fa_params &p, const sequence &seq)
{
    p.q = static_cast<const fa_element_q *>(p.q) + seq.first_q * p.q_stride_s;
    p.k = static_cast<const fa_element_kv *>(p.k) + seq.first_kv * p.k_stride_s;
    p.v = static_cast<const fa_element_kv *>(p.v) + seq.first_kv * p.v_stride_s;
    p.o = static_cast<fa_element *>(p.o) + seq.first_q * p.o_stride_s;
    if (p.lse != nullptr)
        p.lse += seq.first_q * p.lse_stride_s;
    p.slopes += seq.batch * p.slopes_stride_b;
    if constexpr ((FA_FEATURES & FA_FEATURE_MASK) != 0)
        p.mask_start += seq.batch;
    if constexpr (FA_FP8)
        p.q_descale += seq.batch * p.q_descale_stride_b;
    if constexpr (FA_FP8 || FA_FP8_KV)
        p.k_descale += seq.batch * p.kv_descale_stride_b, p.v_descale += seq.batch * p.kv_descale_stride_b;
    if constexpr (HAS_PAGES)
        p.pages = page_table(p, seq.batch), p.page_start = nullptr, p.pages_stride = 0;
    p.seq_q = seq.seq_q, p.seq_kv = seq.seq_kv;
}

/* The sequence of such parameters, with batch 0, or of a dense problem. */
__device__ __forceinline__ sequence own_sequence(const fa_params &p, int batch)
{
    return {batch, p.seq_q, p.seq_kv, 0, 0};
}

/* Where a sequence's rows of a head start in a tensor: of q and o; of k and v. */
template <class ELEMENT = fa_element>
__device__ __forceinline__ ELEMENT *query_rows(const void *tensor, const sequence &seq, fa_i64 stride_b,
                                               fa_i64 stride_h, fa_i64 stride_s, int head)
{
    ELEMENT *start = static_cast<ELEMENT *>(const_cast<void *>(tensor));
    return start + (HAS_VARLEN ? seq.first_q * stride_s : seq.batch * stride_b) + head * stride_h;
}

__device__ __forceinline__ fa_element_kv *key_rows(const void *tensor, const sequence &seq, fa_i64 stride_b,
                                                   fa_i64 stride_h, fa_i64 stride_s, int kv_head)
{
    fa_element_kv *start = static_cast<fa_element_kv *>(const_cast<void *>(tensor));
    if constexpr (HAS_PAGES) /* of the first page that there is */
        return start + kv_head * stride_h;
    return start + (HAS_VARLEN ? seq.first_kv * stride_s : seq.batch * stride_b) + kv_head * stride_h;
}

/* Rows of one head in global memory. */
template <class ELEMENT>
struct rows_of {
    ELEMENT *data_g;
    fa_i64 stride;
};
using head_rows = rows_of<fa_element>;

/* Rows of a sequence's keys or values that lie in pages. data_g: the head's in the first page that there is. */
struct paged_rows : rows_of<fa_element_kv> {
    fa_i64 stride_page;
    const fa_i32 *table;    /* the number of each of the sequence's pages */
    unsigned size, inverse; /* rows of a page; 2^32 / size, rounded down */
};

/* Rows of K or V. */
#if FA_FEATURES & FA_FEATURE_PAGED
using kv_rows = paged_rows;
#else
using kv_rows = rows_of<fa_element_kv>;
#endif

/* stride_b: of batches, or of pages. */
__device__ __forceinline__ kv_rows kv_rows_of(const fa_params &p, const void *data, fa_i64 stride_b, fa_i64 stride_h,
                                              fa_i64 stride_s, int batch, int kv_head)
{
    fa_element_kv *data_g = static_cast<fa_element_kv *>(const_cast<void *>(data));
#if FA_FEATURES & FA_FEATURE_PAGED
    const unsigned size = p.page_size;
    return {{data_g + kv_head * stride_h, stride_s}, stride_b, page_table(p, batch), size, 0xffffffffu / size};
#else
    return {data_g + batch * stride_b + kv_head * stride_h, stride_s};
#endif
}

/* Whether all rows of K and V start on 16 bytes. */
__device__ __forceinline__ bool on_16_bytes(const fa_params &p, const kv_rows &k, const kv_rows &v)
{
    constexpr int BYTES = sizeof(fa_element_kv);
    const fa_i64 addresses = reinterpret_cast<fa_i64>(k.data_g) | reinterpret_cast<fa_i64>(v.data_g);
    bool aligned = (addresses | (p.k_stride_s | p.v_stride_s) * BYTES) % 16 == 0;
    if constexpr (HAS_PAGES)
        aligned = aligned && (p.k_stride_b | p.v_stride_b) % (16 / BYTES) == 0;
    return aligned;
}

/* The same, with what the parameters hold read from there again: it then takes no registers. */
__device__ __forceinline__ kv_rows reload_strides(kv_rows rows, const fa_params &p, fa_i64 stride_b, fa_i64 stride_s)
{
    rows.stride = stride_s;
#if FA_FEATURES & FA_FEATURE_PAGED
    rows.stride_page = stride_b, rows.size = p.page_size;
#endif
    return rows;
}

/* Where a key's row has this column. */
template <class ELEMENT>
__device__ __forceinline__ const ELEMENT *row_at(const rows_of<ELEMENT> &rows, int key, int column)
{
    return rows.data_g + column + key * rows.stride;
}

/* A key's page, and its row there. The table is read: no key past the last may be asked for. */
__device__ __forceinline__ int page_at(const paged_rows &rows, int key, int &row)
{
    unsigned page = __umulhi(key, rows.inverse), at = key - page * rows.size; /* or the page before */
    if (at >= rows.size)
        ++page, at -= rows.size;
    row = static_cast<int>(at);
    return rows.table[page];
}

__device__ __forceinline__ const fa_element_kv *row_at(const paged_rows &rows, int key, int column)
{
    int row;
    const int page = page_at(rows, key, row);
    return rows.data_g + column + page * rows.stride_page + row * rows.stride;
}

#if FA_LSE
__device__ __forceinline__ void store_lse(const fa_params &p, const sequence &seq, int head, int row, float value)
{
    store_lse(p, HAS_VARLEN ? 0 : seq.batch, head, seq.first_q + row, value);
}
#endif

/* Keys [first, end); none where first >= end. */
struct key_range {
    int first, end;
};

/* The row's place among the keys: with the causal mask, the last key that it sees. May be negative. */
__device__ __forceinline__ int position_of(const sequence &seq, int row) { return row + seq.seq_kv - seq.seq_q; }

__device__ __forceinline__ key_range keys_seen(const fa_params &p, const sequence &seq, int row)
{
    const int pos = position_of(seq, row);
    key_range keys = {0, seq.seq_kv};
    if constexpr (FA_CAUSAL)
        keys.end = min(keys.end, pos + 1);
    if constexpr (HAS_WINDOW) { /* differences first: a bound may be as large as an int */
        if (p.window_left >= 0 && pos > p.window_left)
            keys.first = pos - p.window_left;
        if (p.window_right >= 0 && keys.end - pos > p.window_right)
            keys.end = pos + p.window_right + 1;
    }
    if constexpr (HAS_CHUNK) {
        const int into = pos % p.chunk, start = pos - (into < 0 ? into + p.chunk : into); /* rounded down */
        keys.first = max(keys.first, start);
        if (start < keys.end - p.chunk)
            keys.end = start + p.chunk;
    }
    keys.end = max(keys.end, 0);
    return keys;
}

/* The query rows [first, end) that see some of the keys first_key .. last_key: the gradients of these keys are sums
 * over them. Not each of these rows sees each of the keys. */
__device__ __forceinline__ key_range rows_that_see(const fa_params &p, const sequence &seq, int first_key, int last_key)
{
    const int shift = seq.seq_kv - seq.seq_q; /* pos = row + shift */
    int low = shift, high = seq.seq_kv - 1;   /* positions */
    if constexpr (FA_CAUSAL)
        low = max(low, first_key);
    if constexpr (HAS_WINDOW) { /* differences first: a bound may be as large as an int */
        if (p.window_right >= 0 && first_key - p.window_right > low)
            low = first_key - p.window_right;
        if (p.window_left >= 0 && p.window_left < high - last_key)
            high = last_key + p.window_left;
    }
    if constexpr (HAS_CHUNK) {
        low = max(low, first_key - first_key % p.chunk);
        if (p.chunk - last_key % p.chunk <= high - last_key)
            high = last_key - last_key % p.chunk + p.chunk - 1;
    }
    return {max(low - shift, 0), max(high - shift + 1, 0)};
}

/* The keys that some of the rows first_row .. last_row see, and those that all of them see. */
__device__ __forceinline__ key_range keys_seen_by_any(const fa_params &p, const sequence &seq, int first_row,
                                                      int last_row)
{
    return {HAS_FIRST_KEY ? keys_seen(p, seq, first_row).first : 0, keys_seen(p, seq, last_row).end};
}

__device__ __forceinline__ key_range keys_seen_by_all(const fa_params &p, const sequence &seq, int first_row,
                                                      int last_row)
{
    return {HAS_FIRST_KEY ? keys_seen(p, seq, last_row).first : 0, keys_seen(p, seq, first_row).end};
}
