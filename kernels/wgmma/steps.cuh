/* The steps of wgmma's consumers: the first key tile, a steady one, one that is masked or lies beyond the border of two
 * query tiles, and the end.
 *
 * Key tiles come last to first. Between two steps p_r holds P of key tile `tile.key_tile`, whose V is not read yet. */
#pragma once

#include "wgmma/consumer.cuh"

__device__ __forceinline__ bool has_no_rows(const consumer &c, const work_tile &tile)
{
#if KEY_RANGES
    return tile.row >= tile.seq.seq_q;
#else
    return tile.row >= c.p.seq_q;
#endif
}

/* A warpgroup none of whose rows exist passes all key tiles. Returns true, with next_tile, if this is one; other
 * warpgroups pass the tiles that no row of theirs sees. */
__device__ __forceinline__ bool skip_unseen(consumer &c)
{
    const bool no_rows = has_no_rows(c, c.tile);
    skip_key_tiles(c, no_rows ? c.tile.masked_tiles + c.tile.key_tile + 1 - c.tile.first_key_tile + c.tile.below_tiles
                              : c.tile.masked_tiles);
    if (!no_rows)
        return false;
    skip_v(c, 1);
    release_q(c);
    c.next_tile = take_tile(c);
    return true;
}

/* The first key tile when nothing runs: S = Q K^T on its own, exact row maxima, P = exp2(S - max). */
__device__ __forceinline__ void first_key_tile(consumer &c)
{
    clear(c.o_r);
    const unsigned q_s = q_address(c);
    if (Q_IN_REGISTERS)
        load_q_operand(c.q_r, q_s, c.thread);
    const unsigned k = k_word(c);
    consumer_wait(c.at.k_full, c.k);
    warpgroup_sync(c.warpgroup);
    start_scores(c, q_s, k);
    warpgroup_arrive(c.warpgroup);
    if (c.tile.masked_tiles > 0)
        skip_v(c, 1);
    finish_scores<0>(c);
    first_tile_softmax(c, c.tile);
    if (PV_FIRST && c.tile.key_tile == c.tile.first_key_tile)
        release_q(c);
    pack_p(c.s_r, c.p_r);
    c.next_tile = c.tile;
    c.accumulate = true;
    c.done_tile = {};
    c.done_scale = {};
}

/* All rows see all keys of the next key tile, and have seen one before it. */
__device__ __forceinline__ bool next_is_unmasked(const consumer &c)
{
#if KEY_RANGES
    const key_range &seen = c.tile.seen_by_all;
    return c.tile.key_tile * FA_N < seen.end && (!HAS_FIRST_KEY || (c.tile.key_tile - 1) * FA_N >= seen.first);
#else
    return c.tile.key_tile * FA_N + FA_CAUSAL <= unmasked_keys(c.p, c.tile.row);
#endif
}

/* A steady key tile: issues S = Q K^T of it and O += P V of the one before together, and computes the softmax under
 * them. */
__device__ __forceinline__ void steady_key_tile(consumer &c)
{
    --c.next_tile.key_tile;
    const unsigned q_s = q_address(c), k = k_word(c), v = v_word(c);
    consumer_wait(c.at.k_full, c.k);
    warpgroup_sync(c.warpgroup);
    fence_operand(c.o_r);
    start_scores(c, q_s, k);
    consumer_wait(c.at.v_full, c.v);
    start_output(c, v, 1);
    warpgroup_arrive(c.warpgroup);
    finish_scores<1>(c);
    const bool raised = later_tile_softmax<false>(c, q_s);
    compute_softmax_before(c);
    if (PV_FIRST && c.next_tile.key_tile == c.next_tile.first_key_tile)
        release_q(c);
    finish_output(c);
    if (raised)
        rescale_o(c.o_r, c.rescale_r);
    pack_p(c.s_r, c.p_r);
    c.tile = c.next_tile;
}

/* Passes the keys that next_tile does not see, on the way over the border. */
__device__ __forceinline__ void enter_next_tile(consumer &c)
{
    skip_k(c, c.next_tile.masked_tiles);
    if (Q_IN_REGISTERS)
        load_q_operand(c.q_r, q_address(c), c.thread);
}

/* Must the next query tile's first product wait until this tile's last V is released? Its key tiles come after those
 * that this warpgroup passes, below this tile and above the next, and the ring must hold them beside that V. */
__device__ __forceinline__ bool must_end_tile(const consumer &c)
{
    const int masked = c.next_tile.masked_tiles;
    return !ACROSS_TILES || c.next_tile.row < 0 || has_no_rows(c, c.next_tile) ||
           (KEY_RANGES ? c.tile.below_tiles + max(masked, 1) : masked) > FA_STAGES;
}

/* So many key tiles below that not even the next Q comes before this tile's last V is released. */
__device__ __forceinline__ bool must_drain(const consumer &c)
{
    return c.tile.below_tiles >= (PV_FIRST ? 1 : FA_STAGES);
}

/* Passes the key tiles below the warpgroup's own when its last V is released, then waits for the next Q. */
__device__ __forceinline__ void pass_below(consumer &c)
{
    skip_key_tiles(c, c.tile.below_tiles);
    skip_v(c, 1);
    if (!PV_FIRST)
        release_q(c);
    c.next_tile = take_tile(c);
}

