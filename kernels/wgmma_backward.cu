/* wgmma_backward: the gradients of attention on Hopper's wgmma, for sm_90a.
 *
 * Idea: as mma_backward, by warpgroups. Two of them own 64 keys each and make S^T = K Q^T and dP^T = V dO^T in
 *   registers; P^T and dS^T are there the left operands of dV += P^T dO and dK += dS^T Q. dS goes through shared memory
 *   for dQ = dS K, of which each makes a half: 64 rows, or 64 columns where dim is above 64. Bulk reductions add a
 *   warp's rows to the FP32 sums in the workspace while the next tile is computed. With --deterministic they wait for
 *   the block's turn, which ends under the products of the next tile.
 * Above dim 128 dK and dV of 64 keys fill the registers of both. They share the keys: one makes S^T and owns dV, the
 *   other dP^T and dK. S^T goes through shared memory, and both make P^T of it. dQ is dealt in parts of 64 columns. The
 *   first is half a tile ahead, so that one's exponentials run under the other's products.
 * Loads: a third warpgroup brings Q, K and V by TMA, and dO and the rows' numbers by cp.async: no map describes dO.
 * Around it: fa_before and fa_after of mma/gradients.cuh.
 * Builds on: mma_backward, wgmma.
 * Splits: where blocks are few, a cluster of them shares a K/V head's keys. Each has a part of the query tiles, and at
 *   the end stores dK and dV of a part of the keys, which it sums over the shared memory of all.
 * Knobs: stages, splits. Fixed: warps 12; m 128 up to dim 64, else 64; n 128 up to dim 128, else 64.
 * Limits: dim a multiple of 8 up to 256, dim-v up to dim; rows on 16 bytes; lengths, windows, chunks, softcap, sinks,
 *   ALiBi. */
#include "wgmma/backward.cuh"

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_KEYS,
               .cluster = SPLITS > 1 ? SPLITS : 0,
               .workspace_bytes_per_block = static_cast<fa_i64>(M / SPLITS) * WORKSPACE_BYTES_PER_ROW, .tma_q_rows = M,
               .tma_k_rows = N, .tma_v_rows = N, .tma_cols = 64, .nondeterministic = !DETERMINISTIC, .pack_heads = 1,
               .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC,
               .needs = FA_NEEDS_ALIGNED);

/* What a warpgroup that computes holds: s is S^T. */
struct consumer_state {
    float dk[DIM_PAD / 2], dv[DIM_PAD_V / 2], s[M / 2];
    int group, thread;
    unsigned *turn_g; /* that the lane must end */
};

/* S^T of a tile begins. */
__device__ __forceinline__ void issue_tile_scores(consumer_state &w, const query_loop &loop, const shared_layout &at)
{
    mbarrier_wait(at.full_bar + 8 * stage_of(loop), phase_of(loop));
    fence_operand(w.s);
    wgmma_fence();
    issue_scores<DIM16>(w.s, at.base + w.group * 64 * BOX_ROW_BYTES, at.base + q_of(loop));
    wgmma_commit();
}

/* P^T and dS^T of half of a tile's queries, as left operands; dS^T to shared memory as well. */
template <int HALF>
__device__ __forceinline__ void make_half(unsigned (&p_r)[M / 8], unsigned (&ds_r)[M / 8], float (&dp)[M / 2],
                                          const fa_params &p, const key_block &block, const consumer_state &w,
                                          const query_loop &loop, const shared_layout &at, unsigned char *smem)
{
    const float *numbers_s = reinterpret_cast<const float *>(smem + numbers_of(loop));
    const head_scores scores = scores_of_head(p, block.seq, loop.head);
    float weights[M / 4];
    make_weights<1, M / 16, ALWAYS_MASKED>(
        p, block, scores, w.group * 64 + w.thread / 32 * 16, loop.tile * M, HALF * M / 2, numbers_s,
        [&](int, int t, int i) { return w.s[HALF * M / 4 + 4 * t + i]; },
        [&](int, int t, int i, float weight, float, float) { weights[4 * t + i] = weight; });
    if (HALF == 0) {
        wgmma_wait<0>(); /* for dP^T */
        fence_operand(dp);
    }
#pragma unroll
    for (int i = 0; i < M / 4; i += 2) {
        const int j = HALF * M / 4 + i;
        const float2 delta = *reinterpret_cast<const float2 *>(numbers_s + M + j / 4 * 8 + w.thread % 4 * 2);
        p_r[i / 2] = pack_elements(weights[i], weights[i + 1]);
        ds_r[i / 2] = pack_elements(weights[i] * (dp[j] - delta.x) * score_slope(scores, w.s[j]),
                                    weights[i + 1] * (dp[j + 1] - delta.y) * score_slope(scores, w.s[j + 1]));
    }
    store_ds(at.base + ds_of(loop) + w.group * Q_BOX_BYTES + HALF * M / 2 * BOX_ROW_BYTES, ds_r, w.thread);
}

