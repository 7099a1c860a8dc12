/* The steps of wgmma's consumers, warpgroups that compute: the first key tile, a steady one, one that is masked or
 * lies beyond the border of two query tiles, and the end.
 *
 * Key tiles come last to first. Between two steps p_r holds P of key tile `tile.key_tile`, whose V is not read yet. */
#ifndef FA_WGMMA_CONSUMER_CUH
#define FA_WGMMA_CONSUMER_CUH

#include "wgmma/ring.cuh"
#include "wgmma/store.cuh"

/* State of one consumer thread. Every function that takes it is inlined, so all of it stays in registers. Arrays are
 * references to variables of consume(): as members they would delay the compiler's split into registers. */
struct consumer {
    const fa_params &p;
    const shared_layout &at;
    const int4 *tiles_s; /* the query tiles that the producer announced */
    int warpgroup, thread, lane;
    float scale_log2;
    unsigned q_s, q_empty; /* of this warpgroup */
    float (&s_r)[FA_N / 2], (&o_r)[O_REGS], (&rescale_r)[2];
    unsigned (&p_r)[FA_N / 4], (&q_r)[Q_REGS];
    softmax_rows &rows;
    pipeline_state q, k, v;
    int count;                 /* query tiles taken */
    work_tile tile, next_tile; /* of P; of the S that comes next */
    bool accumulate;       /* o_r is in use by `tile`. If not, P V starts it, and it may hold the output of done_tile */
    row_scale &done_scale; /* of the query tile whose output is complete and not stored */
    int4 &done_tile;

    __device__ __forceinline__ consumer(const fa_params &p, const shared_layout &at, const int4 *tiles_s, int warpgroup,
                                        int thread, float (&s_r)[FA_N / 2], float (&o_r)[O_REGS], float (&rescale_r)[2],
                                        unsigned (&p_r)[FA_N / 4], unsigned (&q_r)[Q_REGS], softmax_rows &rows,
                                        row_scale &done_scale, int4 &done_tile)
        : p(p), at(at), tiles_s(tiles_s), warpgroup(warpgroup), thread(thread), lane(thread % 32),
          scale_log2(p.scale * LOG2_E), q_s(at.q_s + warpgroup * Q_STAGES * Q_TILE_BYTES),
          q_empty(at.q_empty + warpgroup * Q_STAGES * 8), s_r(s_r), o_r(o_r), rescale_r(rescale_r), p_r(p_r), q_r(q_r),
          rows(rows), q{0, 0}, k{0, 0}, v{0, 0}, count(0), done_scale(done_scale), done_tile(done_tile)
    {
    }
};

/* Warpgroups take turns at issuing products, so that one's exponentials run under another's products. Named barriers
 * 1 to CONSUMERS: a warpgroup waits for its turn at its own, and arrives at the next one's. */
__device__ __forceinline__ void warpgroup_sync(int warpgroup)
{
    if (CONSUMERS > 1)
        bar_sync(1 + warpgroup, 256);
}

__device__ __forceinline__ void warpgroup_arrive(int warpgroup)
{
    if (CONSUMERS > 1)
        bar_arrive(1 + (warpgroup + 1) % CONSUMERS, 256);
}

/* Every lane frees Q for itself: all have read which tile this is, and the tile before it. */
__device__ __forceinline__ void release_q(consumer &c)
{
    mbarrier_arrive(c.q_empty + 8 * c.q.stage);
    advance_warp<Q_STAGES>(c.q);
}

__device__ __forceinline__ void release_k(consumer &c) { consumer_release<FA_STAGES>(c.at.k_empty, c.k, c.lane); }
__device__ __forceinline__ void release_v(consumer &c) { consumer_release<FA_STAGES>(c.at.v_empty, c.v, c.lane); }

/* Skips key tiles that no row of the warpgroup sees. Every warpgroup takes one turn per tile, also for these. */
__device__ __forceinline__ void skip_k(consumer &c, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        warpgroup_sync(c.warpgroup);
        warpgroup_arrive(c.warpgroup);
        consumer_pass<FA_STAGES>(c.at.k_full, c.at.k_empty, c.k, c.lane);
    }
}

