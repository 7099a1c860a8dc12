/* wgmma_mla: absorbed decode of multi-head latent attention: V is the first 512 of the 576 columns of K.
 *
 * Idea: a block of 64 keys is read once and multiplied twice. All query heads are packed into tiles of 64 rows. O of 64
 *   rows, 64 x 512, is too large for one warpgroup: two hold 256 columns each. Key blocks alternate between them: the
 *   owner of a block computes S and P, and hands P to the other through shared memory. So one multiplies while the
 *   other computes its exponentials. A warpgroup begins its next S or waits for the other's P, what is there first. One
 *   thread streams keys by TMA, from pages too. Keys are split over blocks; the last to arrive combines.
 * Softmax: a row's reference is raised to the exact maximum where that is more than 2^8 above it. Both warpgroups have
 *   the same references.
 * Builds on: wgmma_decode.   Knobs: splits.
 * Shared memory: Q [9 boxes][64][64], K [2][9 boxes][64][64], barriers, references, sums, flags. P of a block lies
 *   over the last 64 columns of its keys, which P V does not read.
 * Limits: dim 576, V in K with dim 512; pages of a multiple of 64 rows. */
#include "wgmma/mla_store.cuh"

static_assert(FA_DIM == 576 && FA_DIM_V == 512 && FA_V_IN_K, "wgmma_mla serves --dim 576 --dim-v 512 --v-in-k only");
static_assert(FA_MAXREG == 0, "wgmma_mla: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS == 8, "warps: 8, two warpgroups with half the columns of O each");
static_assert(FA_M == 64, "m must be 64, the rows of a product");
static_assert(FA_N == 64, "n must be 64: two blocks of keys fill shared memory");
static_assert(FA_STAGES == 2, "stages: 2, a block of keys for each warpgroup");
static_assert(FA_SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not in it");
static_assert(FA_SPLITS <= 64, "splits: up to 64");
static_assert(!FA_ACC_FP16, "wgmma accumulates in fp32 only");

/* Q and O are read and written 16 bytes at a time, without maps: with maps those off 16 bytes are refused before the
 * launch. */
FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_TILES,
               .workspace_bytes_per_block = FA_SPLITS > 1 ? COUNTER_BYTES + STATS_BYTES + PART_BYTES : 0,
               .tma_q_rows = 64, .tma_k_rows = FA_N, .tma_o_rows = 64, .tma_cols = 64, .pack_heads = 1,
               .writes_lse = FA_LSE, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_DIM_V, .page_rows = FA_N);

/* Sets the rows of a block of keys from `first` on to zero, the rest of a page: V must be finite where P is 0. */
__device__ __forceinline__ void clear_tail(unsigned keys_s, int first, const consumer &c)
{
    const uint4 zero = make_uint4(0, 0, 0, 0);
    for (int item = c.thread; item < (FA_N - first) * BOXES * 8; item += 128) {
        const int chunk = item % 8, box = item / 8 % BOXES, row = first + item / 8 / BOXES;
        st_shared_16_at(keys_s + box * BOX_BYTES + row * 128 + chunk * 16, zero);
    }
    fence_async_proxy();
    bar_sync(BAR_OWN + c.me, 128);
}

/* The products of Q and keys over the columns of COUNT boxes. q, k: descriptor words of the first. */
template <int COUNT>
__device__ __forceinline__ void issue_qk(float (&s_r)[S_REGS], unsigned q, unsigned k, bool accumulate)
{
#pragma unroll
    for (int step = 0; step < 4 * COUNT; ++step) {
        const unsigned apart = (step / 4 * BOX_BYTES + step % 4 * 32) / 16;
        wgmma<FA_N>::ss(s_r, wgmma_descriptor(q + apart), wgmma_descriptor(k + apart), step > 0 || accumulate);
    }
}

/* S = Q K^T of block i, which this warpgroup owns; begun, not waited for. The half that is free first comes first. */
__device__ __forceinline__ void start_scores(const shared_layout &at, const block_work &work, int i,
                                             float (&s_r)[S_REGS], const consumer &c)
{
    constexpr unsigned HALF = HALF_BOXES * BOX_BYTES / 16;
    const unsigned keys_s = at.keys(c.me), q = descriptor_start(at.base_s);
    const unsigned k = uniform_by_shuffle(descriptor_start(keys_s)), mine = c.me * HALF, others = HALF - mine;
    const int tail = work.seq.seq_kv - (work.first + i) * FA_N;
    mbarrier_wait(at.full(c.me, c.me), i / 2 % 2);
    if (HAS_PAGES && tail < FA_N) {
        mbarrier_wait(at.full(c.me, 1 - c.me), i / 2 % 2);
        clear_tail(keys_s, tail, c);
    }
    fence_operand(s_r);
    wgmma_fence();
    issue_qk<HALF_BOXES>(s_r, q + mine, k + mine, false);
    mbarrier_wait(at.full(c.me, 1 - c.me), i / 2 % 2);
    wgmma_fence();
    issue_qk<HALF_BOXES>(s_r, q + others, k + others, true);
    issue_qk<1>(s_r, q + 2 * HALF, k + 2 * HALF, true);
    wgmma_commit();
}

/* Descriptor word of the warpgroup's columns of V in a buffer. */
__device__ __forceinline__ unsigned v_descriptor(const shared_layout &at, int buffer, const consumer &c)
{
    return uniform_by_shuffle(descriptor_start(at.keys(buffer) + c.me * HALF_BOXES * BOX_BYTES) +
                              descriptor_leading(BOX_BYTES));
}

constexpr int V_STEP = 16 * 128 / 16; /* 16 keys, in a descriptor */

/* O += P V of a block that this warpgroup owns; begun, not waited for. */
__device__ __forceinline__ void start_own_output(const shared_layout &at, float (&o_r)[O_REGS],
                                                 const unsigned (&p_r)[P_REGS], const consumer &c)
{
    const unsigned v = v_descriptor(at, c.me, c);
    fence_operand(o_r);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        wgmma<HALF_DIM>::rs_n(o_r, &p_r[4 * step], wgmma_descriptor(v + step * V_STEP), 1);
    wgmma_commit();
}

/* O += P V of a block of the other warpgroup, P from shared memory; begun, not waited for. */
__device__ __forceinline__ void start_other_output(const shared_layout &at, float (&o_r)[O_REGS], const consumer &c)
{
    const unsigned v = v_descriptor(at, 1 - c.me, c), a = uniform_by_shuffle(descriptor_start(at.p(1 - c.me)));
    fence_operand(o_r);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        wgmma<HALF_DIM>::ss_n(o_r, wgmma_descriptor(a + step * 2), wgmma_descriptor(v + step * V_STEP), 1);
    wgmma_commit();
}

/* Waits for all products. The warpgroup's half of the buffer may then be filled again. */
__device__ __forceinline__ void finish_output(const shared_layout &at, int buffer, float (&o_r)[O_REGS],
                                              const consumer &c)
{
    wgmma_wait<0>();
    fence_operand(o_r);
    if (c.lane == 0)
        mbarrier_arrive(at.empty(buffer, c.me));
}

/* O follows new references. scale: 2^(old - new). Rare, so it waits for products under way: ptxas would wait before it
 * at any rate, also where O stays. */
__device__ __forceinline__ void rescale_o(float (&o_r)[O_REGS], const float (&scale)[2])
{
    if (!__any_sync(ALL_LANES, scale[0] != 1.0f || scale[1] != 1.0f))
        return;
    wgmma_wait<0>();
    fence_operand(o_r);
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        o_r[i] *= scale[i / 2 % 2];
}

/* The references become ref, and the sums follow. */
__device__ __forceinline__ void raise(softmax_rows &rows, const float (&ref)[2], float (&scale)[2])
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        scale[h] = exp2_approx(rows.ref[h] - ref[h]);
        rows.sum[h] *= scale[h];
        rows.ref[h] = ref[h];
    }
}

