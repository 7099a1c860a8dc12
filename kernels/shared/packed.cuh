/* Packed rows: the query heads that share a K/V head lie in the rows of one tile, so that its keys are read once for
 * all of them. Packed row = query * group + head within the group. */
#ifndef FA_PACKED_CUH
#define FA_PACKED_CUH

#include "shared/sequence.cuh"

/* FA_M packed rows of one K/V head from row0 on, and which of FA_SPLITS shares of their keys. */
struct packed_tile {
    int unit, split, batch, kv_head; /* unit: of [0, tiles) */
    int group, row0, rows;           /* query heads per K/V head; packed rows of the K/V head */
};

/* Blocks with neighbouring numbers read the same keys, for different rows. */
__device__ __forceinline__ packed_tile find_packed_tile(const fa_params &p, unsigned block)
{
    packed_tile tile;
    const unsigned tiles_m = p.tiles_m, part = block / tiles_m, tile_m = block - part * tiles_m;
    const unsigned head_index = part / FA_SPLITS, kv_heads = p.kv_heads;
    tile.split = part - head_index * FA_SPLITS;
    tile.unit = head_index * tiles_m + tile_m;
    tile.batch = head_index / kv_heads;
    tile.kv_head = head_index - tile.batch * kv_heads;
    tile.group = static_cast<unsigned>(p.heads) / kv_heads;
    tile.row0 = tile_m * FA_M;
    tile.rows = p.seq_q * tile.group;
    return tile;
}

#if FA_FEATURES & FA_FEATURE_VARLEN
/* With lengths the tiles are those of all sequences; the parameters become those of the tile's. False: no work. */
__device__ __forceinline__ bool find_packed_tile_of_sequence(packed_tile &tile, fa_params &p, unsigned block)
{
    tile = find_packed_tile(p, block);
    sequence seq;
    int index = tile.row0 / FA_M;
    if (!find_sequence<FA_M>(seq, index, p, tile.group))
        return false;
    become_sequence(p, seq);
    tile.row0 = index * FA_M;
    tile.rows = p.seq_q * tile.group;
    return true;
}
#endif

__device__ __forceinline__ int first_query(const packed_tile &tile) { return tile.row0 / tile.group; }

/* The last query of the tile's rows: it sees the most keys. */
__device__ __forceinline__ int last_query(const packed_tile &tile)
{
    return static_cast<unsigned>(min(tile.row0 + FA_M, tile.rows) - 1) / tile.group;
}

/* A packed row, split up. A row past the last one has the query of the last. */
struct packed_row {
    int query, head;
    bool exists;
};

__device__ __forceinline__ packed_row find_packed_row(const packed_tile &tile, int row)
{
    const unsigned last = min(row, tile.rows - 1), query = last / tile.group;
    return {static_cast<int>(query), static_cast<int>(tile.kv_head * tile.group + last - query * tile.group),
            row < tile.rows};
}

#endif
