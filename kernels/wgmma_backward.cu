/* wgmma_backward: the gradients of attention on Hopper's wgmma, for sm_90a.
 *
 * Idea: as mma_backward, by warpgroups. Two of them own 64 keys each and make S^T = K Q^T and dP^T = V dO^T in
 *   registers; P^T and dS^T are there the left operands of dV += P^T dO and dK += dS^T Q. dS goes through shared memory
 *   for dQ^T = K^T dS^T. Each makes half of it: 64 columns of dQ, or up to dim 64 half of the rows. A warp of
 *   the third adds them by bulk reductions, 16 columns each, to FP32 sums in the workspace, which lie as registers do.
 *   With --deterministic two warps do, every other tile each: they wait for the block's turn, while the next tile is
 *   computed.
 * Above dim 128 dK and dV of 64 keys may fill the registers. Up to dim 192, with a dim-v up to 128, n 128 goes by
 *   halves of a tile's queries from the exponentials on. With n 64 both share the keys: one makes S^T and owns dV, the
 *   other dP^T and dK. S^T goes through shared memory, and both make P^T of it. dQ is dealt in parts of 64 columns. The
 *   first is half a tile ahead, so that one's exponentials run under the other's products.
 *   Their dO and rows' numbers come by cp.async.
 * Loads: a third warpgroup brings Q, K, V and dO by TMA.
 * Blocks: where they are about equally long, and at dims 65 to 128, one a multiprocessor goes through them; loads of
 *   the next begin while dK and dV leave. At dims 65 to 128 the lane that issues copies draws their numbers, and leaves
 *   what a block is in shared memory for all other warps (DRAWS). Under a causal window of at most 128 keys it goes
 *   from keys to the next ones (WHOLE_ROWS), and has whole rows of dQ, without sums in the workspace.
 * Around it: fa_before and fa_after of mma/gradients.cuh.
 * Builds on: mma_backward, wgmma.
 * Splits: where blocks are few, a cluster of them shares a K/V head's keys. Each has a part of the query tiles, and at
 *   the end stores dK and dV of a part of the keys, which it sums over the shared memory of all.
 * Knobs: m 64, also 128 up to dim 64, 80 from dim 65 to 128 (K and V are read for more queries); stages, splits. Fixed:
 *   warps 12; n 128 up to dim 128, 64 above dim 192 or dim-v 128, either between them.
 * Limits: dim a multiple of 8 up to 256, dim-v up to dim; rows on 16 bytes; lengths, windows, chunks, softcap, sinks,
 *   ALiBi; for softcap m 64, above dim 128 n 64. */
#include "wgmma/backward_blocks.cuh"
#include "wgmma/backward_dq.cuh"
#include "wgmma/backward_load.cuh"
#include "wgmma/backward_store.cuh"
#include "wgmma/backward_wide.cuh"

constexpr int NOT_OF_HEADS = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP;
FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_KEYS, .blocks_per_sm = PERSISTENT,
               .cluster = SPLITS > 1 ? SPLITS : 0,
               .workspace_bytes_per_block = static_cast<fa_i64>(M / SPLITS) * WORKSPACE_BYTES_PER_ROW, .tma_q_rows = M,
               .tma_k_rows = N, .tma_v_rows = N, .tma_o_rows = SHARED_KEYS ? 0 : M, .tma_cols = 64,
               .nondeterministic = !DETERMINISTIC && !WHOLE_HEADS, .pack_heads = !WHOLE_HEADS, .serves_bf16 = 1,
               .serves = FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC | (WHOLE_HEADS ? 0 : NOT_OF_HEADS),
               .needs = FA_NEEDS_ALIGNED, .post_grid = WHOLE_ROWS ? 1024 : 0); /* mostly idle there */

/* Steps of dV that begin before dS is made, where registers are left. */
constexpr int EARLY_STEPS = M == 64 && !LATE_DOUT ? 4 : 0;

/* While products run the next tile's barrier is tested, and the tile is found. */
constexpr bool TEST_EARLY = M == 128 && !WHOLE_ROWS, NEXT_EARLY = TEST_EARLY || (ZIGZAG && !SHARED_KEYS);

__device__ __forceinline__ void advance_early(query_loop &next, const key_block &block)
{
    if constexpr (NEXT_EARLY) {
        advance(next, block);
        asm volatile("" : "+r"(next.head), "+r"(next.tile), "+r"(next.left)); /* not later */
    }
}

/* dO and delta, where they have barriers of their own. */
__device__ __forceinline__ void wait_for_dout(const shared_layout &at, const query_loop &loop)
{
    if constexpr (LATE_DOUT) {
        mbarrier_wait(at.empty_bar + dout_bar_of(loop), dout_phase_of(loop));
        wgmma_fence();
    }
}

/* The products of a query tile, all its queries at once: dP^T runs under the exponentials, dV while dS is made or
 * shared, dK while dQ leaves. dS has two buffers. LATE_DOUT: S^T begins without dO, dK when dV has ended. */