__device__ __forceinline__ void skip_v(consumer &c, int tiles)
{
    for (int i = 0; i < tiles; ++i)
        consumer_pass<FA_STAGES>(c.at.v_full, c.at.v_empty, c.v, c.lane);
}

/* Skips K and V, but for the last V, in the producer's order: the turn for a K comes before the wait for the V before
 * it. Another warpgroup may free that V's buffer only after that turn. */
__device__ __forceinline__ void skip_key_tiles(consumer &c, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        skip_k(c, 1);
        if (i > 0)
            skip_v(c, 1);
    }
}

/* Waits for the next Q. */
__device__ __forceinline__ work_tile take_tile(consumer &c)
{
    const int slot = c.warpgroup * Q_STAGES + c.q.stage;
    mbarrier_wait(c.at.q_full + 8 * slot, c.q.phase);
    const int4 announced = c.tiles_s[tile_slot(c.warpgroup, c.count++)];
    return work_tile_of(c.p, announced, c.warpgroup);
}

/* Reads the tile with this number again. Kept, its coordinates would occupy registers through the loop. */
__device__ __forceinline__ int4 reload_tile(const consumer &c, int count)
{
    const int4 tile = c.tiles_s[tile_slot(c.warpgroup, count)];
    return make_int4(uniform_by_shuffle(tile.x), FA_SPLITS > 1 ? uniform_by_shuffle(tile.y) : 0,
                     uniform_by_shuffle(tile.z), uniform_by_shuffle(tile.w));
}

__device__ __forceinline__ unsigned q_address(const consumer &c) { return c.q_s + c.q.stage * Q_TILE_BYTES; }

__device__ __forceinline__ unsigned k_word(const consumer &c)
{
    return uniform_by_shuffle(descriptor_start(c.at.k_s + c.k.stage * KV_TILE_BYTES));
}

__device__ __forceinline__ unsigned v_word(const consumer &c)
{
    return uniform_by_shuffle(v_descriptor(c.at.v_s + c.v.stage * KV_TILE_BYTES, c.at.ones_s));
}

/* Issues S = Q K^T. */
__device__ __forceinline__ void start_scores(consumer &c, unsigned q_s, unsigned k)
{
    const unsigned q = uniform_by_shuffle(descriptor_start(q_s));
    fence_operand(c.s_r);
    wgmma_fence();
    if constexpr (Q_IN_REGISTERS)
        issue_qk(c.s_r, c.q_r, k);
    else
        issue_qk(c.s_r, q, k);
    wgmma_commit();
}

/* Issues O += P V, or O = P V. */
__device__ __forceinline__ void start_output(consumer &c, unsigned v, int accumulate)
{
    wgmma_fence();
    issue_pv(c.o_r, c.p_r, v, accumulate);
    wgmma_commit();
}

/* S is complete when at most PENDING later groups still run. */
template <int PENDING>
__device__ __forceinline__ void finish_scores(consumer &c)
{
    wgmma_wait<PENDING>();
    fence_operand(c.s_r);
    release_k(c);
}

__device__ __forceinline__ void finish_output(consumer &c)
{
    wgmma_wait<0>();
    fence_operand(c.o_r);
    release_v(c);
}

/* Softmax of the first key tile of `tile`. */
__device__ __forceinline__ void first_tile_softmax(consumer &c, const work_tile &tile)
{
    c.rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    mask_tile(c.p, c.s_r, tile.key_tile, tile.row, c.thread);
    first_softmax(c.s_r, c.rows, c.scale_log2);
}

/* Softmax of a later one. Returns true when O must be scaled by rescale_r. K may be another tile's by now, so S would
 * come from memory again. */
