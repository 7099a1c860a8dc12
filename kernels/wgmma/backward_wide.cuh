/* The weights of a tile where each warpgroup of wgmma_backward has its keys, and such a tile of dims 129 to 192. */
#pragma once

#include "wgmma/backward_dq.cuh"

/* 16s of a part of a tile, and of log-sum-exps that are read at once. */
constexpr int PART_16S = M / (WIDE ? 32 : 16), NUMBERS_AHEAD = M == 128 ? 4 : PART_16S;

/* What a warpgroup that computes holds: s is S^T. landed: the tile has, as a test said that did not wait. */
struct consumer_state {
    float dk[DIM_PAD / 2], dv[DIM_PAD_V / 2], s[M / 2];
    int group, warp, thread;
    bool landed;
};

/* dS of a warpgroup's keys. WHOLE_HEADS has one buffer: the other warpgroup has used it. */
__device__ __forceinline__ void put_ds(const unsigned (&ds_r)[M / 4], const query_loop &loop, const consumer_state &w,
                                       unsigned base)
{
    if (WHOLE_HEADS && loop.count > loop.start)
        bar_sync(BAR_HEADS + w.group, CONSUMERS);
    store_ds(base + ds_of(loop) + w.group * Q_BOX_BYTES, ds_r, w.thread);
}

/* Where a warpgroup's part of dQ goes: to the warp that sends it, or to the block's own rows. */
template <int REGISTERS>
__device__ __forceinline__ void put_dq(float (&dq)[REGISTERS], const fa_params &p, const key_block &block,
                                       const query_loop &loop, const consumer_state &w, unsigned char *smem)
{
    unsigned char *warp_s = smem + DQ_AT + w.group * DQ_BYTES + w.warp * (DQ_BYTES / 4);
    const int row0 = loop.tile * M + (BY_COLUMNS ? 0 : w.group * DQ_ROWS);
    if (WHOLE_HEADS || has_whole_rows(p)) {
        if constexpr (WHOLE_HEADS) { /* from the second buffer of dS on; the first tile is whole at once */
            bar_arrive(BAR_HEADS + (w.group ^ 1), CONSUMERS);
            warp_s += (min(max(loop.tile, 1), 3) - 2) * DS_BYTES;
        }
        put_whole_dq(dq, p, block, warp_s, loop, row0, w.warp);
    } else {
        begin_part(loop.count == 0, w.group);
        put_transposed_dq(dq, warp_s, block.seq.seq_q - row0);
        end_part(w.group, loop.count);
    }
}

/* The lane's four of a tile's numbers, of 16 rows. */
__device__ __forceinline__ void read_numbers(float (&to)[M / 4], unsigned numbers_at, int sixteen, int thread)
{
    uint4 four;
    ld_shared_16_at(four, numbers_at + sixteen * 64 + thread % 4 * 16);
    to[4 * sixteen] = __uint_as_float(four.x), to[4 * sixteen + 1] = __uint_as_float(four.y);
    to[4 * sixteen + 2] = __uint_as_float(four.z), to[4 * sixteen + 3] = __uint_as_float(four.w);
}

/* P^T of S^T in its place: all keys of a warpgroup, queries of a part. lse2: of the lane's queries. delta is read under
 * the exponentials. With a softcap p_r takes P^T, and s its product with the softcap's slope. */