__device__ __forceinline__ void consume_tile(const fa_params &p, const key_block &block, consumer_state &w,
                                             const query_loop &loop, query_loop &next, const shared_layout &at,
                                             const head_scores &scores, unsigned char *smem)
{
    const unsigned q_at = at.base + q_of(loop), own_keys = w.group * 64 * BOX_ROW_BYTES;
    const unsigned numbers_at = at.base + numbers_of(loop);
    const int row0 = loop.tile * M;
    float dp[M / 2], lse2[M / 4], delta[M / 4];
    if (!TEST_EARLY || !w.landed)
        mbarrier_wait(at.full_bar + 8 * stage_of(loop), phase_of(loop));
    fence_operand(w.s);
    fence_operand(dp);
    wgmma_fence();
    issue_scores<DIM16>(w.s, at.base + own_keys, q_at, [&] {
#pragma unroll
        for (int i = 0; i < NUMBERS_AHEAD; ++i)
            read_numbers(lse2, numbers_at, i, w.thread);
    });
    wgmma_commit();
    advance_early(next, block);
    wait_for_dout(at, loop);
    issue_scores<v_row::DIM16>(dp, at.base + V_AT + own_keys, q_at + Q_BYTES, [] {});
    wgmma_commit();
    const key_range seen = keys_seen_by_all(p, block.seq, row0, min(row0 + M, block.seq.seq_q) - 1);
    const bool masked = seen.first > block.key0 || seen.end < block.key0 + N;
    wgmma_wait<1>();
    fence_operand(w.s);
    unsigned p_r[M / 4], ds_r[M / 4];
    const int key = w.group * 64 + w.thread / 32 * 16;
    if (HAS_SOFTCAP || masked) /* two ways would spill */
        weigh<true, 0>(w.s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0);
    else
        weigh<false, 0>(w.s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0);
#pragma unroll
    for (int i = NUMBERS_AHEAD; i < M / 16; ++i)
        read_numbers(delta, numbers_at + M * 4, i, w.thread);
#pragma unroll
    for (int i = 0; !HAS_SOFTCAP && i < M / 4; ++i)
        p_r[i] = pack_elements(w.s[2 * i], w.s[2 * i + 1]);
    if constexpr (EARLY_STEPS > 0) {
        fence_operand(w.dv);
        wgmma_fence();
        issue_sums<0, EARLY_STEPS>(w.dv, p_r, q_at + Q_BYTES, PERSISTENT || loop.count > 0);
        wgmma_commit();
    }
    wgmma_wait<(EARLY_STEPS > 0)>(); /* for dP^T */
    fence_operand(dp);
#pragma unroll
    for (int i = 0; i < M / 4; ++i)
        ds_r[i] = pack_elements(w.s[2 * i] * (dp[2 * i] - delta[i / 2 * 2]),
                                w.s[2 * i + 1] * (dp[2 * i + 1] - delta[i / 2 * 2 + 1]));
    put_ds(ds_r, loop, w, at.base);
    if constexpr (EARLY_STEPS < M / 16) {
        if (EARLY_STEPS == 0)
            fence_operand(w.dv);
        wgmma_fence();
        issue_sums<EARLY_STEPS, M / 16>(w.dv, p_r, q_at + Q_BYTES, PERSISTENT || loop.count > 0);
        wgmma_commit();
    }
    fence_async_proxy();
    bar_sync(BAR_DS, CONSUMERS);
    float dq[DQ_ROWS / 2];
    fence_operand(dq);
    fence_operand(w.dk);
    wgmma_fence();
    issue_transposed_dq(dq, at.base + ds_of(loop) + (BY_COLUMNS ? 0 : w.group * DQ_ROWS * BOX_ROW_BYTES),
                        at.base + (BY_COLUMNS ? w.group * K_BOX_BYTES : 0));
    wgmma_commit();
    if constexpr (LATE_DOUT) {
        wgmma_wait<1>(); /* for dV */
        fence_operand(w.dv);
        wgmma_fence();
    }
    issue_sums(w.dk, ds_r, q_at, PERSISTENT || loop.count > 0);
    wgmma_commit();
    wgmma_wait<1>(); /* for dQ */
    fence_operand(dq);
    fence_operand(w.dv);
    if (TEST_EARLY)
        w.landed = mbarrier_test_wait(at.full_bar + 8 * stage_of(next), phase_of(next));
    put_dq(dq, p, block, loop, w, smem);
    wgmma_wait<0>();
    fence_operand(w.dk);
    release(at.empty_bar + 8 * stage_of(loop), w.thread);
}