/* S becomes P, packed as the operand of the second product. key0: first key of the block. scale: for rescale_o. */
__device__ __forceinline__ void softmax(float (&s_r)[S_REGS], unsigned (&p_r)[P_REGS], softmax_rows &rows,
                                        float (&scale)[2], int key0, bool masked, float scale_log2, int lane)
{
    float ref[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int limit = rows.end[h] - key0 - 2 * (lane % 4);
        float row_max = -INF;
#pragma unroll
        for (int i = 0; i < S_REGS / 2; ++i) {
            float &s = s_r[i / 2 * 4 + 2 * h + i % 2];
            if (masked && i / 2 * 8 + i % 2 >= limit)
                s = -INF;
            row_max = fmaxf(row_max, s);
        }
        row_max = quad_max(row_max) * scale_log2;
        ref[h] = row_max > rows.ref[h] + RAISE_LOG2 ? row_max : rows.ref[h];
    }
    raise(rows, ref, scale);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < S_REGS / 2; ++i) {
            float &s = s_r[i / 2 * 4 + 2 * h + i % 2];
            s = exp2_approx(fmaf(s, scale_log2, -ref[h]));
            sum += s;
        }
        rows.sum[h] += sum;
    }
#pragma unroll
    for (int i = 0; i < P_REGS; ++i)
        p_r[i] = pack_elements(s_r[2 * i], s_r[2 * i + 1]);
}

