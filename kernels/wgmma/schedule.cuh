/* Block schedulers of the Hopper kernels: which query rows a block works on, and how many keys these rows see.
 * `scheduler` serves persistent blocks (wgmma), tile_of_this_block a grid of one tile per block (wgmma_small). */
#pragma once

#include "wgmma/tile.cuh"

/* Causal tiles are handed out in sections of heads, longest first within a section. Sections are small: L2 holds
 * their K and V, and tiles of all lengths run at once. The last section has two waves of blocks, so that blocks end
 * together, where SHORT one: the K and V of two would not stay in L2. */
struct head_sections {
    int heads, last_heads; /* heads of a section; of the last section */
    int last_first;        /* first head of the last section */
};

/* GRID: fa_params, or what of it one sequence has (VARLEN). */
template <class GRID>
__device__ __forceinline__ head_sections find_sections(const GRID &p)
{
    constexpr int L2_BYTES = 8 << 20, WAVES = SHORT ? 1 : 2;
    const int all = p.heads * p.batch, group = p.heads / p.kv_heads;
    head_sections in;
    in.heads = min(max(2, L2_BYTES / (2 * (FA_DIM + FA_DIM_V)) / p.seq_kv) * group, all);
    in.last_heads = min(max(in.heads, (WAVES * p.sm_count + p.tiles_m - 1) / p.tiles_m), all);
    in.last_first = (all - in.last_heads) / in.heads * in.heads;
    in.last_heads = all - in.last_first;
    return in;
}

/* Heads that have tiles of their own. */
__device__ __forceinline__ int heads_of(const fa_params &p) { return PACKED ? p.kv_heads : p.heads; }

__device__ __forceinline__ block_tile block_tile_at(const fa_params &p, int block_m, int head_index)
{
    block_tile tile;
    tile.row0 = block_m * FA_M;
    const int batch = static_cast<unsigned>(head_index) / static_cast<unsigned>(heads_of(p));
    tile.group = PACKED ? p.heads / p.kv_heads : 1;
    tile.head = head_index - batch * heads_of(p);
    tile.kv_head = tile.head;
    if (!PACKED && p.heads != p.kv_heads)
        tile.kv_head = tile.head / (p.heads / p.kv_heads);
    tile.seq = {batch, p.seq_q, p.seq_kv, 0, 0};
    return tile;
}

__device__ __forceinline__ void find_keys(block_tile &tile, const fa_params &p)
{
    const tile_keys keys = find_tile_keys(p, tile.seq, tile.row0, tile.group);
    tile.first_key = keys.first_key;
    tile.key_tiles = keys.tiles;
}

/* Either way the compiler makes of the divisions below what it made of them in the function that calls. */
#if FA_SPLITS > 1
typedef const int &tile_number;
#else
typedef int tile_number;
#endif

/* Which tile of its head, and which head, has number `index`. With windows and chunks the tiles of a head follow each
 * other: neighbours see the same keys. */
