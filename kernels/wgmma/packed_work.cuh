/* What a block of wgmma_decode works on: packed rows of a sequence and K/V head, the tiles of keys that they see, and
 * which keys of a tile are masked. */
#pragma once

#include "shared/packed.cuh"
#include "wgmma/combine.cuh"
#include "wgmma/softmax.cuh"

/* With lengths: the sequence of the block's tile, which becomes one of its tiles. False: the sequences end before it.
 * Every lane of a warp calls it. */
__device__ __forceinline__ bool find_in_sequences(const fa_params &p, packed_tile &tile, sequence &seq)
{
#if FA_UNLIKE_SPLITS
    return find_scheduled_tile(tile, seq, p, reload_block_index());
#endif
    int index = tile.row0 / FA_M;
    if (!find_sequence<FA_M>(seq, index, p, tile.group))
        return false;
    tile.row0 = index * FA_M;
    tile.rows = seq.seq_q * tile.group;
    return true;
}

/* The block's tiles of keys, from key 0 on: its split of those that the rows see. None where there is no key: what TMA
 * would find then is another sequence's, or a gap. */
__device__ __forceinline__ tile_range find_tiles(const fa_params &p, const packed_tile &tile, const sequence &seq)
{
#if FA_FEATURES
    if (seq.seq_kv == 0)
        return {0, 0};
    const key_range seen = keys_seen_by_any(p, seq, first_query(tile), last_query(tile));
    const int first = min(seen.first, seen.end) / FA_N;
    const int tiles = max(1, ceil_div(seen.end, FA_N) - first);
#if FA_UNLIKE_SPLITS
    const tile_range mine = tile_range_of(tiles, tile.split, tile.splits);
#else
    const tile_range mine = tile_range_of(tiles, tile.split);
#endif
    return {mine.first + first, mine.end + first};
#else
    return tile_range_of(count_key_tiles(p, last_query(tile), 1), tile.split);
#endif
}

#if FA_FEATURES
/* The keys that a thread's two rows see, and those that all rows of its warpgroup see. */
struct row_limits {
    key_range seen[2], by_all;
};

__device__ __forceinline__ row_limits find_limits(const fa_params &p, const packed_tile &tile, const sequence &seq,
                                                  int row0, int thread)
{
    row_limits limits;
    limits.by_all = keys_seen_by_all(p, seq, find_packed_row(tile, row0).query, find_packed_row(tile, row0 + 63).query);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = row0 + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
        limits.seen[h] = keys_seen(p, seq, find_packed_row(tile, row).query);
    }
    return limits;
}

__device__ __forceinline__ void mask_by_limits(float (&s_r)[FA_N / 2], const row_limits &limits, int key0, int lane)
{
    const int first[2] = {limits.seen[0].first - key0, limits.seen[1].first - key0};
    const int end[2] = {limits.seen[0].end - key0, limits.seen[1].end - key0};
    if (key0 + FA_N > limits.by_all.end)
        mask_columns(s_r, end, lane);
    if (HAS_FIRST_KEY && key0 < limits.by_all.first)
        mask_columns<true>(s_r, first, lane);
}
#endif

#if FA_SPLITS > 1
/* How many splits a tile has, and where their parts are: those of neighbouring blocks. */
#if FA_UNLIKE_SPLITS
__device__ __forceinline__ int splits_of(const packed_tile &tile) { return tile.splits; }
__device__ __forceinline__ int first_block_of(const packed_tile &tile) { return tile.first_block; }
#else
__device__ __forceinline__ known<FA_SPLITS> splits_of(const packed_tile &) { return {}; }
__device__ __forceinline__ int first_block_of(const packed_tile &tile) { return tile.unit * FA_SPLITS; }
#endif

__device__ __forceinline__ warp_parts parts_of_tile(const fa_params &p, const packed_tile &tile, int warp, int lane)
{
    return parts_of_blocks(p, first_block_of(tile), warp, lane);
}
#endif