/* The products of a query tile, and S^T of the next. dP^T runs under the exponentials of half the queries, that half's
 * parts of dV and dK under those of the other, and what is left while dQ leaves. dS has two buffers. */
__device__ __forceinline__ void consume_tile(const fa_params &p, const key_block &block, consumer_state &w,
                                             const query_loop &loop, const shared_layout &at, unsigned char *smem)
{
    constexpr int HALF_BYTES = M / 2 * BOX_ROW_BYTES;
    const unsigned q_at = at.base + q_of(loop);
    unsigned p_r[2][M / 8], ds_r[2][M / 8];
    float dp[M / 2], dq[32];
    fence_operand(dp);
    wgmma_fence();
    issue_scores<v_row::DIM16>(dp, at.base + V_AT + w.group * 64 * BOX_ROW_BYTES, q_at + Q_BYTES);
    wgmma_commit();
    make_half<0>(p_r[0], ds_r[0], dp, p, block, w, loop, at, smem);
    fence_operand(w.dv);
    fence_operand(w.dk);
    wgmma_fence();
    issue_sums(w.dv, p_r[0], q_at + Q_BYTES, loop.count > 0);
    issue_sums(w.dk, ds_r[0], q_at, loop.count > 0);
    wgmma_commit();
    end_turn(w.turn_g); /* of the tile before */
    make_half<1>(p_r[1], ds_r[1], dp, p, block, w, loop, at, smem);
    fence_async_proxy();
    wgmma_wait<0>();
    fence_operand(w.dv);
    fence_operand(w.dk);
    fence_operand(dq);
    wgmma_fence();
    issue_sums(w.dv, p_r[1], q_at + Q_BYTES + HALF_BYTES, 1);
    wgmma_commit();
    bar_sync(BAR_DS, CONSUMERS);
    issue_dq(dq, at.base + ds_of(loop), at.base, w.group);
    wgmma_commit();
    issue_sums(w.dk, ds_r[1], q_at + HALF_BYTES, 1);
    wgmma_commit();
    query_loop next = loop;
    if (loop.left > 1) /* after the last tile its S^T again: a branch around wgmma would make ptxas wait for each */
        advance(next, block);
    if (STAGES > 1)
        issue_tile_scores(w, next, at);
    wgmma_wait<STAGES>(); /* for dQ */
    fence_operand(dq);
    w.turn_g =
        add_dq(dq, gradients_of(p, block.seq, loop.head, block.kv_head, loop.group), smem + DQ_AT + w.group * DQ_BYTES,
               loop.tile * M, block.seq.seq_q, turn_of(p, block, loop.tile * M), w.group, w.thread);
    wgmma_wait<0>();
    fence_operand(w.dv);
    fence_operand(w.dk);
    release(at.empty_bar + 8 * stage_of(loop), w.thread);
    if (STAGES == 1) { /* the next tile comes only now */
        issue_tile_scores(w, next, at);
        wgmma_wait<0>();
    }
    fence_operand(w.s);
}

