/* The block scheduler: which (batch, head, tile of query rows) a block works on, and which keys its rows see. */
#ifndef FA_SCHEDULE_CUH
#define FA_SCHEDULE_CUH

#include "shared/common.cuh"

/* `rows` query rows from `row0` of one (batch, head), and their keys [0, keys). */
struct query_tile {
    const fa_element *q_g, *k_g, *v_g; /* first row of the tile; first row of the K/V head */
    fa_element *o_g;
    int row0, rows, keys;
#if FA_LSE
    int batch, head;
#endif
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
#if FA_LSE
    tile.batch = batch, tile.head = head;
#endif
    tile.row0 = index * TILE_M;
    tile.rows = min(TILE_M, p.seq_q - tile.row0);
    tile.keys = keys_of_row(p, tile.row0 + tile.rows - 1);
    tile.q_g =
        static_cast<const fa_element *>(p.q) + batch * p.q_stride_b + head * p.q_stride_h + tile.row0 * p.q_stride_s;
    tile.k_g = static_cast<const fa_element *>(p.k) + batch * p.k_stride_b + kv_head * p.k_stride_h;
    tile.v_g = static_cast<const fa_element *>(p.v) + batch * p.v_stride_b + kv_head * p.v_stride_h;
    tile.o_g = static_cast<fa_element *>(p.o) + batch * p.o_stride_b + head * p.o_stride_h + tile.row0 * p.o_stride_s;
    return tile;
}

/* Most problems come in powers of two, which need no division. The quotient is equal in all lanes. */
__device__ __forceinline__ unsigned divide(unsigned a, unsigned b)
{
    if ((b & (b - 1)) == 0) [[likely]]
        return a >> (31 - __clz(b));
    return uniform_by_reduction(static_cast<int>(a / b));
}

/* Unit `unit`, of [0, tiles): which tile, and which (batch, head): index = head + batch * heads. DIM: halves of a row.
 * Full: the tiles of a head are neighbours, so that its K and V stay in L2.
 * Causal: sections of heads whose K and V fit L2 together; in each, the longest tiles (the last rows) come first. */
template <int DIM>
__device__ __forceinline__ void tile_in_sections(unsigned &tile, unsigned &index, const fa_params &p, unsigned unit)
{
    constexpr float SECTION_BYTES = 24 << 20;
    const unsigned heads = p.heads, tiles_m = p.tiles_m;
    if (FA_CAUSAL) {
        const unsigned all = p.batch * heads;
        /* heads whose K and V are that large, and a power of two of them */
        const float fit = __fdividef(SECTION_BYTES / (4.0f * DIM) * p.heads, static_cast<float>(p.kv_heads) * p.seq_kv);
        const unsigned section = fit < 1.0f ? 1 : fit < all ? 1u << (31 - __clz(static_cast<int>(fit))) : all;
        const unsigned first = divide(unit, section * tiles_m) * section;
        const unsigned width = min(section, all - first), rest = unit - first * tiles_m, from_end = divide(rest, width);
        tile = tiles_m - 1 - from_end;
        index = first + rest - from_end * width;
    } else {
        index = divide(unit, tiles_m);
        tile = unit - index * tiles_m;
    }
}

#endif
