/* Packed rows: the query heads that share a K/V head lie in the rows of one tile, so that its keys are read once for
 * all of them. Packed row = query * group + head within the group. */
#ifndef FA_PACKED_CUH
#define FA_PACKED_CUH

#include "shared/sequence.cuh"

/* With lengths the splits are a sequence's own: a long one has many, a short one none. A window leaves all rows about
 * as many keys: then every tile has FA_SPLITS. */
#define FA_UNLIKE_SPLITS \
    ((FA_FEATURES & FA_FEATURE_VARLEN) && FA_SPLITS > 1 && !(FA_FEATURES & (FA_FEATURE_WINDOW | FA_FEATURE_CHUNK)))

/* FA_M packed rows of one K/V head from row0 on, and which of FA_SPLITS shares of their keys. */
struct packed_tile {
    int unit, split, batch, kv_head; /* unit: of [0, tiles) */
    int group, row0, rows;           /* query heads per K/V head; packed rows of the K/V head */
#if FA_UNLIKE_SPLITS
    int splits, first_block; /* of the tile; the block of its first split */
#endif
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

#if FA_UNLIKE_SPLITS
/* The schedule of one K/V head's blocks, which every warp computes for itself. Keys are counted in SPLIT_KEYS. No block
 * has more than ceil(work / (blocks - tiles)) of them, so the blocks are enough: t tiles of a sequence take at most
 * t (keys / most + 1). */
constexpr int SPLIT_KEYS = 64;

struct sequence_load {
    int tiles, keys; /* of query rows; of keys, in SPLIT_KEYS */
};

__device__ __forceinline__ sequence_load load_of_sequence(const fa_params &p, int batch, int group)
{
    if (batch >= p.batch)
        return {0, 0};
    return {ceil_div(length_of(p.start_q, p.used_q, batch) * group, FA_M),
            ceil_div(length_of(p.start_kv, p.used_kv, batch), SPLIT_KEYS)};
}

__device__ __forceinline__ int most_keys_of_block(const fa_params &p, int group)
{
    int tiles = 0;
    fa_i64 work = 0;
    for (int batch = threadIdx.x % WARP_SIZE; batch < p.batch; batch += WARP_SIZE) {
        const sequence_load load = load_of_sequence(p, batch, group);
        tiles += load.tiles, work += static_cast<fa_i64>(load.tiles) * load.keys;
    }
#pragma unroll
    for (int mask = 1; mask < WARP_SIZE; mask *= 2) {
        tiles += __shfl_xor_sync(ALL_LANES, tiles, mask);
        work += __shfl_xor_sync(ALL_LANES, work, mask);
    }
    const int left = max(p.tiles_m * FA_SPLITS - tiles, 1);
    return max(static_cast<int>((work + left - 1) / left), 1);
}

/* The block's tile, its split and its sequence. False: no work. A whole warp calls. */
__device__ __forceinline__ bool find_scheduled_tile(packed_tile &tile, sequence &seq, const fa_params &p,
                                                    unsigned block)
{
    const int lane = threadIdx.x % WARP_SIZE, blocks = p.tiles_m * FA_SPLITS; /* of a K/V head */
    tile.kv_head = block / blocks, tile.batch = 0, tile.unit = 0;
    tile.group = p.heads / p.kv_heads;
    int index = block - tile.kv_head * blocks;
    const int most = most_keys_of_block(p, tile.group);
    for (int first = 0; first < p.batch; first += WARP_SIZE) {
        const sequence_load load = load_of_sequence(p, first + lane, tile.group);
        const int splits = max(ceil_div(load.keys, most), 1), mine = load.tiles * splits;
        const int end = sum_up_to_lane(mine); /* of this lane's sequence */
        const unsigned later = __ballot_sync(ALL_LANES, end > index);
        if (later != 0) {
            const int found = __ffs(static_cast<int>(later)) - 1;
            index -= __shfl_sync(ALL_LANES, end - mine, found);
            tile.splits = __shfl_sync(ALL_LANES, splits, found);
            tile.split = index % tile.splits;
            tile.first_block = block - tile.split;
            tile.row0 = index / tile.splits * FA_M;
            seq = sequence_of(p, first + found);
            tile.rows = seq.seq_q * tile.group;
            return true;
        }
        index -= __shfl_sync(ALL_LANES, end, WARP_SIZE - 1);
    }
    return false;
}

/* The same; the parameters become those of the sequence. */
__device__ __forceinline__ bool find_packed_tile_of_sequence(packed_tile &tile, fa_params &p, unsigned block)
{
    sequence seq;
    if (!find_scheduled_tile(tile, seq, p, block))
        return false;
    become_sequence(p, seq);
    return true;
}
#elif FA_FEATURES & FA_FEATURE_VARLEN
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