/* A warpgroup that computes, and owns all of its keys. */
__device__ __forceinline__ void consume(const fa_params &p, const key_block &block, const shared_layout &at,
                                        unsigned char *smem, int group, int thread)
{
    consumer_state w = {};
    w.group = group, w.thread = thread;
    query_loop loop = first_query_tile(p, block);
    if (loop.left > 0) {
        mbarrier_wait(at.keys_bar, 0);
        issue_tile_scores(w, loop, at);
        wgmma_wait<0>();
        fence_operand(w.s);
    }
#pragma unroll 1
    for (; loop.left > 0; advance(loop, block))
        consume_tile(p, block, w, loop, at, smem);
    end_turn(w.turn_g);
    tma_store_wait_read();
    if constexpr (SPLITS > 1) {
        bar_sync(BAR_DS, CONSUMERS); /* all products of the block are over */
        put_sums(w.dk, smem, group * 64, 0, thread);
        put_sums(w.dv, smem, group * 64, DIM_PAD, thread);
        store_shares(p, block, at.base);
        return;
    }
    store_sums<false>(w.dk, p, block, block.key0 + group * 64, at.base + DQ_AT + group * DQ_BYTES, thread);
    store_sums<true>(w.dv, p, block, block.key0 + group * 64, at.base + DQ_AT + group * DQ_BYTES, thread);
}

/* With shared keys: the warpgroup's parts of dQ of a tile. Of an odd number, the last is now one's, now the other's. */
__device__ __forceinline__ void add_parts(const fa_params &p, const key_block &block, const query_loop &loop,
                                          const shared_layout &at, unsigned char *smem, int group, int thread,
                                          unsigned *&turn_g)
{
#pragma unroll
    for (int i = 0; i < ceil_div(DQ_PARTS, 2); ++i) {
        const int part = 2 * i + ((group ^ loop.count) & 1);
        if (DQ_PARTS % 2 != 0 && part == DQ_PARTS)
            break;
        float dq[32];
        fence_operand(dq);
        wgmma_fence();
        issue_dq(dq, at.base + ds_of(loop), at.base, part);
        wgmma_commit();
        wgmma_wait<0>();
        fence_operand(dq);
        turn_g = add_dq(dq, gradients_of(p, block.seq, loop.head, block.kv_head, loop.group),
                        smem + DQ_AT + group * DQ_BYTES, loop.tile * M, block.seq.seq_q,
                        i == 0 ? turn_of(p, block, loop.tile * M) : 0, part, thread);
    }
}

/* A warpgroup that computes, where both share the keys: it owns dV or dK. That of dV is ahead: its parts of dQ are of
 * the tile before, as dS of this one comes later. The barrier of that dS says, too, that S^T has been read. */