template <bool MASKED, int PART>
__device__ __forceinline__ void weigh(float (&s)[M / 2], unsigned (&p_r)[M / 4], float (&lse2)[M / 4],
                                      float (&delta)[M / 4], unsigned numbers_at, const fa_params &p,
                                      const key_block &block, const head_scores &scores, int key, int row0)
{
    constexpr bool BY_DIAGONAL = FA_CAUSAL && !HAS_CHUNK;
    const int lane = threadIdx.x % 32, first_key = block.key0 + key + lane / 4, first_row = row0 + lane % 4 * 2;
    const int diagonal = position_of(block.seq, first_row) - first_key;
    const int lowest = HAS_WINDOW && p.window_left >= 0 ? diagonal - min(p.window_left, 1 << 30) : -(1 << 30);
    [[maybe_unused]] float before = 0.0f, slope_before = 0.0f;
#pragma unroll
    for (int i = PART * PART_16S * 8; i < (PART + 1) * PART_16S * 8; ++i) {
        const int row = i / 4 * 8 + i % 2, further = i / 2 % 2 * 8, key_here = first_key + further;
        [[maybe_unused]] const key_range seen = keys_seen(p, block.seq, first_row + row);
        const float score = modified_score(p, block.seq, scores, s[i], first_row + row, key_here);
        const float weight = exp2_approx(fmaf(score, scores.scale_log2, -lse2[i / 4 * 2 + i % 2]));
        const bool hidden = BY_DIAGONAL ? further - row > diagonal || (HAS_WINDOW && further - row < lowest)
                                        : key_here < seen.first || key_here >= seen.end;
        const float slope = score_slope(scores, s[i]);
        s[i] = MASKED && hidden ? 0.0f : weight;
        if (HAS_SOFTCAP && i % 2 == 1)
            p_r[i / 2] = pack_elements(before, s[i]), s[i - 1] = before * slope_before, s[i] *= slope;
        before = s[i], slope_before = slope;
        if (i % 8 == 7 && i / 8 + NUMBERS_AHEAD < (PART + 1) * PART_16S)
            read_numbers(lse2, numbers_at, i / 8 + NUMBERS_AHEAD, lane);
        else if (i % 8 == 7)
            read_numbers(delta, numbers_at + M * 4, i / 8 + NUMBERS_AHEAD - PART_16S, lane);
    }
}

/* P^T of a part, masked where some row does not see some key, and packed. */
template <int PART>
__device__ __forceinline__ void weigh_part(float (&s)[M / 2], unsigned (&p_r)[M / 4], float (&lse2)[M / 4],
                                           float (&delta)[M / 4], unsigned numbers_at, const fa_params &p,
                                           const key_block &block, const head_scores &scores, int key, int row0,
                                           bool masked)
{
    if (masked)
        weigh<true, PART>(s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0);
    else
        weigh<false, PART>(s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0);
#pragma unroll
    for (int i = PART * M / 8; i < (PART + 1) * M / 8; ++i)
        p_r[i] = pack_elements(s[2 * i], s[2 * i + 1]);
}

/* A tile with three boxes of Q and K, where registers are short: the exponentials by halves of the tile, dP^T of the
 * second half and dV of the first under those of the second. dK takes dS from shared memory, where it has one buffer.
 * Each warpgroup makes its part of dQ and half of the rows of the third. */