template <class GRID>
__device__ __forceinline__ void find_tile_and_head(int &block_m, int &head_index, const GRID &p, tile_number index)
{
    if (FA_CAUSAL && !HAS_FIRST_KEY) {
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
}

__device__ __forceinline__ void take_split(block_tile &tile, int split)
{
    const tile_range keys = tile_range_of(tile.key_tiles, split);
    tile.split = split;
    tile.first_key_tile = keys.first;
    tile.key_tiles = keys.end;
}

struct sequence_grid {
    int batch, heads, kv_heads, seq_kv, tiles_m, sm_count;
};

/* Tiles with neighbouring indices run at the same time and share K and V in L2: one split of all query tiles comes
 * before the next split. */
__device__ __forceinline__ block_tile block_tile_of(const fa_params &p, int index)
{
    int block_m, head_index;
#if FA_SPLITS > 1
    const int split = index / p.tiles;
    index -= split * p.tiles;
#endif
#if PACKED
    const sequence_grid grid = {p.batch, p.kv_heads, p.kv_heads, p.seq_kv, tiles_of(p, p.seq_q), p.sm_count};
#else
    const fa_params &grid = p;
#endif
    find_tile_and_head(block_m, head_index, grid, index);
    block_tile tile = block_tile_at(p, block_m, head_index);
    find_keys(tile, p);
#if FA_SPLITS > 1
    take_split(tile, split);
#endif
    return tile;
}

#if VARLEN
/* Up to this many sequences are handed out longest first, more in their own order. */
constexpr int SORTED_SEQUENCES = 256;

/* Numbers of the sequences, those with the most keys first. All threads of the block call it. */
__device__ __forceinline__ void sort_sequences(const fa_params &p, short *order_s, int threads)
{
    if (p.batch > SORTED_SEQUENCES)
        return;
    for (int batch = threadIdx.x; batch < p.batch; batch += threads) {
        const int keys = length_of(p.start_kv, p.used_kv, batch);
        int rank = 0;
#pragma unroll 4
        for (int other = 0; other < p.batch; ++other) {
            const int length = length_of(p.start_kv, p.used_kv, other);
            rank += length > keys || (length == keys && other < batch);
        }
        order_s[rank] = batch;
    }
}

/* Hands a persistent block its tiles, those of the sequences one after the other. A block's tickets only grow, so its
 * walk over the sequences goes forward. */
struct scheduler {
    const fa_params &p;
    const short *order_s;
    int rank;                     /* of the sequence, -1 before the first */
    int first_index, tiles, flat; /* of the sequence: its first index, its tiles of a head, the tiles before them */
    sequence seq;

    __device__ __forceinline__ scheduler(const fa_params &p, const short *order_s)
        : p(p), order_s(order_s), rank(-1), first_index(0), tiles(0), flat(0)
    {
    }

    __device__ __forceinline__ bool find(int index, block_tile &tile)
    {
        while (index - first_index >= tiles * heads_of(p) * FA_SPLITS) {
            first_index += tiles * heads_of(p) * FA_SPLITS;
            flat += tiles;
            if (++rank >= p.batch)
                return false;
            seq = sequence_of(p, p.batch > SORTED_SEQUENCES ? rank : order_s[rank]);
            tiles = tiles_of(p, seq.seq_q);
        }
        index -= first_index;
#if FA_SPLITS > 1
        const int split = index / (tiles * heads_of(p));
        index -= split * (tiles * heads_of(p));
#endif
        const sequence_grid grid = {1, heads_of(p), p.kv_heads, max(seq.seq_kv, 1), tiles, p.sm_count};
        int block_m, head;
        find_tile_and_head(block_m, head, grid, index);
        tile = block_tile_at(p, block_m, head);
        tile.seq = seq;
        tile.flat = flat + block_m;
        find_keys(tile, p);
#if FA_SPLITS > 1
        take_split(tile, split);
#endif
        return true;
    }

    __device__ __forceinline__ bool first(block_tile &tile) { return find(blockIdx.x, tile); }

    __device__ __forceinline__ bool next(int ticket, block_tile &tile)
    {
        first_use(ticket);
        return find(static_cast<int>(gridDim.x) + ticket, tile);
    }
#else
/* Hands a persistent block its tiles: first that of its own number, then tickets from a counter shared by all. */
struct scheduler {
    const fa_params &p;

    __device__ __forceinline__ bool first(block_tile &tile) const
    {
        tile = block_tile_of(p, blockIdx.x);
        return true;
    }

    /* Replaces `tile` by the ticket's. False when all tiles are taken. */
    __device__ __forceinline__ bool next(int ticket, block_tile &tile) const
    {
        first_use(ticket);
        const int index = static_cast<int>(gridDim.x) + ticket;
        const bool more = index < (PACKED ? tiles_of(p, p.seq_q) * p.kv_heads * p.batch : p.tiles * FA_SPLITS);
        if (more)
            tile = block_tile_of(p, index);
        return more;
    }
#endif

    /* Asks for the next ticket. The answer comes a round trip later; next() waits for it. */
    __device__ __forceinline__ int draw() const { return atomicAdd(static_cast<int *>(p.workspace), 1); }

    /* The last block to leave resets the counters. With lengths it may have had no tile: a plain store of a block that
     * never read the counter would race with the last ticket. */
    __device__ __forceinline__ void leave() const
    {
        int *counters = static_cast<int *>(p.workspace);
        if (atomicAdd(&counters[1], 1) == static_cast<int>(gridDim.x) - 1) {
#if VARLEN
            atomicExch(&counters[0], 0);
#else
            counters[0] = 0;
#endif
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
    const int batch = quotient(index_head, p.heads, by_heads);
    tile.seq = {batch, p.seq_q, p.seq_kv, 0, 0};
    tile.head = index_head - batch * p.heads;
    tile.kv_head = small_quotient(tile.head, static_cast<float>(p.kv_heads) * by_heads);
    const int block_m = paired ? 2 * step + index % 2 : even;
    tile.row0 = (FA_CAUSAL ? p.tiles_m - 1 - block_m : block_m) * FA_M;
    tile.key_tiles = count_key_tiles(p, tile.row0, FA_M);
    return tile;
}