/* Where a lane has its part of step `step` of P in shared memory. */
__device__ __forceinline__ unsigned place_of_p(unsigned p_s, int step, const consumer &c)
{
    const int row = c.thread / 32 * 16 + c.lane % 16;
    return p_s + row * 128 + ((step * 2 + c.lane / 16) ^ row % 8) * 16;
}

/* S of a block becomes P, for this warpgroup and the other. Its keys' last columns have been read: P takes their place.
 */
__device__ __forceinline__ void finish_scores(const fa_params &p, const shared_layout &at, const block_work &work,
                                              int i, float (&s_r)[S_REGS], unsigned (&p_r)[P_REGS], softmax_rows &rows,
                                              float (&scale)[2], const consumer &c)
{
    const int key0 = (work.first + i) * FA_N;
    fence_operand(s_r);
    softmax(s_r, p_r, rows, scale, key0, key0 + FA_N > work.unmasked, p.scale * LOG2_E, c.lane);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        stmatrix_x4_at(place_of_p(at.p(c.me), step, c), reinterpret_cast<unsigned(&)[4]>(p_r[4 * step]));
    if (c.lane % 4 == 0)
        st_shared_pair_at(at.refs(c.me) + c.row * 4, rows.ref[0], rows.ref[1]);
    fence_async_proxy(); /* P before the keys that will lie in its place */
    __syncwarp();
    if (c.lane == 0)
        mbarrier_arrive(at.p_full(c.me));
}

/* Waits for P of block i from the other warpgroup. O and the sums follow its references. */
__device__ __forceinline__ void wait_for_p(const shared_layout &at, int i, float (&o_r)[O_REGS], softmax_rows &rows,
                                           const consumer &c)
{
    const int other = 1 - c.me;
    float ref[2], scale[2];
    mbarrier_wait(at.p_full(other), i / 2 % 2);
    mbarrier_wait(at.full(other, c.me), i / 2 % 2); /* its owner has waited already: every reader of TMA's bytes does */
    ld_shared_pair_at(ref, at.refs(other) + c.row * 4);
    raise(rows, ref, scale);
    rescale_o(o_r, scale);
}

/* Which is there first: the keys of block i + 1, or P of block i? All warps of the warpgroup get one answer. */
__device__ __forceinline__ bool keys_come_first(const shared_layout &at, int i, const consumer &c)
{
    const unsigned order_s = at.base_s + ORDER_OFFSET + c.me * 8;
    if (c.thread == 0) {
        const unsigned parity = (i + 1) / 2 % 2;
        bool keys = false;
        for (int tries = 0; tries < FA_SPIN_LIMIT && !keys; ++tries) {
            keys =
                mbarrier_test_wait(at.full(c.me, 1 - c.me), parity) && mbarrier_test_wait(at.full(c.me, c.me), parity);
            if (!keys && mbarrier_test_wait(at.p_full(1 - c.me), i / 2 % 2))
                break;
        }
        st_shared_at(order_s, keys ? 1.0f : 0.0f);
    }
    bar_sync(BAR_OWN + c.me, 128);
    return ld_shared_at(order_s) != 0.0f;
}

