/* A query tile of the Hopper kernels: its rows, the key tiles that they see, and where TMA finds them. A block has one
 * (block_tile), a warpgroup 64 rows of it (work_tile); the producer tells the consumers which (announced_tile). */
#pragma once

#include "shared/hopper.cuh"
#include "shared/score.cuh"

#define ALIBI ((FA_FEATURES & FA_FEATURE_ALIBI) != 0)
#define VARLEN ((FA_FEATURES & FA_FEATURE_VARLEN) != 0)
/* Rows of a tile are those of all query heads of a K/V head (wgmma_packed): 16 rows of one head, the same rows of the
 * next, and so on; then the next 16 rows. A warp has one head, and TMA moves 16 rows at once. */
#ifndef PACKED
#define PACKED 0
#endif
/* Short causal sequences (wgmma_short), which memory bounds: L2 is kept for K and V. */
#ifndef SHORT
#define SHORT 0
#endif
/* Keys that a tile's rows see are more than those before a diagonal: lengths, windows and chunks count. */
#define KEY_RANGES \
    (PACKED || (FA_FEATURES & (FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_ALIBI)) != 0)

/* A row of a tile: its query head and row. */
struct tile_row {
    int head, query;
};

/* Row `row` of the tiles of `head`; with packed rows of a K/V head that has `group` query heads. */
__device__ __forceinline__ tile_row tile_row_of(unsigned group, int head, int row)
{
    if constexpr (!PACKED)
        return {head, row};
    const unsigned part = row / 16u;
    const unsigned step = (group & (group - 1)) == 0 ? part >> (31 - __clz(group)) : part / group;
    return {static_cast<int>(head * group + part - step * group), static_cast<int>(step * 16 + row % 16u)};
}

/* Tiles of a head of a sequence; with packed rows of a K/V head. */
__device__ __forceinline__ int tiles_of(const fa_params &p, int seq_q)
{
    return PACKED ? ceil_div(ceil_div(seq_q, 16) * (p.heads / p.kv_heads) * 16, FA_M) : (seq_q + FA_M - 1) / FA_M;
}

/* A block's work: its query rows of one sequence and head, and the tiles of FA_N keys that they see, at least one.
 * Tiles are counted from first_key on, the first key that some row sees (with KEY_RANGES; else 0). Where keys are split
 * over blocks, those of one split: [first_key_tile, key_tiles). */
struct block_tile {
    int row0, head, kv_head;
    sequence seq;
    int first_key, key_tiles;
    int split, first_key_tile; /* set when FA_SPLITS > 1 */
    int flat;                  /* VARLEN: the tile's number among those of a head, all sequences together */
    unsigned group;            /* PACKED: query heads of the K/V head */
};

/* Where TMA finds a row of a sequence: its coordinates beside column and head. With lengths a map has the rows of the
 * longest sequence, the last dimension moves where they begin, and a sequence's rows are the last of them: what lies
 * past its end is out of bounds, so that a load gives zeros, and a store writes nothing (src/device/tensor_boxes.c). */
struct tma_row {
    int row, batch;
};

__device__ __forceinline__ tma_row tma_query_row(const fa_params &p, const sequence &seq, int row)
{
    if constexpr (HAS_VARLEN)
        return {row + max(p.seq_q, 1) - seq.seq_q, seq.first_q + seq.seq_q};
    return {row, seq.batch};
}

__device__ __forceinline__ tma_row tma_key_row(const fa_params &p, const sequence &seq, int key)
{
    if constexpr (HAS_VARLEN && !HAS_PAGES)
        return {key + max(p.seq_kv, 1) - seq.seq_kv, max(seq.first_kv + seq.seq_kv, 1)};
    return {key, seq.batch};
}

/* With lengths a box that lies out of bounds as a whole may fault (an H100, CUDA 13.0: it looks at an address of the
 * map's beginning, which lies before the tensor). A tile that no row sees takes the last row instead, of this sequence
 * or the one before, and zeros. */
__device__ __forceinline__ int row_in_map(const fa_params &p, int row)
{
    return HAS_VARLEN ? min(row, max(p.seq_kv, 1) - 1) : row;
}

/* Key tiles that some row of [row0, row0 + rows) sees. One tile, all masked, when no row sees a key. */
__device__ __forceinline__ int count_key_tiles(const fa_params &p, int row0, int rows)
{
    int keys = p.seq_kv;
    if (FA_CAUSAL)
        keys = min(keys, min(row0 + rows, p.seq_q) + p.seq_kv - p.seq_q);
    return max(1, (keys + FA_N - 1) / FA_N);
}

/* The keys of a query tile: where its key tiles are counted from, and how many there are. */
struct tile_keys {
    int first_key, tiles;
};

__device__ __forceinline__ tile_keys find_tile_keys(const fa_params &p, const sequence &seq, int row0,
                                                    unsigned group = 1)
{
#if KEY_RANGES
    const int first_row = tile_row_of(group, 0, row0).query;
    const int last_row = min(tile_row_of(group, 0, row0 + FA_M - 1).query + 1, seq.seq_q) - 1;
    const key_range keys = keys_seen_by_any(p, seq, first_row, last_row);
    const int first = min(keys.first, keys.end) & (HAS_PAGES ? ~15 : ~0); /* where a box may begin */
    return {first, max(1, ceil_div(keys.end - first, FA_N))};
#else
    return {0, count_key_tiles(p, row0, FA_M)};
#endif
}

/* Key tiles [first, end). */
struct tile_range {
    int first, end;
};

