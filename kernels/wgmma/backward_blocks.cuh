/* Which keys the blocks of wgmma_backward have, in which order. */
#pragma once

#include "wgmma/backward.cuh"

/* The order of blocks, for find_keys.
 * CAUSAL_ALONE: with the causal mask the first keys of a head meet the most query tiles. So the last heads, a wave or
 * two of blocks, go by tiles of keys, not by heads. More heads at once would not stay in L2.
 * ZIGZAG, where query heads share K/V heads: as many K/V heads as fill the GPU run side by side, the longest blocks
 * first. Their blocks take the query tiles from the last row up to the diagonal, where they end one by one. The next
 * heads' blocks begin there and take the tiles the other way, so they end together. Blocks side by side thus read the
 * same query tiles and add to the same dQ, in L2. With short sequences the last waves of blocks are one. */
__device__ __forceinline__ void order_blocks(key_block &block, const fa_params &p, unsigned heads, unsigned tiles,
                                             unsigned at, unsigned &unit, int &tile)
{
    if (ZIGZAG && p.heads != p.kv_heads) {
        const unsigned side = max(1u, p.sm_count / (tiles * FA_SPLITS)), even = (heads / side - 1) / 2 * 2 * side;
        unsigned first = at / (side * tiles) * side, count = min(side, heads - first);
        if (tiles < 16 && first >= even)
            first = even, count = heads - even;
        const unsigned i = at - first * tiles;
        unit = first + i % count, tile = i / count;
        block.up = first / side % 2 != 0;
    } else if constexpr (CAUSAL_ALONE && !WHOLE_HEADS) {
        if (DRAWS)
            block.up = false;
        const unsigned waves = tiles < 16 ? 1 : 2, last = min(heads, ceil_div(waves * p.sm_count, tiles * FA_SPLITS));
        if (unit >= heads - last) {
            const unsigned i = at - (heads - last) * tiles;
            tile = i / last, unit = heads - last + i - tile * last;
        }
    }
}

constexpr unsigned KEYS_PHASE = 1u << 31;

/* A block's keys, PERSISTENT at-th of all; false: there are no more. With the causal mask any two blocks in a row are
 * as long as any others: the second has keys as far from a head's last keys as the first from its first. */
__device__ __forceinline__ bool find_block(key_block &block, const fa_params &p, unsigned at)
{
    const auto in_order = [&](unsigned heads, unsigned tiles, unsigned at, unsigned &unit, int &tile) {
        order_blocks(block, p, heads, tiles, at, unit, tile);
    };
    if constexpr (!PERSISTENT)
        return find_keys(block, p, in_order);
    const unsigned heads = p.batch * p.kv_heads, tiles = ceil_div(p.seq_kv, N), round = at / gridDim.x;
    if constexpr (DRAWS) {
        if (at < heads * tiles)
            find_keys<true>(block, p, in_order, heads * tiles, at);
        return at < heads * tiles;
    }
    if constexpr (WHOLE_HEADS) {
        const unsigned head = round / tiles * gridDim.x + at % gridDim.x;
        if (head < heads)
            find_keys<true>(block, p, in_order, heads * tiles, head * tiles + round % tiles);
        return head < heads;
    }
    const unsigned pair = round / 2 * gridDim.x + at % gridDim.x;
    if (CAUSAL_ALONE ? pair >= ceil_div(heads, 2) * tiles : at >= heads * tiles)
        return false;
    const auto order = [&](unsigned, unsigned, unsigned, unsigned &unit, int &tile) {
        if (CAUSAL_ALONE) {
            unit = pair / tiles * 2 + round % 2, tile = pair % tiles;
            if (round % 2 != 0)
                tile = unit < heads ? tiles - 1 - tile : tiles; /* tiles: no keys */
            unit = min(unit, heads - 1);
        }
    };
    find_keys<true>(block, p, order, heads * tiles, at);
    if (CAUSAL_ALONE && block.key0 >= p.seq_kv)
        block.end = block.begin;
    return true;
}