/* A warpgroup that computes, and owns all of its keys. */
__device__ __forceinline__ void consume(const fa_params &p, key_block &block, consumer_state &w, query_loop &loop,
                                        const shared_layout &at, unsigned char *smem, unsigned &block_at)
{
    const int group = w.group, thread = w.thread;
    if (DRAWS)
        mbarrier_wait(at.keys_bar, block_at & 1);
    else if (loop.left > 0) {
        mbarrier_wait(at.keys_bar, PERSISTENT ? block_at / KEYS_PHASE : 0);
        block_at ^= KEYS_PHASE;
    }
    w.warp = uniform_by_shuffle(thread / 32);
    head_scores scores = scores_of_head(p, block.seq, loop.head);
    asm volatile("" : "+f"(scores.scale_log2)); /* not computed again for each tile */
#pragma unroll 1
    while (loop.left > 0) {
        query_loop next = loop;
        if constexpr (WIDE)
            consume_wide_tile(p, block, w, loop, at, scores, smem);
        else
            consume_tile(p, block, w, loop, next, at, scores, smem);
        if (!NEXT_EARLY)
            advance(next, block);
        loop = next;
        if (CHANGES_SCORES && (ZIGZAG || loop.tile == block.begin)) /* the next head */
            scores = scores_of_head(p, block.seq, loop.head);
    }
    if constexpr (SPLITS > 1) {
        bar_sync(BAR_DS, CONSUMERS); /* all products of the block are over */
        put_sums(w.dk, smem, group * 64, 0, thread);
        put_sums(w.dv, smem, group * 64, DIM_PAD, thread);
        store_shares(p, block, at.base);
        return;
    }
    if (has_whole_rows(p) && block.begin * M != block.key0) /* the halo: dK and dV are another block's */
        return;
    if constexpr (DRAWS) { /* again, as registers were short */
        asm volatile("" : "+r"(block_at));
        query_loop unused;
        take_block(block, unused, p, at, block_at);
    } else if constexpr (PERSISTENT) {
        asm volatile("" : "+r"(block_at));
        find_block(block, p, block_at & ~KEYS_PHASE);
    }
    /* No other warp needs these rows of V, nor, PERSISTENT, of the next tile's dS. */
    if (WHOLE_HEADS)
        bar_sync(BAR_HEADS + group, CONSUMERS);
    const unsigned warp_s = PERSISTENT ? at.base + ds_of(loop) + group * Q_BOX_BYTES + w.warp * 16 * BOX_ROW_BYTES
                                       : at.base + V_AT + (group * 64 + w.warp * 16) * BOX_ROW_BYTES;
    const int step = PERSISTENT ? 0 : V_BYTES - K_BOX_BYTES;
    store_sums<false>(w.dk, p, block, block.key0 + group * 64, warp_s, step, thread);
    store_sums<true>(w.dv, p, block, block.key0 + group * 64, warp_s, step, thread);
    if (PERSISTENT)
        bar_sync(BAR_DS_USED + group, 128);
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
        issue_scores<DV ? DIM16 : v_row::DIM16>(product, at.base + (DV ? 0 : V_AT), DV ? q_at : dout_at, [] {});
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
    store_sums<DV>(sums, p, block, block.key0, at.base + DQ_AT + DV * DQ_BYTES + thread / 32 * (DQ_BYTES / 4),
                   16 * BOX_ROW_BYTES, thread);
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
        if (!SHARED_KEYS)
            tma_prefetch_map(&p.o_map);
    }
    key_block block;
    if (!PERSISTENT && !find_block(block, p, blockIdx.x))
        return;
    if (ZIGZAG && !DRAWS && p.heads == p.kv_heads)
        block.up = BOXES != 2;
    if (threadIdx.x == 0) {
        mbarrier_init(at.keys_bar, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(at.full_bar + 8 * stage, SHARED_KEYS ? 1 : 1 + (LATE_DOUT ? 1 : 2) * 32);
            mbarrier_init(at.empty_bar + 8 * stage, CONSUMERS / 32);
        }
        for (int i = 0; i < DO_BARS; ++i)
            mbarrier_init(at.empty_bar + 8 * (STAGES + i), i < DO_STAGES ? DO_LOADERS : CONSUMERS / 32);
        for (int i = 0; DRAWS && i < 4; ++i)
            mbarrier_init(at.base + FOUND_BARS_AT + 8 * i, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    if (group == 2) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        const auto load = [&](int warp) {
            for_each_block(p, block, at, [&](const key_block &block, query_loop &loop, unsigned &) {
                produce(p, block, loop, at, smem, warp, thread);
            });
        };
        if constexpr (SHARED_KEYS)
            produce_shared(p, block, at, smem, thread);
        else if (thread >= 128 - 32 * SENDERS)
            for_each_block(p, block, at, [&](const key_block &block, query_loop &loop, unsigned &) {
                send_dq(p, block, loop, at.base + DQ_AT, SENDERS > 1 && thread < 96);
            });
        else if (!PERSISTENT)
            load(uniform_by_shuffle(thread / 32));
        else if (thread >= 64)
            load(2);
        else if (thread >= 32)
            load(1);
        else if constexpr (DRAWS) {
            if (elect_one())
                draw_blocks(p, block, at, [&](const key_block &block, query_loop &loop) {
                    produce(p, block, loop, at, smem, 0, thread);
                });
        } else if (elect_one())
            load(0);
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        if constexpr (!SHARED_KEYS)
            for_each_block<KEYS_PHASE>(p, block, at, [&](key_block &block, query_loop &loop, unsigned &block_at) {
                consumer_state w = {};
                w.group = group, w.thread = thread;
                consume(p, block, w, loop, at, smem, block_at);
            });
        else if (group == 0)
            consume_shared<false>(p, block, at, smem, thread);
        else
            consume_shared<true>(p, block, at, smem, thread);
    }
}
