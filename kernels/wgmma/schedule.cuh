/* Block schedulers of the Hopper kernels: which query rows a block works on, and how many keys these rows see.
 * `scheduler` serves persistent blocks (wgmma), tile_of_this_block a grid of one tile per block (wgmma_small). */
#ifndef FA_WGMMA_SCHEDULE_CUH
#define FA_WGMMA_SCHEDULE_CUH

#include "shared/hopper.cuh"

/* A block's work: its query rows of one (batch, head), and the tiles of FA_N keys that they see, at least one. Where
 * keys are split over blocks, those of one split: [first_key_tile, key_tiles). */
struct block_tile {
    int row0, head, kv_head, batch;
    int key_tiles;
    int split, first_key_tile; /* set when FA_SPLITS > 1 */
};

/* Key tiles that some row of [row0, row0 + rows) sees. One tile, all masked, when no row sees a key. */
__device__ __forceinline__ int count_key_tiles(const fa_params &p, int row0, int rows)
{
    int keys = p.seq_kv;
    if (FA_CAUSAL)
        keys = min(keys, min(row0 + rows, p.seq_q) + p.seq_kv - p.seq_q);
    return max(1, (keys + FA_N - 1) / FA_N);
}

/* Key tiles [first, end). */
struct key_range {
    int first, end;
};

/* The share of split `split` in a query tile's key tiles. Where there are fewer than splits, some splits take one tile
 * that no row sees. */
__device__ __forceinline__ key_range key_range_of(int key_tiles, int split)
{
    const int first = key_tiles * split / FA_SPLITS, end = key_tiles * (split + 1) / FA_SPLITS;
    return {first < end ? first : key_tiles, first < end ? end : key_tiles + 1};
}

/* A warpgroup's part of a query tile: 64 rows from `row` on, which see the key tiles key_tile, key_tile - 1, ..., 0, or
 * down to first_key_tile where keys are split. No row sees the masked_tiles above. row < 0: no more query tiles. */
struct work_tile {
    int row, key_tile, masked_tiles;
#if FA_SPLITS > 1
    int first_key_tile;
#else
    static constexpr int first_key_tile = 0;
#endif
};

/* The warpgroup's part of a query tile. announced.x: the tile's first row, negative where there are no more tiles; .y:
 * its key tiles, or which split of them. */
__device__ __forceinline__ work_tile work_tile_of(const fa_params &p, const int4 &announced, int warpgroup)
{
    work_tile tile = {static_cast<int>(uniform_by_shuffle(announced.x)), 0, 0};
    if (tile.row >= 0) {
        tile.row += 64 * warpgroup;
        tile.key_tile = count_key_tiles(p, tile.row, 64) - 1;
        int end = uniform_by_shuffle(announced.y);
#if FA_SPLITS > 1
        const key_range keys = key_range_of(count_key_tiles(p, tile.row - 64 * warpgroup, FA_M), end);
        tile.first_key_tile = keys.first;
        tile.key_tile = max(keys.first, min(keys.end - 1, tile.key_tile));
        end = keys.end;
#endif
        tile.masked_tiles = end - 1 - tile.key_tile;
    }
    return tile;
}

/* Causal tiles are handed out in sections of heads, longest first within a section. Sections are small: L2 holds
 * their K and V, and tiles of all lengths run at once. The last section has two waves of blocks, so that blocks end
 * together. */
struct head_sections {
    int heads, last_heads; /* heads of a section; of the last section */
    int last_first;        /* first head of the last section */
};

__device__ __forceinline__ head_sections find_sections(const fa_params &p)
{
    constexpr int L2_BYTES = 8 << 20, WAVES = 2;
    const int all = p.heads * p.batch, group = p.heads / p.kv_heads;
    head_sections in;
    in.heads = min(max(2, L2_BYTES / (4 * FA_DIM) / p.seq_kv) * group, all);
    in.last_heads = min(max(in.heads, (WAVES * p.sm_count + p.tiles_m - 1) / p.tiles_m), all);
    in.last_first = (all - in.last_heads) / in.heads * in.heads;
    in.last_heads = all - in.last_first;
    return in;
}