/* The border of two query tiles with one buffer of Q: the next Q comes late. P V of the last keys goes first, and the
 * output is stored under the next tile's first Q K^T. */
__device__ __forceinline__ bool border_with_one_q(consumer &c)
{
    const unsigned v = v_word(c);
    consumer_wait(c.at.v_full, c.v);
    fence_operand(c.o_r);
    start_output(c, v, c.accumulate);
    c.done_scale = scale_of_rows(c, c.count - 1);
    c.done_tile = reload_tile(c, c.count - 1);
#if FA_LSE && !KEEP_REFERENCES
    store_lse_before_o(c.p, c.rows, c.done_scale, c.done_tile, c.warpgroup, c.thread);
#endif
    if constexpr (KEY_RANGES) {
        if (must_drain(c))
            return false;
    }
    c.next_tile = take_tile(c);
    if (must_end_tile(c))
        return false;
    enter_next_tile(c);
    const unsigned q_s = q_address(c), k = k_word(c);
    consumer_wait(c.at.k_full, c.k);
    finish_output(c);
    warpgroup_sync(c.warpgroup);
    start_scores(c, q_s, k);
    warpgroup_arrive(c.warpgroup);
    store_done_tile(c);
    skip_v(c, c.next_tile.masked_tiles);
    finish_scores<0>(c);
    first_tile_softmax(c, c.next_tile);
    if (c.next_tile.key_tile == c.next_tile.first_key_tile)
        release_q(c);
    pack_p(c.s_r, c.p_r);
    c.accumulate = false;
    c.tile = c.next_tile;
    return true;
}

/* Any other key tile: masked, or the first of the next query tile, whose Q K^T runs beside this tile's last P V. The
 * output of a query tile is stored under the first product after the border. False when no product can follow; where
 * keys are split none does, for combining the splits wants the registers. */
__device__ __forceinline__ bool masked_or_border_key_tile(consumer &c)
{
    const bool border = c.tile.key_tile == c.tile.first_key_tile;
    if (border && PV_FIRST)
        return border_with_one_q(c);
    if (border) {
        if constexpr (KEY_RANGES) {
            if (must_drain(c))
                return false;
        }
        skip_k(c, c.tile.below_tiles);
        release_q(c);
        c.next_tile = take_tile(c);
        if (must_end_tile(c))
            return false;
        enter_next_tile(c);
    } else {
        --c.next_tile.key_tile;
    }
    const unsigned q_s = q_address(c), k = k_word(c), v = v_word(c);
    consumer_wait(c.at.k_full, c.k);
    warpgroup_sync(c.warpgroup);
    fence_operand(c.o_r);
    start_scores(c, q_s, k);
    const bool store_pending = ACROSS_TILES && !PV_FIRST && !c.accumulate;
    if (store_pending) {
        warpgroup_arrive(c.warpgroup);
        store_done_tile(c);
    }
    consumer_wait(c.at.v_full, c.v);
    start_output(c, v, c.accumulate ? 1 : 0);
    if (!store_pending)
        warpgroup_arrive(c.warpgroup);
    if (border) {
        c.done_scale = scale_of_rows(c, c.count - 2);
        c.done_tile = reload_tile(c, c.count - 2);
#if FA_LSE && !KEEP_REFERENCES
        store_lse_before_o(c.p, c.rows, c.done_scale, c.done_tile, c.warpgroup, c.thread);
#endif
    }
    finish_scores<1>(c);
    bool raised = false;
    if (border)
        first_tile_softmax(c, c.next_tile);
    else
        raised = later_tile_softmax<true>(c, q_s);
    compute_softmax_before(c);
    if (PV_FIRST && c.next_tile.key_tile == c.next_tile.first_key_tile)
        release_q(c);
    finish_output(c);
    c.accumulate = !border;
    if (border)
        skip_v(c, c.tile.below_tiles + c.next_tile.masked_tiles);
    else if (raised)
        rescale_o(c.o_r, c.rescale_r);
    pack_p(c.s_r, c.p_r);
    c.tile = c.next_tile;
    return true;
}

/* The end of a query tile that no product follows: O += P V of its last keys, on its own; stores O. */
__device__ __forceinline__ void drain(consumer &c)
{
    const bool next_is_taken = !KEY_RANGES || !must_drain(c);
    if (!PV_FIRST) { /* else the border has issued it */
        const unsigned v = v_word(c);
        if (ACROSS_TILES && !c.accumulate)
            store_done_tile(c);
        consumer_wait(c.at.v_full, c.v);
        fence_operand(c.o_r);
        start_output(c, v, c.accumulate);
    }
#if FA_LSE && !KEEP_REFERENCES
    if (!PV_FIRST) /* else the border has stored it */
        store_lse_before_o(c.p, c.rows, scale_of_rows(c, c.count - (next_is_taken ? 2 : 1)),
                           reload_tile(c, c.count - (next_is_taken ? 2 : 1)), c.warpgroup, c.thread);
#endif
    finish_output(c);
    if constexpr (KEY_RANGES) {
        if (next_is_taken)
            skip_v(c, c.tile.below_tiles);
        else
            pass_below(c);
    }
    store_o(c.p, c.o_r, scale_of_rows(c, c.count - 2), reload_tile(c, c.count - 2), c.at.o_s, c.warpgroup, c.thread);
}