/* Block i of the other warpgroup, none where i is -1, and block i + 1 of this one. KEYS_FIRST: S of the second is begun
 * while P of the first is waited for, and the softmax runs under P V. Else P V comes first, so that its keys are freed:
 * where memory is slow the next ones are waited for. */
template <bool KEYS_FIRST>
__device__ __forceinline__ void two_blocks(const fa_params &p, const shared_layout &at, const block_work &work, int i,
                                           float (&o_r)[O_REGS], softmax_rows &rows, const consumer &c)
{
    const int other = 1 - c.me;
    float s_r[S_REGS], scale[2];
    unsigned p_r[P_REGS];
    if (KEYS_FIRST) {
        start_scores(at, work, i + 1, s_r, c);
        wait_for_p(at, i, o_r, rows, c);
        start_other_output(at, o_r, c);
        wgmma_wait<1>();
    } else {
        if (i >= 0) {
            wait_for_p(at, i, o_r, rows, c);
            start_other_output(at, o_r, c);
            finish_output(at, other, o_r, c);
        }
        start_scores(at, work, i + 1, s_r, c);
        wgmma_wait<0>();
    }
    finish_scores(p, at, work, i + 1, s_r, p_r, rows, scale, c);
    if (KEYS_FIRST)
        finish_output(at, other, o_r, c);
    rescale_o(o_r, scale);
    start_own_output(at, o_r, p_r, c);
    finish_output(at, c.me, o_r, c);
}

/* Attention of the tile's rows to the block's keys, of the warpgroup's columns. Even blocks are warpgroup 0's. */
__device__ __forceinline__ void attend(const fa_params &p, const shared_layout &at, const block_work &work,
                                       float (&o_r)[O_REGS], softmax_rows &rows, const consumer &c)
{
    const int count = work.end - work.first;
    clear(o_r);
    int i = c.me - 1;
#pragma unroll 1
    for (; i + 1 < count; i += 2) {
        if (i >= 0 && keys_come_first(at, i, c))
            two_blocks<true>(p, at, work, i, o_r, rows, c);
        else
            two_blocks<false>(p, at, work, i, o_r, rows, c);
    }
    if (i >= 0 && i < count) {
        wait_for_p(at, i, o_r, rows, c);
        start_other_output(at, o_r, c);
        finish_output(at, 1 - c.me, o_r, c);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    const shared_layout at = {uniform_by_shuffle(smem_address(base_s))};
    const int warp = uniform_by_shuffle(threadIdx.x / 32), me = warp / 4 - 1;
    block_work &work_s = *reinterpret_cast<block_work *>(base_s + WORK_OFFSET);
    static_assert(sizeof work_s <= SMEM_BYTES - WORK_OFFSET, "the block's work fits its place");
    block_work work;
    if (!find_work(p, work))
        return;
    const bool producer = warp == 0 && elect_one();
    if (producer) {
        init_barriers(at);
        work_s = work;
    }
    if (me >= 0)
        load_q(p, work, at.base_s, threadIdx.x - 128);
    __syncthreads();
    if (me < 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (producer)
            produce(p, at, work);
        return;
    }
    setmaxnreg_inc<CONSUMER_REGISTERS>();
    const int thread = threadIdx.x % 128, lane = thread % 32;
    const consumer c = {me, thread, lane, thread / 32 * 16 + lane / 4};
    float o_r[O_REGS];
    softmax_rows rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}, {0, 0}};
#pragma unroll
    for (int h = 0; h < 2; ++h)
        rows.end[h] = keys_seen(p, work.seq, find_packed_row(work.tile, work.tile.row0 + c.row + 8 * h).query).end;
    attend(p, at, work_s, o_r, rows, c);
    finish(p, at, work_s, o_r, rows, c);
}