__device__ __forceinline__ block_tile block_tile_at(const fa_params &p, int block_m, int head_index)
{
    block_tile tile;
    tile.row0 = block_m * FA_M;
    tile.batch = static_cast<unsigned>(head_index) / static_cast<unsigned>(p.heads);
    tile.head = head_index - tile.batch * p.heads;
    tile.kv_head = tile.head;
    if (p.heads != p.kv_heads)
        tile.kv_head = tile.head / (p.heads / p.kv_heads);
    tile.key_tiles = count_key_tiles(p, tile.row0, FA_M);
    return tile;
}

/* Tiles with neighbouring indices run at the same time and share K and V in L2: one split of all query tiles comes
 * before the next split. */
__device__ __forceinline__ block_tile block_tile_of(const fa_params &p, int index)
{
    int block_m, head_index;
#if FA_SPLITS > 1
    const int split = index / p.tiles;
    index -= split * p.tiles;
#endif
    if (FA_CAUSAL) {
        const head_sections in = find_sections(p);
        const bool last = index >= in.last_first * p.tiles_m;
        const int width = last ? in.last_heads : in.heads;
        const int first = last ? in.last_first : index / (width * p.tiles_m) * width;
        const int rest = index - first * p.tiles_m;
        block_m = p.tiles_m - 1 - rest / width;
        head_index = first + rest % width;
    } else {
        block_m = index % p.tiles_m;
        head_index = index / p.tiles_m;
    }
#if FA_SPLITS > 1
    block_tile tile = block_tile_at(p, block_m, head_index);
    const key_range keys = key_range_of(tile.key_tiles, split);
    tile.split = split;
    tile.first_key_tile = keys.first;
    tile.key_tiles = keys.end;
    return tile;
#else
    return block_tile_at(p, block_m, head_index);
#endif
}

/* Hands a persistent block its tiles: first that of its own number, then tickets from a counter shared by all. */
struct scheduler {
    const fa_params &p;

    __device__ __forceinline__ block_tile first() const { return block_tile_of(p, blockIdx.x); }

    /* Asks for the next ticket. The answer comes a round trip later; next() waits for it. */
    __device__ __forceinline__ int draw() const { return atomicAdd(static_cast<int *>(p.workspace), 1); }

    /* Replaces `tile` by the ticket's. False when all tiles are taken. */
    __device__ __forceinline__ bool next(int ticket, block_tile &tile) const
    {
        first_use(ticket);
        const int index = static_cast<int>(gridDim.x) + ticket;
        const bool more = index < p.tiles * FA_SPLITS;
        if (more)
            tile = block_tile_of(p, index);
        return more;
    }

    /* The last block to leave resets the counters. */
    __device__ __forceinline__ void leave() const
    {
        int *counters = static_cast<int *>(p.workspace);
        if (atomicAdd(&counters[1], 1) == static_cast<int>(gridDim.x) - 1) {
            counters[0] = 0;
            counters[1] = 0;
        }
    }
};

/* floor(a / b) for a < 2^21, from the inverse of b: a + 1/2 is further from a multiple of b than the error of the
 * product. An integer division takes longer, and all loads wait for it. */
__device__ __forceinline__ int small_quotient(int a, float inverse)
{
    return __float2int_rz((static_cast<float>(a) + 0.5f) * inverse);
}

__device__ __forceinline__ int quotient(int a, int b, float inverse)
{
    return a < 1 << 21 ? small_quotient(a, inverse) : a / b;
}

/* A grid of one tile per block. Blocks in pairs, on two multiprocessors that share a path to L2, take neighbouring rows
 * of one head and read the same keys. The head changes next; causal runs the longest tiles first. */
__device__ __forceinline__ block_tile tile_of_this_block(const fa_params &p)
{
    const int all = p.heads * p.batch, even = p.tiles_m & ~1, index = blockIdx.x;
    const bool paired = index < even * all;
    const int unit = paired ? index / 2 : index - even * all;
    const float by_heads = reciprocal_approx(static_cast<float>(p.heads));
    block_tile tile;
    const int step = quotient(unit, all, reciprocal_approx(static_cast<float>(all))), index_head = unit - step * all;
    tile.batch = quotient(index_head, p.heads, by_heads);
    tile.head = index_head - tile.batch * p.heads;
    tile.kv_head = small_quotient(tile.head, static_cast<float>(p.kv_heads) * by_heads);
    const int block_m = paired ? 2 * step + index % 2 : even;
    tile.row0 = (FA_CAUSAL ? p.tiles_m - 1 - block_m : block_m) * FA_M;
    tile.key_tiles = count_key_tiles(p, tile.row0, FA_M);
    return tile;
}

#endif