template <bool MASKED>
__device__ __forceinline__ bool later_tile_softmax(consumer &c, const unsigned &q_s)
{
    auto mask = [&](float(&s_r)[FA_N / 2]) {
        if (MASKED)
            mask_tile(c.p, s_r, c.next_tile.key_tile, c.next_tile.row, c.thread);
    };
    mask(c.s_r);
    if (MASKED && FA_CAUSAL)
        first_ref_of_late_rows(c.s_r, c.rows, c.scale_log2);
    return online_softmax(c.s_r, c.rows, c.rescale_r, c.scale_log2, [&](float(&s_r)[FA_N / 2]) {
        recompute_s_from_memory(c.p, s_r, q_s, reload_tile(c, c.count - 1), c.next_tile.key_tile * FA_N, c.thread);
        mask(s_r);
    });
}

/* Keeps the exponentials above the wait for P V, so that they run under these products. */
__device__ __forceinline__ void compute_softmax_before(consumer &c)
{
    fence_operand(c.s_r);
    if (!SUM_BY_MMA)
        compute_before(__float_as_int(c.rows.sum[0] + c.rows.sum[1]));
    else if (!FA_CAUSAL)
        compute_before(__float_as_int(c.s_r[0]));
}

__device__ __forceinline__ void store_done_tile(consumer &c)
{
    store_o(c.p, c.o_r, c.done_scale, c.done_tile, c.at.o_s, c.warpgroup, c.thread);
}

/* The factors of `tile`. The sums of its rows are complete, unless they are columns of O. */
__device__ __forceinline__ row_scale scale_of_rows(const consumer &c)
{
    return row_scale_of(c.rows, c.at.o_s, c.warpgroup, c.thread);
}

/* A warpgroup none of whose rows exist passes all key tiles. Returns true, with next_tile, if this is one; other
 * warpgroups pass the tiles that no row of theirs sees. */
__device__ __forceinline__ bool skip_unseen(consumer &c)
{
    const bool no_rows = c.tile.row >= c.p.seq_q;
    skip_key_tiles(c,
                   no_rows ? c.tile.masked_tiles + c.tile.key_tile + 1 - c.tile.first_key_tile : c.tile.masked_tiles);
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
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        c.o_r[i] = 0.0f;
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
    return c.tile.key_tile * FA_N + FA_CAUSAL <= unmasked_keys(c.p, c.tile.row);
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

/* The border of two query tiles with one buffer of Q: the next Q comes late. P V of the last keys goes first, and the
 * output is stored under the next tile's first Q K^T. */
__device__ __forceinline__ bool border_with_one_q(consumer &c)
{
    const unsigned v = v_word(c);
    consumer_wait(c.at.v_full, c.v);
    fence_operand(c.o_r);
    start_output(c, v, c.accumulate);
    c.done_scale = scale_of_rows(c);
    c.done_tile = reload_tile(c, c.count - 1);
#if FA_LSE && !KEEP_REFERENCES
    store_lse_before_o(c.p, c.rows, c.done_scale, c.done_tile, c.warpgroup, c.thread);
#endif
    c.next_tile = take_tile(c);
    if (!ACROSS_TILES || c.next_tile.row < 0 || c.next_tile.row >= c.p.seq_q || c.next_tile.masked_tiles > FA_STAGES)
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
        release_q(c);
        c.next_tile = take_tile(c);
        if (!ACROSS_TILES || c.next_tile.row < 0 || c.next_tile.row >= c.p.seq_q ||
            c.next_tile.masked_tiles > FA_STAGES)
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
        c.done_scale = scale_of_rows(c);
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
        skip_v(c, c.next_tile.masked_tiles);
    else if (raised)
        rescale_o(c.o_r, c.rescale_r);
    pack_p(c.s_r, c.p_r);
    c.tile = c.next_tile;
    return true;
}

/* The end of a query tile that no product follows: O += P V of its last keys, on its own; stores O. */
__device__ __forceinline__ void drain(consumer &c)
{
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
        store_lse_before_o(c.p, c.rows, scale_of_rows(c), reload_tile(c, c.count - 2), c.warpgroup, c.thread);
#endif
    finish_output(c);
    store_o(c.p, c.o_r, scale_of_rows(c), reload_tile(c, c.count - 2), c.at.o_s, c.warpgroup, c.thread);
}

#endif
