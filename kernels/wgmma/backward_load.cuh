/* What brings keys, queries and their numbers to shared memory for wgmma_backward. */
#pragma once

#include "wgmma/backward.cuh"

/* dO of a tile, swizzled as TMA does it, and the rows' numbers; what is not there is 0. */
__device__ __forceinline__ void load_dout(const fa_params &p, const key_block &block, const query_loop &loop,
                                          unsigned dout_at, unsigned char *rows_s, int thread)
{
    const sequence &seq = block.seq;
    const fa_i64 *of_dout = p.grad_stride[0];
    const int row = thread / 8, chunk = thread % 8, rows_left = seq.seq_q - loop.tile * M - row;
    const unsigned to = dout_at + row * BOX_ROW_BYTES + (chunk ^ row % 8) * 16;
    const fa_element *from_g = query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], loop.head) +
                               (loop.tile * M + row) * of_dout[2] + chunk * 8;
#pragma unroll
    for (int i = 0; i < M; i += LOADERS / 8, from_g += LOADERS / 8 * of_dout[2])
#pragma unroll
        for (int box = 0; box < BOXES_V; ++box)
            cp_async_16_at(to + i * BOX_ROW_BYTES + box * Q_BOX_BYTES, from_g + box * 64,
                           i < rows_left && box * 64 + chunk * 8 < FA_DIM_V ? 16 : 0);
    const gradient_rows rows = gradients_of(p, seq, loop.head, block.kv_head, loop.group);
    for (int i = thread; i < 2 * M; i += LOADERS) {
        const float *from_g = i < M ? rows.lse2_g : rows.delta_g;
        const int query = loop.tile * M + i % M;
        cp_async_4(rows_s + i * 4, from_g + (query < seq.seq_q ? query : 0), query < seq.seq_q ? 4 : 0);
    }
    cp_async_commit();
}

/* K and V of a block. */
__device__ __forceinline__ void load_keys(const fa_params &p, const key_block &block, const shared_layout &at,
                                          int first_key, int of_keys)
{
    mbarrier_arrive_expect(at.keys_bar, K_BYTES + V_BYTES);
    for (int box = 0; box < BOXES; ++box) {
        tma_load(at.base + box * K_BOX_BYTES, &p.k_map, at.keys_bar, box * 64, first_key, block.kv_head, of_keys);
        if (box < BOXES_V)
            tma_load(at.base + V_AT + box * K_BOX_BYTES, &p.v_map, at.keys_bar, box * 64, first_key, block.kv_head,
                     of_keys);
    }
}

/* With shared keys: the warpgroup that loads. */
__device__ __forceinline__ void produce_shared(const fa_params &p, const key_block &block, const shared_layout &at,
                                               unsigned char *smem, int thread)
{
    /* With lengths a map counts rows from the end of a sequence (fa_params.h). */
    const sequence &seq = block.seq;
    const int first_key = block.key0 + (HAS_VARLEN ? p.seq_kv - seq.seq_kv : 0);
    const int of_keys = HAS_VARLEN ? seq.first_kv + seq.seq_kv : seq.batch;
    const int first_query = HAS_VARLEN ? p.seq_q - seq.seq_q : 0;
    const int of_queries = HAS_VARLEN ? seq.first_q + seq.seq_q : seq.batch;
    query_loop loop = first_query_tile(p, block);
    const bool leads = uniform_by_shuffle(thread / 32) == 0;
    if (leads && loop.left > 0 && elect_one())
        load_keys(p, block, at, first_key, of_keys);
    for (; loop.left > 0; advance(loop, block)) {
        const unsigned full = at.full_bar + 8 * stage_of(loop), to = at.base + q_of(loop);
        mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
        if (leads && elect_one()) {
            mbarrier_arrive_expect(full, Q_BYTES);
            for (int box = 0; box < BOXES; ++box)
                tma_load(to + box * Q_BOX_BYTES, &p.q_map, full, box * 64, first_query + loop.tile * M, loop.head,
                         of_queries);
        }
        mbarrier_wait(at.empty_bar + dout_bar_of(loop) + 8 * DO_STAGES, dout_phase_of(loop) ^ 1);
        load_dout(p, block, loop, at.base + dout_of(loop), smem + numbers_of(loop), thread);
        cp_async_wait<0>();
        fence_async_proxy();
        mbarrier_arrive(at.empty_bar + dout_bar_of(loop));
    }
}

/* Where a row's log-sum-exp or delta is: a lane reads those of its two rows of 8 and of the next 8 at once. */
__device__ __forceinline__ constexpr int number_place(int row)
{
    return row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2 + row % 2;
}