template <bool DV>
__device__ __forceinline__ void consume_shared(const fa_params &p, const key_block &block, const shared_layout &at,
                                               unsigned char *smem, int thread)
{
    float sums[(DV ? DIM_PAD_V : DIM_PAD) / 2] = {};
    float4 *s_s = reinterpret_cast<float4 *>(smem + S_AT) + thread; /* of every 128 */
    unsigned *turn_g = nullptr;                                     /* that the lane must end */
    query_loop loop = first_query_tile(p, block), before = loop;
    if (loop.left > 0)
        mbarrier_wait(at.keys_bar, 0);
#pragma unroll 1
    for (; loop.left > 0; before = loop, advance(loop, block)) {
        const unsigned q_at = at.base + q_of(loop), dout_at = at.base + dout_of(loop), ds_at = at.base + ds_of(loop);
        const unsigned full = at.full_bar + 8 * stage_of(loop), dout_full = at.empty_bar + dout_bar_of(loop);
        const unsigned empty = at.empty_bar + 8 * stage_of(loop), dout_empty = dout_full + 8 * DO_STAGES;
        float product[M / 2]; /* S^T or dP^T */
        unsigned pairs[M / 4];
        mbarrier_wait(DV ? full : dout_full, DV ? phase_of(loop) : dout_phase_of(loop));
        fence_operand(product);
        wgmma_fence();
        issue_scores<DV ? DIM16 : v_row::DIM16>(product, at.base + (DV ? 0 : V_AT), DV ? q_at : dout_at);
        wgmma_commit();
        wgmma_wait<0>();
        fence_operand(product);
        if constexpr (DV) {
            release(empty, thread);
            if (loop.count > 0)
                bar_sync(BAR_DS, CONSUMERS);
#pragma unroll
            for (int i = 0; i < M / 2; i += 4)
                s_s[i * 32] = make_float4(product[i], product[i + 1], product[i + 2], product[i + 3]);
            bar_arrive(BAR_S, CONSUMERS);
            mbarrier_wait(dout_full, dout_phase_of(loop));
        } else {
            bar_sync(BAR_S, CONSUMERS);
        }
        make_pairs<1, M / 8>(
            p, block, scores_of_head(p, block.seq, loop.head), thread / 32 * 16, loop.tile * M, 0,
            reinterpret_cast<const float *>(smem + numbers_of(loop)),
            [&](int, int t, int i) {
                if constexpr (DV)
                    return product[4 * t + i];
                const float4 four = s_s[t * 128];
                return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
            },
            [&](int, int t, int i) { return product[4 * t + i]; },
            [&](int, int t, int h, unsigned p_pair, unsigned ds_pair) { pairs[2 * t + h] = DV ? p_pair : ds_pair; });
        if constexpr (!DV) {
            release(dout_empty, thread);
            store_ds(ds_at, pairs, thread);
            fence_async_proxy();
            bar_arrive(BAR_DS, CONSUMERS);
            mbarrier_wait(full, phase_of(loop));
        }
        fence_operand(sums);
        wgmma_fence();
        issue_sums(sums, pairs, DV ? dout_at : q_at, loop.count > 0);
        wgmma_commit();
        end_turn(turn_g); /* of the tile before */
        wgmma_wait<0>();
        fence_operand(sums);
        release(DV ? dout_empty : empty, thread);
        if (!DV)
            bar_sync(BAR_OWN_DS, 128);
        if (!DV || loop.count > 0)
            add_parts(p, block, DV ? before : loop, at, smem, DV, thread, turn_g);
    }
    if (DV && loop.count > 0) {
        bar_sync(BAR_DS, CONSUMERS);
        end_turn(turn_g);
        add_parts(p, block, before, at, smem, DV, thread, turn_g);
    }
    end_turn(turn_g);
    tma_store_wait_read();
    if constexpr (SPLITS > 1) {
        bar_sync(BAR_S, CONSUMERS); /* not BAR_DS: one would be there twice before the other */
        put_sums(sums, smem, 0, DV ? DIM_PAD : 0, thread);
        store_shares(p, block, at.base);
        return;
    }
    store_sums<DV>(sums, p, block, block.key0, at.base + DQ_AT + DV * DQ_BYTES, thread);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, raw_smem);
    unsigned char *smem = raw_smem + (1024 - smem_address(raw_smem) % 1024) % 1024;
    const unsigned bars = smem_address(smem) + BARS_AT;
    const shared_layout at = {smem_address(smem), bars, bars + 8, bars + 8 + 8 * STAGES};
    const int group = uniform_by_shuffle(threadIdx.x / 128), thread = threadIdx.x % 128;
    if (group == 2 && elect_one()) {
        tma_prefetch_map(&p.k_map);
        tma_prefetch_map(&p.v_map);
        tma_prefetch_map(&p.q_map);
    }
    key_block block;
    if (!find_keys<CAUSAL_ALONE>(block, p))
        return;
    if (threadIdx.x == 0) {
        mbarrier_init(at.keys_bar, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(at.full_bar + 8 * stage, SHARED_KEYS ? 1 : LOADERS + 1);
            mbarrier_init(at.empty_bar + 8 * stage, CONSUMERS / 32);
        }
        for (int i = 0; SHARED_KEYS && i < 2 * DO_STAGES; ++i)
            mbarrier_init(at.empty_bar + 8 * (STAGES + i), i < DO_STAGES ? LOADERS : CONSUMERS / 32);
        mbarrier_init_fence();
    }
    __syncthreads();
    if (group == 2) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        produce(p, block, at, smem, thread);
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        if constexpr (!SHARED_KEYS)
            consume(p, block, at, smem, group, thread);
        else if (group == 0)
            consume_shared<false>(p, block, at, smem, thread);
        else
            consume_shared<true>(p, block, at, smem, thread);
    }
}