/* The share of split `split` in a query tile's key tiles. Where there are fewer than splits, some splits take one tile
 * that no row sees. */
template <class COUNT = known<FA_SPLITS>>
__device__ __forceinline__ tile_range tile_range_of(int key_tiles, int split, COUNT splits = COUNT())
{
    const int first = key_tiles * split / splits, end = key_tiles * (split + 1) / splits;
    return {first < end ? first : key_tiles, first < end ? end : key_tiles + 1};
}

/* A query tile as the producer announces it. x: its first row (PACKED: query of the warpgroup), negative where there
 * are no more tiles; y: its key tiles, or which split of them; z: head; w: batch. */
struct announced_tile : int4 {
#if PACKED
    tile_row part[4]; /* the first row of each warp */
    int first_key;    /* of the block */
#endif
#if VARLEN
    int4 lengths; /* of its sequence: seq_q, seq_kv, first_q, first_kv */
    int flat;
#endif
};

__device__ __forceinline__ announced_tile announce(const block_tile &tile)
{
    announced_tile to;
    static_cast<int4 &>(to) =
        make_int4(tile.row0, FA_SPLITS > 1 ? tile.split : tile.key_tiles, tile.head, tile.seq.batch);
#if VARLEN
    to.lengths = make_int4(tile.seq.seq_q, tile.seq.seq_kv, tile.seq.first_q, tile.seq.first_kv);
    to.flat = tile.flat;
#endif
    return to;
}

__device__ __forceinline__ sequence sequence_of_tile(const fa_params &p, const announced_tile &tile)
{
#if VARLEN
    return {tile.w, tile.lengths.x, tile.lengths.y, tile.lengths.z, tile.lengths.w};
#else
    return {tile.w, p.seq_q, p.seq_kv, 0, 0};
#endif
}

/* A warpgroup's part of a query tile: 64 rows from `row` on, which see the key tiles key_tile, key_tile - 1, ...,
 * first_key_tile. No row sees the block's masked_tiles above, nor the below_tiles. row < 0: no more query tiles. */
struct work_tile {
    int row, key_tile, masked_tiles;
#if PACKED
    int query; /* of the warp's first row; `row` is the least of the warpgroup */
#else
    static constexpr int query = 0;
#endif
#if FA_SPLITS > 1 || KEY_RANGES
    int first_key_tile;
#else
    static constexpr int first_key_tile = 0;
#endif
#if KEY_RANGES
    int below_tiles, first_key;
    sequence seq;
    key_range seen_by_all; /* counted from first_key */
#if ALIBI
    float slope; /* in units of S */
#endif
#else
    static constexpr int below_tiles = 0, first_key = 0;
#endif
};

#if KEY_RANGES
/* The key tiles of the rows from tile.row on. end: of the block's tiles, or which split of them. */
__device__ __forceinline__ void find_key_tiles(work_tile &tile, const fa_params &p, const announced_tile &announced,
                                               int end, int warpgroup)
{
    tile.seq = sequence_of_tile(p, announced);
#if VARLEN
    tile.seq.seq_q = uniform_by_shuffle(tile.seq.seq_q);
    tile.seq.seq_kv = uniform_by_shuffle(tile.seq.seq_kv);
#endif
#if PACKED
    const tile_keys keys = {announced.first_key, end};
    const int end_row = announced.part[3].query + 16;
#else
    const tile_keys keys = find_tile_keys(p, tile.seq, tile.row - 64 * warpgroup);
    const int end_row = tile.row + 64;
#endif
    const tile_range block = FA_SPLITS > 1 ? tile_range_of(keys.tiles, end) : tile_range{0, end};
    const int last_row = min(end_row, tile.seq.seq_q) - 1;
    const key_range any = keys_seen_by_any(p, tile.seq, tile.row, last_row);
    const key_range all = keys_seen_by_all(p, tile.seq, tile.row, last_row);
    tile.first_key = keys.first_key;
    tile.key_tile = max(block.first, min(block.end, ceil_div(any.end - keys.first_key, FA_N)) - 1);
    tile.first_key_tile = max(block.first, min((any.first - keys.first_key) / FA_N, tile.key_tile));
    tile.masked_tiles = block.end - 1 - tile.key_tile;
    tile.below_tiles = tile.first_key_tile - block.first;
    tile.seen_by_all = {all.first - keys.first_key, all.end - keys.first_key};
#if ALIBI
    tile.slope = scores_of_head(p, tile.seq, announced.z).slope;
#endif
}
#endif

/* The warpgroup's part of a query tile. */
__device__ __forceinline__ work_tile work_tile_of(const fa_params &p, const announced_tile &announced, int warpgroup)
{
    work_tile tile = {static_cast<int>(uniform_by_shuffle(announced.x)), 0, 0};
    if (tile.row >= 0) {
        tile.row += PACKED ? 0 : 64 * warpgroup;
        int end = uniform_by_shuffle(announced.y);
#if KEY_RANGES
        find_key_tiles(tile, p, announced, end, warpgroup);
#else
        tile.key_tile = count_key_tiles(p, tile.row, 64) - 1;
#if FA_SPLITS > 1
        const tile_range keys = tile_range_of(count_key_tiles(p, tile.row - 64 * warpgroup, FA_M), end);
        tile.first_key_tile = keys.first;
        tile.key_tile = max(keys.first, min(keys.end - 1, tile.key_tile));
        end = keys.end;
#endif
        tile.masked_tiles = end - 1 - tile.key_tile;
#endif
    }
    return tile;
}