/* The rows' numbers where one warp brings them all, of SENDERS. */
__device__ __forceinline__ void bring_numbers(const fa_params &p, const key_block &block, query_loop &loop,
                                              const shared_layout &at, unsigned char *smem, int lane)
{
    for (; loop.left > 0; advance(loop, block)) {
        const gradient_rows rows = gradients_of(p, block.seq, loop.head, block.kv_head, loop.group);
        const int rows_left = smaller(block.seq.seq_q - loop.tile * M, M) - lane;
        mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
        float *to_s = reinterpret_cast<float *>(smem + numbers_of(loop)) + number_place(lane);
#pragma unroll
        for (int i = 0; i < M; i += 32)
            if (i + lane < M) {
                const int row = loop.tile * M + lane + i;
                to_s[i] = i < rows_left ? rows.lse2_g[row] : 0.0f;
                to_s[M + i] = i < rows_left ? rows.delta_g[row] : 0.0f;
            }
        mbarrier_arrive(at.full_bar + 8 * stage_of(loop));
        mbarrier_arrive(LATE_DOUT ? at.empty_bar + dout_bar_of(loop) : at.full_bar + 8 * stage_of(loop));
    }
}

/* The same where each warpgroup has its keys: one warp issues all copies, two bring the rows' numbers. */
__device__ __forceinline__ void produce(const fa_params &p, const key_block &block, query_loop &loop,
                                        const shared_layout &at, unsigned char *smem, int warp, int thread)
{
    const sequence &seq = block.seq;
    const int of_keys = HAS_VARLEN ? seq.first_kv + seq.seq_kv : seq.batch;
    const int of_queries = HAS_VARLEN ? seq.first_q + seq.seq_q : seq.batch;
    if (loop.left == 0)
        return;
    if (warp == 0) {
        if (!PERSISTENT && !elect_one())
            return;
        const int first_key = block.key0 + (HAS_VARLEN ? p.seq_kv - seq.seq_kv : 0);
        const int first_query = HAS_VARLEN ? p.seq_q - seq.seq_q : 0;
        if (!PERSISTENT)
            load_keys(p, block, at, first_key, of_keys);
        bool first = true;
        for (; loop.left > 0; advance(loop, block)) {
            const unsigned full = at.full_bar + 8 * stage_of(loop), to = at.base + q_of(loop);
            const unsigned dout_full = LATE_DOUT ? at.empty_bar + dout_bar_of(loop) : full;
            mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
            mbarrier_arrive_expect(full, Q_BYTES + (LATE_DOUT ? 0 : DO_BYTES));
            for (int box = 0; box < BOXES; ++box)
                tma_load(to + box * Q_BOX_BYTES, &p.q_map, full, box * 64, first_query + loop.tile * M, loop.head,
                         of_queries);
            if (LATE_DOUT)
                mbarrier_arrive_expect(dout_full, DO_BYTES);
            for (int box = 0; box < BOXES_V; ++box)
                tma_load(to + Q_BYTES + box * Q_BOX_BYTES, &p.o_map, dout_full, box * 64, first_query + loop.tile * M,
                         loop.head, of_queries);
            if (PERSISTENT && (DRAWS ? first : loop.count == loop.start)) {
                first = false;
                const int last = (DRAWS ? loop.count : loop.start) - 1; /* of the block before: its keys are used */
                if (last >= 0)
                    mbarrier_wait(at.empty_bar + 8 * (last % STAGES), last / STAGES & 1);
                load_keys(p, block, at, first_key, of_keys);
            }
        }
    } else if (SENDERS > 1) {
        if (warp == 1)
            bring_numbers(p, block, loop, at, smem, thread % 32);
    } else if (warp < 3) {
        const int lane = thread % 32;
        const fa_i64 of_head = gradients_of(p, seq, loop.head, block.kv_head, loop.group).first;
        const int first = static_cast<int>(of_head) - loop.head * p.seq_q; /* the row that head 0 would begin with */
        for (; loop.left > 0; advance(loop, block)) {
            const gradient_rows rows = gradients_of(p, seq, loop.head, block.kv_head, loop.group);
            const float *from_g = (warp == 1 ? rows.lse2_g : rows.delta_g) + loop.tile * M + lane;
            if constexpr (PERSISTENT) /* with fewer registers */
                from_g = static_cast<const float *>(p.workspace) + rows.all * (DIM16 + warp - 1) +
                         (first + loop.head * p.seq_q + loop.tile * M + lane);
            const int rows_left = smaller(seq.seq_q - loop.tile * M, M) - lane;
            float numbers[ceil_div(M, 32)];
#pragma unroll
            for (int i = 0; i < M; i += 32)
                numbers[i / 32] = i < rows_left ? from_g[i] : 0.0f;
            mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
            float *to_s = reinterpret_cast<float *>(smem + numbers_of(loop)) + (warp - 1) * M + number_place(lane);
#pragma unroll
            for (int i = 0; i < M; i += 32)
                if (i + lane < M)
                    to_s[i] = numbers[i / 32];
            const bool late = LATE_DOUT && warp == 2;
            mbarrier_arrive(late ? at.empty_bar + dout_bar_of(loop) : at.full_bar + 8 * stage_of(loop));
        }
    }
}
