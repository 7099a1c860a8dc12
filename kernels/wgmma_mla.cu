/* wgmma_mla: absorbed decode of multi-head latent attention: V is the first 512 of the 576 columns of K.
 *
 * Idea: a block of 64 keys is read once and multiplied twice. All query heads are packed into tiles of 64 rows. O of 64
 *   rows, 64 x 512, is too large for one warpgroup: two hold 256 columns each. Key blocks alternate between them: the
 *   owner of a block computes S and P, and hands P to the other through shared memory. So one multiplies while the
 *   other computes its exponentials. One thread streams keys by TMA, from pages too. Keys are split over blocks; the
 *   last to arrive combines.
 * Softmax: a row's reference is raised to the exact maximum where that is more than 2^8 above it. Both warpgroups have
 *   the same references.
 * Builds on: wgmma_decode.   Knobs: splits.
 * Shared memory: Q [9 boxes][64][64], K [2][9 boxes][64][64], barriers, references, sums, a flag. P of a block lies
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

/* S = Q K^T of a block of keys, issued but not committed. */
__device__ __forceinline__ void issue_qk(float (&s_r)[S_REGS], unsigned q_s, unsigned keys_s)
{
    const unsigned q = descriptor_start(q_s), k = descriptor_start(keys_s);
#pragma unroll
    for (int step = 0; step < FA_DIM / 16; ++step) {
        const unsigned apart = (step / 4 * BOX_BYTES + step % 4 * 32) / 16;
        wgmma<FA_N>::ss(s_r, wgmma_descriptor(q + apart), wgmma_descriptor(k + apart), step > 0);
    }
}

/* O += P V with the warpgroup's columns of V; waits for it. */
__device__ __forceinline__ void multiply_pv(float (&o_r)[O_REGS], const unsigned (&p_r)[P_REGS], unsigned v_s)
{
    const unsigned v = uniform_by_shuffle(descriptor_start(v_s) + descriptor_leading(BOX_BYTES));
    fence_operand(o_r);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        wgmma<HALF_DIM>::rs_n(o_r, &p_r[4 * step], wgmma_descriptor(v + step * (16 * 128 / 16)), 1);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(o_r);
}

/* The warp has multiplied with its half of the buffer: it may be filled again. */
__device__ __forceinline__ void release(const shared_layout &at, int buffer, const consumer &c)
{
    __syncwarp();
    if (c.lane == 0)
        mbarrier_arrive(at.empty(buffer, c.me));
}

/* O and the sums follow new references. */
__device__ __forceinline__ void raise(float (&o_r)[O_REGS], softmax_rows &rows, const float (&ref)[2])
{
    if (!__any_sync(ALL_LANES, ref[0] != rows.ref[0] || ref[1] != rows.ref[1]))
        return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float scale = exp2_approx(rows.ref[h] - ref[h]);
        rows.ref[h] = ref[h];
        rows.sum[h] *= scale;
#pragma unroll
        for (int i = 0; i < O_REGS / 2; ++i)
            o_r[i / 2 * 4 + 2 * h + i % 2] *= scale;
    }
}

/* S becomes P, packed as the operand of the second product. key0: first key of the block. */
__device__ __forceinline__ void softmax(float (&s_r)[S_REGS], unsigned (&p_r)[P_REGS], float (&o_r)[O_REGS],
                                        softmax_rows &rows, int key0, bool masked, float scale_log2, int lane)
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
    raise(o_r, rows, ref);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < S_REGS / 2; ++i) {
            float &s = s_r[i / 2 * 4 + 2 * h + i % 2];
            s = exp2_approx(fmaf(s, scale_log2, -rows.ref[h]));
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

/* A block that this warpgroup owns: its number i in [0, end - first). */
__device__ __forceinline__ void own_block(const fa_params &p, const shared_layout &at, const block_work &work, int i,
                                          float (&o_r)[O_REGS], softmax_rows &rows, const consumer &c)
{
    const unsigned keys_s = uniform_by_shuffle(at.keys(c.me));
    const int key0 = (work.first + i) * FA_N;
    float s_r[S_REGS];
    unsigned p_r[P_REGS];
    for (int half = 0; half < 2; ++half)
        mbarrier_wait(at.full(c.me, half), i / 2 % 2);
    if (HAS_PAGES && key0 + FA_N > work.seq.seq_kv)
        clear_tail(keys_s, work.seq.seq_kv - key0, c);
    fence_operand(s_r);
    wgmma_fence();
    issue_qk(s_r, at.base_s, keys_s);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(s_r);
    softmax(s_r, p_r, o_r, rows, key0, key0 + FA_N > work.unmasked, p.scale * LOG2_E, c.lane);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        stmatrix_x4_at(place_of_p(at.p(c.me), step, c), reinterpret_cast<unsigned(&)[4]>(p_r[4 * step]));
    if (c.lane % 4 == 0)
        st_shared_pair_at(at.refs(c.me) + c.row * 4, rows.ref[0], rows.ref[1]);
    fence_async_proxy(); /* P before the keys that will lie in its place */
    bar_arrive(BAR_P + c.me, CONSUMER_THREADS);
    multiply_pv(o_r, p_r, keys_s + c.me * HALF_BOXES * BOX_BYTES);
    release(at, c.me, c);
}

/* A block of the other warpgroup. */
__device__ __forceinline__ void other_block(const shared_layout &at, int i, float (&o_r)[O_REGS], softmax_rows &rows,
                                            const consumer &c)
{
    const int other = 1 - c.me;
    unsigned p_r[P_REGS];
    float ref[2];
    bar_sync(BAR_P + other, CONSUMER_THREADS);
    ld_shared_pair_at(ref, at.refs(other) + c.row * 4);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        ldmatrix_x4_at(reinterpret_cast<unsigned(&)[4]>(p_r[4 * step]), place_of_p(at.p(other), step, c));
    raise(o_r, rows, ref);
    mbarrier_wait(at.full(other, c.me), i / 2 % 2); /* ended before P was there; for the order of memory */
    multiply_pv(o_r, p_r, uniform_by_shuffle(at.keys(other)) + c.me * HALF_BOXES * BOX_BYTES);
    release(at, other, c);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    const shared_layout at = {uniform_by_shuffle(smem_address(base_s))};
    const int warp = uniform_by_shuffle(threadIdx.x / 32), me = warp / 4 - 1;
    block_work work;
    if (!find_work(p, work))
        return;
    const bool producer = warp == 0 && elect_one();
    if (producer)
        init_barriers(at);
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
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        o_r[i] = 0.0f;
#pragma unroll 1
    for (int i = 0; i < work.end - work.first; ++i) {
        if (i % 2 == me)
            own_block(p, at, work, i, o_r, rows, c);
        else
            other_block(at, i, o_r, rows, c);
    }
    finish(p, at, work, o_r, rows, c);
}