/* DRAWS: a block that was drawn, as the warp that issues copies leaves it for all others. */
__device__ __forceinline__ void take_block(key_block &block, query_loop &loop, const fa_params &p,
                                           const shared_layout &at, unsigned number)
{
    uint4 a, b;
    ld_shared_16_at(a, at.base + FOUND_AT + number % 4 * 32);
    ld_shared_16_at(b, at.base + FOUND_AT + number % 4 * 32 + 16);
    block.kv_head = a.x, block.seq = sequence_of(p, a.y), block.key0 = a.z, block.begin = a.w;
    block.end = b.x, block.up = b.y & 1, loop.left = b.y / 2, loop.head = b.z, loop.tile = b.w;
}

/* DRAWS: the same for who does not draw. A block has tiles, and those of two blocks before it were used when the copies
 * of its own began, so a place is free after four. */
template <class F>
__device__ __forceinline__ void for_each_drawn_block(const fa_params &p, key_block &block, const shared_layout &at,
                                                     const F &f)
{
    query_loop loop = {};
    loop.group = p.heads / p.kv_heads;
    for (unsigned number = 0;; ++number) {
        mbarrier_wait(at.base + FOUND_BARS_AT + number % 4 * 8, number / 4 & 1);
        take_block(block, loop, p, at, number);
        if (loop.left == 0)
            return;
        loop.start = loop.count;
        f(block, loop, number);
    }
}

/* f(block, loop, at) for the block, or PERSISTENT for one after the other: the at-th, with FLAGS that f sets. With
 * whole rows they are neighbours, and the first is a halo: what the keys before give to the first rows. */
template <unsigned FLAGS = 0, class F>
__device__ __forceinline__ void for_each_block(const fa_params &p, key_block &block, const shared_layout &shared,
                                               const F &f)
{
    if constexpr (DRAWS) {
        for_each_drawn_block(p, block, shared, f);
        return;
    }
    unsigned at = blockIdx.x, end = 0, step = gridDim.x;
    bool halo = false;
    const bool whole = has_whole_rows(p);
    if (whole) {
        const unsigned tiles = ceil_div(p.seq_kv, N), all = p.batch * p.kv_heads * tiles, share = all / gridDim.x;
        const unsigned more = all - share * gridDim.x;
        at = blockIdx.x * share + min(blockIdx.x, more), end = at + share + (blockIdx.x < more), step = 1;
        halo = at % tiles != 0;
        at -= halo;
    }
    query_loop loop = {};
    do {
        if (PERSISTENT && ((whole && (at & ~FLAGS) == end) || !find_block(block, p, at & ~FLAGS)))
            return;
        if (WHOLE_ROWS && halo)
            block.begin++, halo = false;
        loop = first_query_tile(p, block, loop.count);
        f(block, loop, at);
        at += WHOLE_ROWS ? step : gridDim.x;
    } while (PERSISTENT);
}

/* DRAWS: for the lane that issues copies. It draws two tiles ahead of who computes. */
template <class F>
__device__ __forceinline__ void draw_blocks(const fa_params &p, key_block &block, const shared_layout &at, const F &f)
{
    query_loop loop = {};
    unsigned draw = blockIdx.x;
    for (unsigned place = 0;;) {
        const bool found = find_block(block, p, draw);
        loop = found ? first_query_tile(p, block, loop.count) : query_loop{};
        if (!found || loop.left > 0) {
            const unsigned to = at.base + FOUND_AT + place * 4;
            st_shared_16_at(to, make_uint4(block.kv_head, block.seq.batch, block.key0, block.begin));
            st_shared_16_at(to + 16, make_uint4(block.end, 2 * loop.left + (ZIGZAG && block.up), loop.head, loop.tile));
            mbarrier_arrive(at.base + FOUND_BARS_AT + place);
            place = (place + 8) % 32;
        }
        if (!found)
            return;
        f(block, loop);
        float *counter_g = static_cast<float *>(p.workspace) + static_cast<fa_i64>(p.tiles) * FA_M * (DIM16 + 2);
        unsigned blocks = gridDim.x;
        asm volatile("" : "+r"(blocks)); /* not a register all the time */
        draw = blocks + atomicAdd(reinterpret_cast<unsigned *>(counter_g), 1);
    }
}
