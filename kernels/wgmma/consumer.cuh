/* The state of wgmma's consumers, warpgroups that compute, and what a step consists of: turns, waits, products and the
 * softmax of a key tile. */
#pragma once

#include "wgmma/ring.cuh"
#include "wgmma/score.cuh"
#include "wgmma/store.cuh"

/* State of one consumer thread. Every function that takes it is inlined, so all of it stays in registers. Arrays are
 * references to variables of consume(): as members they would delay the compiler's split into registers. */
struct consumer {
    const fa_params &p;
    const shared_layout &at;
    const announced_tile *tiles_s; /* the query tiles that the producer announced */
    int warpgroup, thread, lane;
    float scale_log2, to_cap;
    unsigned q_s, q_empty; /* of this warpgroup */
    float (&s_r)[FA_N / 2], (&o_r)[O_REGS], (&rescale_r)[2];
    unsigned (&p_r)[FA_N / 4], (&q_r)[Q_REGS];
    softmax_rows &rows;
    pipeline_state q, k, v;
    int count;                 /* query tiles taken */
    work_tile tile, next_tile; /* of P; of the S that comes next */
    bool accumulate;       /* o_r is in use by `tile`. If not, P V starts it, and it may hold the output of done_tile */
    row_scale &done_scale; /* of the query tile whose output is complete and not stored */
    announced_tile &done_tile;

    __device__ __forceinline__ consumer(const fa_params &p, const shared_layout &at, const announced_tile *tiles_s,
                                        int warpgroup, int thread, float (&s_r)[FA_N / 2], float (&o_r)[O_REGS],
                                        float (&rescale_r)[2], unsigned (&p_r)[FA_N / 4], unsigned (&q_r)[Q_REGS],
                                        softmax_rows &rows, row_scale &done_scale, announced_tile &done_tile)
        : p(p), at(at), tiles_s(tiles_s), warpgroup(warpgroup), thread(thread), lane(thread % 32),
          scale_log2((HAS_SOFTCAP ? p.softcap : p.scale) * LOG2_E), to_cap(HAS_SOFTCAP ? p.scale / p.softcap : 0.0f),
          q_s(at.q_s + warpgroup * Q_STAGES * Q_TILE_BYTES), q_empty(at.q_empty + warpgroup * Q_STAGES * 8), s_r(s_r),
          o_r(o_r), rescale_r(rescale_r), p_r(p_r), q_r(q_r), rows(rows), q{0, 0}, k{0, 0}, v{0, 0}, count(0),
          done_scale(done_scale), done_tile(done_tile)
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
    const announced_tile *announced_s = &c.tiles_s[tile_slot(c.warpgroup, c.count++)];
    const announced_tile announced = *announced_s;
    work_tile tile = work_tile_of(c.p, announced, c.warpgroup);
#if PACKED
    tile.query = announced_s->part[c.thread / 32].query;
#endif
    return tile;
}

/* Reads the tile with this number again (PACKED: x and z become the warp's query and head). Kept, its coordinates would
 * occupy registers through the loop. */
__device__ __forceinline__ announced_tile reload_tile(const consumer &c, int count)
{
    announced_tile tile = c.tiles_s[tile_slot(c.warpgroup, count)];
#if PACKED
    const tile_row mine = c.tiles_s[tile_slot(c.warpgroup, count)].part[c.thread / 32];
    tile.x = mine.query, tile.z = mine.head;
#endif
    static_cast<int4 &>(tile) = make_int4(uniform_by_shuffle(tile.x), FA_SPLITS > 1 ? uniform_by_shuffle(tile.y) : 0,
                                          uniform_by_shuffle(tile.z), uniform_by_shuffle(tile.w));
    return tile;
}

__device__ __forceinline__ unsigned q_address(const consumer &c) { return c.q_s + c.q.stage * Q_TILE_BYTES; }

__device__ __forceinline__ unsigned k_word(const consumer &c)
{
    return uniform_by_shuffle(descriptor_start(c.at.k_s + c.k.stage * K_TILE_BYTES));
}

__device__ __forceinline__ unsigned v_word(const consumer &c)
{
    return uniform_by_shuffle(v_descriptor(c.at.v_s + c.v.stage * V_TILE_BYTES, c.at.ones_s));
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

__device__ __forceinline__ void first_tile_softmax(consumer &c, const work_tile &tile)
{
    c.rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    change_scores(c.s_r, tile, c.to_cap, c.thread);
    mask_tile(c.p, c.s_r, tile, c.thread);
    first_softmax(c.s_r, c.rows, c.scale_log2);
}

/* Softmax of a later one. Returns true when O must be scaled by rescale_r. K may be another tile's by now, so S would
 * come from memory again. */
template <bool MASKED>
__device__ __forceinline__ bool later_tile_softmax(consumer &c, const unsigned &q_s)
{
    auto mask = [&](float(&s_r)[FA_N / 2]) {
        change_scores(s_r, c.next_tile, c.to_cap, c.thread);
        if (MASKED)
            mask_tile(c.p, s_r, c.next_tile, c.thread);
    };
    mask(c.s_r);
    if (MASKED && (FA_CAUSAL || HAS_FIRST_KEY))
        first_ref_of_late_rows(c.s_r, c.rows, c.scale_log2);
    return online_softmax(c.s_r, c.rows, c.rescale_r, c.scale_log2, [&](float(&s_r)[FA_N / 2]) {
        recompute_s_from_memory(c.p, s_r, q_s, reload_tile(c, c.count - 1),
                                c.next_tile.first_key + c.next_tile.key_tile * FA_N, c.thread);
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

/* The factors of query tile number `count`. The sums of its rows are complete, unless they are columns of O. */
__device__ __forceinline__ row_scale scale_of_rows(const consumer &c, int count)
{
    const int head = HAS_SINK ? reload_tile(c, count).z : 0;
    return row_scale_of(c.p, c.rows, c.at.o_s, head, c.warpgroup, c.thread);
}