__device__ __forceinline__ void consume_wide_tile(const fa_params &p, const key_block &block, consumer_state &w,
                                                  const query_loop &loop, const shared_layout &at,
                                                  const head_scores &scores, unsigned char *smem)
{
    const unsigned q_at = at.base + q_of(loop), dout_at = q_at + Q_BYTES, own_keys = w.group * 64 * BOX_ROW_BYTES;
    const unsigned numbers_at = at.base + numbers_of(loop), ds_at = at.base + DS_AT;
    const unsigned own_ds = ds_at + w.group * Q_BOX_BYTES;
    const int row0 = loop.tile * M, key = w.group * 64 + w.thread / 32 * 16;
    float s[M / 2], dp[M / 4], lse2[M / 4], delta[M / 4];
    unsigned p_r[M / 4], ds_r[M / 4];
    mbarrier_wait(at.full_bar + 8 * stage_of(loop), phase_of(loop));
    fence_operand(s);
    fence_operand(dp);
    wgmma_fence();
    issue_scores<DIM16>(s, at.base + own_keys, q_at, [&] {
        read_numbers(lse2, numbers_at, 0, w.thread);
        read_numbers(lse2, numbers_at, 1, w.thread);
    });
    wgmma_commit();
    issue_scores<v_row::DIM16>(dp, at.base + V_AT + own_keys, dout_at, [] {});
    wgmma_commit();
    const key_range seen = keys_seen_by_all(p, block.seq, row0, min(row0 + M, block.seq.seq_q) - 1);
    const bool masked = seen.first > block.key0 || seen.end < block.key0 + N;
    const auto make_ds = [&](int part) {
#pragma unroll
        for (int i = 0; i < M / 8; ++i) {
            const int to = part * M / 8 + i;
            ds_r[to] = pack_elements(s[2 * to] * (dp[2 * i] - delta[to / 2 * 2]),
                                     s[2 * to + 1] * (dp[2 * i + 1] - delta[to / 2 * 2 + 1]));
        }
    };
    wgmma_wait<1>(); /* for S^T */
    fence_operand(s);
    weigh_part<0>(s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0, masked);
    wgmma_wait<0>(); /* for dP^T */
    fence_operand(dp);
    make_ds(0);
    if (loop.count > 0)
        bar_sync(BAR_DS_USED + w.group, CONSUMERS);
    store_ds<0, M / 32>(own_ds, ds_r, w.thread);
    read_numbers(lse2, numbers_at, 2, w.thread);
    read_numbers(lse2, numbers_at, 3, w.thread);
    fence_operand(w.dv);
    fence_operand(dp);
    wgmma_fence();
    issue_sums<0, M / 32>(w.dv, p_r, dout_at, loop.count > 0);
    wgmma_commit();
    issue_scores<v_row::DIM16>(dp, at.base + V_AT + own_keys, dout_at + M / 2 * BOX_ROW_BYTES, [] {});
    wgmma_commit();
    weigh_part<1>(s, p_r, lse2, delta, numbers_at, p, block, scores, key, row0, masked);
    wgmma_wait<0>(); /* for dP^T */
    fence_operand(dp);
    make_ds(1);
    store_ds<M / 32, M / 16>(own_ds, ds_r, w.thread);
    wgmma_fence();
    issue_sums<M / 32, M / 16>(w.dv, p_r, dout_at, loop.count > 0);
    wgmma_commit();
    fence_async_proxy();
    bar_sync(BAR_DS, CONSUMERS);
    wgmma_wait<0>(); /* for dV */
    fence_operand(w.dv);
    float dq[M / 2], third[M / 4];
    fence_operand(dq);
    fence_operand(third);
    fence_operand(w.dk);
    wgmma_fence();
    issue_transposed_dq(dq, ds_at, at.base + w.group * K_BOX_BYTES);
    issue_transposed_dq(third, ds_at + w.group * (M / 2) * BOX_ROW_BYTES, at.base + 2 * K_BOX_BYTES);
    wgmma_commit();
    issue_dk(w.dk, own_ds, q_at, loop.count > 0);
    wgmma_commit();
    wgmma_wait<1>(); /* for dQ */
    fence_operand(dq);
    fence_operand(third);
    if (loop.left > 1)
        bar_arrive(BAR_DS_USED + (w.group ^ 1), CONSUMERS);
    begin_part(loop.count == 0, w.group);
    put_transposed_dq(dq, smem + DQ_AT + w.group * DQ_BYTES + w.warp * (DQ_BYTES / 4), block.seq.seq_q - row0);
    put_transposed_dq(third, smem + DQ_AT + (4 + w.group) * (DQ_BYTES / 2) + w.warp * (DQ_BYTES / 8),
                      block.seq.seq_q - row0 - w.group * (M / 2));
    end_part(w.group, loop.count);
    wgmma_wait<0>(); /* for dK */
    fence_operand(w.dk);
    release(at.empty_bar + 8 * stage_of(loop), w.thread);
}
