/* The block scheduler: which (batch, head, tile of query rows) a block works on, and which keys its rows see. */
#pragma once

#include "shared/sequence.cuh"

/* `rows` query rows from `row0` of one (batch, head), and their keys [first_key, keys). With lengths, rows is 0 where a
 * block has no work. */
struct query_tile {
    const fa_element_q *q_g;        /* first row of the tile */
    const fa_element_kv *k_g, *v_g; /* first row of the K/V head */
    fa_element *o_g;
    int row0, rows, first_key, keys, head;
    sequence seq;
};

/* Keys that query row `row` sees: [0, result). */
__device__ __forceinline__ int keys_of_row(const fa_params &p, int row)
{
#if FA_CAUSAL
    return max(0, min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q));
#else
    (void)row;
    return p.seq_kv;
#endif
}

#if FA_FEATURES
/* tile_of_block with features. With lengths, batch is 0 and index counts the tiles of all sequences. */
template <int TILE_M>
__device__ __forceinline__ query_tile tile_of_sequences(const fa_params &p, int batch, int head, int kv_head, int index,
                                                        int rows = TILE_M)
{
    query_tile tile = {};
    if constexpr (!HAS_VARLEN)
        tile.seq = sequence_of(p, batch);
    else if (!find_sequence<TILE_M>(tile.seq, index, p))
        return tile;
    tile.head = head;
    tile.row0 = index * rows;
    tile.rows = min(rows, tile.seq.seq_q - tile.row0);
    const key_range keys = keys_seen_by_any(p, tile.seq, tile.row0, tile.row0 + tile.rows - 1);
    tile.first_key = keys.first, tile.keys = keys.end;
    tile.q_g = query_rows<fa_element_q>(p.q, tile.seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, head) +
               tile.row0 * p.q_stride_s;
    tile.k_g = key_rows(p.k, tile.seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, kv_head);
    tile.v_g = key_rows(p.v, tile.seq, p.v_stride_b, p.v_stride_h, p.v_stride_s, kv_head);
    tile.o_g = query_rows(p.o, tile.seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, head) + tile.row0 * p.o_stride_s;
    return tile;
}
#endif

/* Tiles of one head are neighbours (they share K and V in L2); causal runs the longest tile of a head first. */
template <int TILE_M>
__device__ __forceinline__ query_tile tile_of_block(const fa_params &p)
{
    const unsigned tiles_m = p.tiles_m, batch_head = blockIdx.x / tiles_m, heads = p.heads;
    int index = blockIdx.x - batch_head * tiles_m;
#if FA_CAUSAL
    index = p.tiles_m - 1 - index;
#endif
    const int batch = batch_head / heads, head = batch_head - batch * heads;
    const int kv_head = static_cast<unsigned>(head) / (heads / static_cast<unsigned>(p.kv_heads));
    query_tile tile;
#if FA_FEATURES
    return tile_of_sequences<TILE_M>(p, batch, head, kv_head, index);
#endif
    tile.seq = sequence_of(p, batch);
    tile.head = head, tile.first_key = 0;
    tile.row0 = index * TILE_M;
    tile.rows = min(TILE_M, p.seq_q - tile.row0);
    tile.keys = keys_of_row(p, tile.row0 + tile.rows - 1);
    tile.q_g =
        static_cast<const fa_element_q *>(p.q) + batch * p.q_stride_b + head * p.q_stride_h + tile.row0 * p.q_stride_s;
    tile.k_g = static_cast<const fa_element_kv *>(p.k) + batch * p.k_stride_b + kv_head * p.k_stride_h;
    tile.v_g = static_cast<const fa_element_kv *>(p.v) + batch * p.v_stride_b + kv_head * p.v_stride_h;
    tile.o_g = static_cast<fa_element *>(p.o) + batch * p.o_stride_b + head * p.o_stride_h + tile.row0 * p.o_stride_s;
    return tile;
}

#if FA_LSE
/* The log-sum-exp of row `row` of the tile. */
__device__ __forceinline__ void store_lse(const fa_params &p, const query_tile &tile, int row, float value)
{
    store_lse(p, tile.seq, tile.head, tile.row0 + row, value);
}
#endif

/* Most problems come in powers of two, which need no division. The quotient is equal in all lanes, or of one thread. */
template <bool ONE_THREAD = false>
__device__ __forceinline__ unsigned divide(unsigned a, unsigned b)
{
    if ((b & (b - 1)) == 0) [[likely]]
        return a >> (31 - __clz(b));
    return ONE_THREAD ? a / b : uniform_by_reduction(static_cast<int>(a / b));
}

/* Keys stored for a head, as large as they may be. */
__device__ __forceinline__ int keys_of_head(const fa_params &p)
{
    if constexpr (HAS_VARLEN)
        return static_cast<int>(p.total_kv);
    return p.seq_kv;
}

/* Unit `unit`, of [0, tiles): which tile, and which (batch, head): index = head + batch * heads. DIM: halves of a row.
 * Full: the tiles of a head are neighbours, so that its K and V stay in L2.
 * Causal: sections of heads whose K and V fit L2 together; in each, the longest tiles (the last rows) come first.
 * With lengths the tiles of a head are those of all sequences: index = head. */
template <int DIM, bool ONE_THREAD = false>
__device__ __forceinline__ void tile_in_sections(unsigned &tile, unsigned &index, const fa_params &p, unsigned unit)
{
    constexpr float SECTION_BYTES = 24 << 20;
    const unsigned heads = p.heads, tiles_m = p.tiles_m;
    if (FA_CAUSAL) {
        const unsigned all = HAS_VARLEN ? heads : p.batch * heads;
        /* heads whose K and V are that large, and a power of two of them */
        const float fit =
            __fdividef(SECTION_BYTES / (4.0f * DIM) * p.heads, static_cast<float>(p.kv_heads) * keys_of_head(p));
        const unsigned section = fit < 1.0f ? 1 : fit < all ? 1u << (31 - __clz(static_cast<int>(fit))) : all;
        const unsigned first = divide<ONE_THREAD>(unit, section * tiles_m) * section;
        const unsigned width = min(section, all - first), rest = unit - first * tiles_m;
        const unsigned from_end = divide<ONE_THREAD>(rest, width);
        tile = tiles_m - 1 - from_end;
        index = first + rest - from_end * width;
    } else {
        index = divide<ONE_THREAD>(unit, tiles_m);
        tile = unit - index * tiles_m;
    }
}
