/* wgmma_backward: the gradients of attention on Hopper's wgmma, for sm_90a.
 *
 * Idea: as mma_backward, by warpgroups. Two of them own 64 keys each and make S^T = K Q^T and dP^T = V dO^T in
 *   registers; P^T and dS^T are there the left operands of dV += P^T dO and dK += dS^T Q. dS goes through shared memory
 *   for dQ = dS K, of which each makes a half: 64 rows, or 64 columns where dim is above 64. Bulk reductions add a
 *   half's rows to the FP32 sums in the workspace while the next tile is computed. With --deterministic they wait for
 *   the block's turn, and the next block for them.
 * Loads: a third warpgroup brings Q, K and V by TMA, and dO and the rows' numbers by cp.async: no map describes dO.
 * Around it: fa_before and fa_after of mma/gradients.cuh.
 * Builds on: mma_backward, wgmma.   Knobs: m = 128, 64 above dim 64; n = 128; warps = 12; stages (of Q and dO).
 * Limits: dim = dim-v, a multiple of 8 up to 128; lengths, windows, chunks, softcap, sinks, ALiBi. */
#include "mma/gradients.cuh"
#include "shared/hopper.cuh"

constexpr int M = FA_M, N = FA_N, STAGES = FA_STAGES;
constexpr int BOXES = ceil_div(FA_DIM, 64), DIM_PAD = BOXES * 64; /* boxes of 64 columns, zero past dim */
constexpr bool HALVES_ARE_COLUMNS = BOXES == 2;                   /* of dQ */
static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "wgmma_backward: computes gradients, for --op backward");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 128, "wgmma_backward serves --dim up to 128 only");
static_assert(M == (HALVES_ARE_COLUMNS ? 64 : 128) && N == 128, "m must be 128, above dim 64 it must be 64; n 128");
static_assert(FA_WARPS == 12, "wgmma_backward: warps must be 12: two warpgroups that compute, one that loads");
static_assert(STAGES == 1 || STAGES == 2, "wgmma_backward: stages must be 1 or 2");
static_assert(FA_SPLITS == 1 && FA_MAXREG == 0 && !FA_ACC_FP16, "wgmma_backward: splits 1, maxreg 0, acc fp32");

constexpr int BOX_ROW_BYTES = 128, K_BOX_BYTES = N * BOX_ROW_BYTES, Q_BOX_BYTES = M * BOX_ROW_BYTES;
constexpr int K_BYTES = BOXES * K_BOX_BYTES, Q_BYTES = BOXES * Q_BOX_BYTES;
constexpr int STAGE_BYTES = 2 * Q_BYTES;  /* Q, then dO */
constexpr int DS_BYTES = 2 * Q_BOX_BYTES; /* rows of M queries: a box of 64 keys for each warpgroup */
constexpr int DQ_ROW_BYTES = 64 * 4 + 16, DQ_BYTES = 64 * DQ_ROW_BYTES; /* a half; 16 bytes keep banks apart */
constexpr int V_AT = K_BYTES, STAGES_AT = V_AT + K_BYTES, DS_AT = STAGES_AT + STAGES * STAGE_BYTES;
constexpr int DQ_AT = DS_AT + 2 * DS_BYTES, ROWS_AT = DQ_AT + 2 * DQ_BYTES, BARS_AT = ROWS_AT + STAGES * M * 8;
constexpr int SMEM_BYTES = 1024 + BARS_AT + 8 * (1 + 2 * STAGES);
constexpr int LOADERS = 128, CONSUMERS = 256;
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
/* A second way for tiles without a mask would spill here. */
constexpr bool ALWAYS_MASKED = FA_CAUSAL && FA_DIM <= 64;

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_KEYS,
               .workspace_bytes_per_block = static_cast<fa_i64>(M) * WORKSPACE_BYTES_PER_ROW, .tma_q_rows = M,
               .tma_k_rows = N, .tma_v_rows = N, .tma_cols = 64, .nondeterministic = !DETERMINISTIC, .pack_heads = 1,
               .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_BACKWARD | FA_FEATURE_DETERMINISTIC);

/* Named barriers: all that compute have written dS; a warpgroup's half of dQ may be written, and is written. */
enum { BAR_DS = 1, BAR_DQ = 2 };

/* Addresses in shared memory. full: a stage has landed; empty: it has been used. */
struct shared_layout {
    unsigned base, keys_bar, full_bar, empty_bar;
};

__device__ __forceinline__ unsigned stage_at(const shared_layout &at, int stage)
{
    return at.base + STAGES_AT + stage * STAGE_BYTES;
}

/* The query tiles of a block, heads outermost; count: those that are over. */
struct query_loop {
    int head, tile, left, count;
};

/* Of the ring. */
__device__ __forceinline__ int stage_of(const query_loop &loop) { return loop.count % STAGES; }
__device__ __forceinline__ unsigned phase_of(const query_loop &loop) { return loop.count / STAGES & 1; }

__device__ __forceinline__ query_loop first_query_tile(const fa_params &p, const key_block &block)
{
    const int group = p.heads / p.kv_heads;
    return {block.kv_head * group, block.begin, (block.end - block.begin) * group, 0};
}

__device__ __forceinline__ void advance(query_loop &loop, const key_block &block)
{
    loop.left--;
    if (++loop.tile == block.end)
        loop.tile = block.begin, loop.head++;
    loop.count++;
}

/* dO of a tile, swizzled as TMA does it, and the rows' numbers; what is not there is 0. */
__device__ __forceinline__ void load_dout(const fa_params &p, const key_block &block, const query_loop &loop,
                                          unsigned dout_at, unsigned char *rows_s, int thread)
{
    constexpr int CHUNKS = DIM_PAD / 8;
    const sequence &seq = block.seq;
    const fa_i64 *of_dout = p.grad_stride[0];
    const fa_element *dout_g = query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], loop.head);
    for (int i = thread; i < M * CHUNKS; i += LOADERS) {
        const int row = i / CHUNKS, chunk = i % CHUNKS, query = loop.tile * M + row;
        const bool exists = query < seq.seq_q && (DIM_PAD == FA_DIM || chunk * 8 < FA_DIM);
        cp_async_16_at(dout_at + chunk / 8 * Q_BOX_BYTES + row * BOX_ROW_BYTES + (chunk % 8 ^ row % 8) * 16,
                       exists ? dout_g + query * of_dout[2] + chunk * 8 : dout_g, exists ? 16 : 0);
    }
    const gradient_rows rows = gradients_of(p, seq, loop.head);
    for (int i = thread; i < 2 * M; i += LOADERS) {
        const float *from_g = i < M ? rows.lse2_g : rows.delta_g;
        const int query = loop.tile * M + i % M;
        cp_async_4(rows_s + i * 4, from_g + (query < seq.seq_q ? query : 0), query < seq.seq_q ? 4 : 0);
    }
    cp_async_commit();
}

/* The warpgroup that loads. */
__device__ __forceinline__ void produce(const fa_params &p, const key_block &block, const shared_layout &at,
                                        unsigned char *smem, int thread)
{
    /* With lengths a map counts rows from the end of a sequence (fa_params.h). */
    const sequence &seq = block.seq;
    const int first_key = block.key0 + (HAS_VARLEN ? p.seq_kv - seq.seq_kv : 0);
    const int of_keys = HAS_VARLEN ? seq.first_kv + seq.seq_kv : seq.batch;
    const int first_query = HAS_VARLEN ? p.seq_q - seq.seq_q : 0;
    const int of_queries = HAS_VARLEN ? seq.first_q + seq.seq_q : seq.batch;
    query_loop loop = first_query_tile(p, block);
    if (thread == 0 && loop.left > 0) {
        mbarrier_arrive_expect(at.keys_bar, 2 * K_BYTES);
        for (int box = 0; box < BOXES; ++box) {
            tma_load(at.base + box * K_BOX_BYTES, &p.k_map, at.keys_bar, box * 64, first_key, block.kv_head, of_keys);
            tma_load(at.base + V_AT + box * K_BOX_BYTES, &p.v_map, at.keys_bar, box * 64, first_key, block.kv_head,
                     of_keys);
        }
    }
    for (; loop.left > 0; advance(loop, block)) {
        const unsigned full = at.full_bar + 8 * stage_of(loop), to = stage_at(at, stage_of(loop));
        mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
        if (thread == 0) {
            mbarrier_arrive_expect(full, Q_BYTES);
            for (int box = 0; box < BOXES; ++box)
                tma_load(to + box * Q_BOX_BYTES, &p.q_map, full, box * 64, first_query + loop.tile * M, loop.head,
                         of_queries);
        }
        load_dout(p, block, loop, to + Q_BYTES, smem + ROWS_AT + stage_of(loop) * M * 8, thread);
        cp_async_wait<0>();
        fence_async_proxy();
        mbarrier_arrive(full);
    }
}

/* s = keys times queries: transposed scores, issued and committed. keys: of the warpgroup's 64 rows. */
__device__ __forceinline__ void issue_scores(float (&s)[M / 2], unsigned keys_at, unsigned queries_at)
{
#pragma unroll
    for (int step = 0; step < DIM16 / 16; ++step)
        wgmma<M>::ss(s, wgmma_descriptor(descriptor_start(keys_at + step / 4 * K_BOX_BYTES + step % 4 * 32)),
                     wgmma_descriptor(descriptor_start(queries_at + step / 4 * Q_BOX_BYTES + step % 4 * 32)), step > 0);
}

/* sums += pairs times rows: P^T dO or dS^T Q; the pairs are in registers. */
__device__ __forceinline__ void issue_sums(float (&sums)[DIM_PAD / 2], const unsigned (&pairs)[M / 4], unsigned rows_at,
                                           int accumulate)
{
#pragma unroll
    for (int step = 0; step < M / 16; ++step)
        wgmma<DIM_PAD>::rs_n(
            sums, &pairs[4 * step],
            wgmma_descriptor(descriptor_start(rows_at + step * 16 * BOX_ROW_BYTES) + descriptor_leading(Q_BOX_BYTES)),
            step > 0 ? 1 : accumulate);
}

/* The warpgroup's half of dQ = dS K: 64 rows of all columns, or all rows of 64 columns. */
__device__ __forceinline__ void issue_dq(float (&dq)[32], unsigned ds_at, unsigned k_at, int group)
{
    const unsigned rows_at = ds_at + (HALVES_ARE_COLUMNS ? 0 : group * 64 * BOX_ROW_BYTES);
    const unsigned columns_at = k_at + (HALVES_ARE_COLUMNS ? group * K_BOX_BYTES : 0);
#pragma unroll
    for (int step = 0; step < N / 16; ++step)
        wgmma<64>::ss_n(dq, wgmma_descriptor(descriptor_start(rows_at + step / 4 * Q_BOX_BYTES + step % 4 * 32)),
                        wgmma_descriptor(descriptor_start(columns_at + step * 16 * BOX_ROW_BYTES)), step > 0);
}

/* dS^T of the warpgroup's 64 keys to its box of dS: rows are queries. */
__device__ __forceinline__ void store_ds(unsigned box_at, const unsigned (&pairs)[M / 4], int thread)
{
    const int lane = thread % 32, chunk = thread / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < M / 16; ++i) {
        const int query = i * 16 + lane / 16 * 8 + lane % 8;
        stmatrix_x4_trans_at(box_at + query * BOX_ROW_BYTES + (chunk ^ lane % 8) * 16,
                             reinterpret_cast<const unsigned(&)[4]>(pairs[4 * i]));
    }
}

/* Adds the half of dQ to the sums: through shared memory, a row to each of 64 threads. turn_g: counts the halves. */
__device__ __forceinline__ void add_dq(const float (&dq)[32], const gradient_rows &rows, unsigned char *dq_s, int row0,
                                       int seq_q, unsigned turn, int group, int thread)
{
    unsigned *turn_g = rows.turn_g + row0;
    const int lane = thread % 32, row = thread / 32 * 16 + lane / 4, first_column = HALVES_ARE_COLUMNS ? group * 64 : 0;
    const int query = row0 + (HALVES_ARE_COLUMNS ? 0 : group * 64) + thread;
    if (thread < 64)
        tma_store_wait_read(); /* of the tile before */
    bar_sync(BAR_DQ + group, 128);
#pragma unroll
    for (int i = 0; i < 32; i += 2)
        *reinterpret_cast<float2 *>(dq_s + (row + i / 2 % 2 * 8) * DQ_ROW_BYTES + (i / 4 * 8 + lane % 4 * 2) * 4) =
            make_float2(dq[i], dq[i + 1]);
    fence_async_proxy();
    if (DETERMINISTIC && thread == 0)
        wait_for_turn(turn_g, 2 * turn);
    bar_sync(BAR_DQ + group, 128);
    if (thread < 64) {
        if (query < seq_q && first_column < DIM16)
            bulk_add_floats(rows.dq_g + query * static_cast<fa_i64>(DIM16) + first_column,
                            smem_address(dq_s + thread * DQ_ROW_BYTES), smaller(DIM16 - first_column, 64) * 4);
        tma_store_commit();
    }
    if constexpr (DETERMINISTIC) {
        if (thread < 64)
            bulk_wait_done();
        __threadfence();
        bar_sync(BAR_DQ + group, 128);
        if (thread == 0)
            add_release(turn_g, 1);
    }
}

/* dK or dV of the warpgroup's keys, `factor` times the sums. */
__device__ __forceinline__ void store_sums(const float (&sums)[DIM_PAD / 2], float factor, fa_element *head_g,
                                           fa_i64 stride, int first_key, int keys, int thread)
{
    const int lane = thread % 32;
#pragma unroll
    for (int i = 0; i < DIM_PAD / 2; i += 2) {
        const int key = first_key + thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        if (key < keys && i / 4 * 8 < FA_DIM)
            store_pair(head_g + key * stride + i / 4 * 8 + lane % 4 * 2, sums[i] * factor, sums[i + 1] * factor);
    }
}

/* What a warpgroup that computes holds. */
struct consumer_state {
    float dk[DIM_PAD / 2], dv[DIM_PAD / 2];
    int group, thread;
};

/* P^T and dS^T of a tile, as left operands. */
__device__ __forceinline__ void tile_pairs(unsigned (&p_r)[M / 4], unsigned (&ds_r)[M / 4], const fa_params &p,
                                           const key_block &block, const consumer_state &w, const query_loop &loop,
                                           const shared_layout &at, const unsigned char *smem)
{
    const unsigned q_at = stage_at(at, stage_of(loop)), keys_at = at.base + w.group * 64 * BOX_ROW_BYTES;
    const head_scores scores = scores_of_head(p, block.seq, loop.head);
    float s[M / 2], dp[M / 2];
    fence_operand(s);
    fence_operand(dp);
    wgmma_fence();
    issue_scores(s, keys_at, q_at);
    issue_scores(dp, keys_at + V_AT, q_at + Q_BYTES);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(s);
    fence_operand(dp);
    make_pairs<1, M / 8, ALWAYS_MASKED>(
        p, block, scores, w.group * 64 + w.thread / 32 * 16, loop.tile * M, 0,
        reinterpret_cast<const float *>(smem + ROWS_AT + stage_of(loop) * M * 8),
        [&](int, int t, int i) { return s[4 * t + i]; }, [&](int, int t, int i) { return dp[4 * t + i]; },
        [&](int, int t, int h, unsigned p_pair, unsigned ds_pair) {
            p_r[2 * t + h] = p_pair;
            ds_r[2 * t + h] = ds_pair;
        });
}

/* The five products of a query tile. dS has two buffers. */
__device__ __forceinline__ void consume_tile(const fa_params &p, const key_block &block, consumer_state &w,
                                             const query_loop &loop, const shared_layout &at, unsigned char *smem)
{
    const unsigned q_at = stage_at(at, stage_of(loop)), ds_at = at.base + DS_AT + loop.count % 2 * DS_BYTES;
    unsigned p_r[M / 4], ds_r[M / 4];
    float dq[32];
    mbarrier_wait(at.full_bar + 8 * stage_of(loop), phase_of(loop));
    tile_pairs(p_r, ds_r, p, block, w, loop, at, smem);
    store_ds(ds_at + w.group * Q_BOX_BYTES, ds_r, w.thread);
    fence_async_proxy();
    fence_operand(w.dv);
    fence_operand(w.dk);
    fence_operand(dq);
    wgmma_fence();
    issue_sums(w.dv, p_r, q_at + Q_BYTES, loop.count > 0);
    issue_sums(w.dk, ds_r, q_at, loop.count > 0);
    wgmma_commit();
    bar_sync(BAR_DS, CONSUMERS);
    issue_dq(dq, ds_at, at.base, w.group);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(w.dv);
    fence_operand(w.dk);
    fence_operand(dq);
    __syncwarp();
    if (w.thread % 32 == 0)
        mbarrier_arrive(at.empty_bar + 8 * stage_of(loop));
    add_dq(dq, gradients_of(p, block.seq, loop.head), smem + DQ_AT + w.group * DQ_BYTES, loop.tile * M, block.seq.seq_q,
           turn_of(p, block, loop.tile * M), w.group, w.thread);
}

/* A warpgroup that computes. */
__device__ __forceinline__ void consume(const fa_params &p, const key_block &block, const shared_layout &at,
                                        unsigned char *smem, int group, int thread)
{
    const fa_i64 *of_dk = p.grad_stride[2], *of_dv = p.grad_stride[3];
    const sequence &seq = block.seq;
    consumer_state w;
    w.group = group, w.thread = thread;
#pragma unroll
    for (int i = 0; i < DIM_PAD / 2; ++i)
        w.dk[i] = w.dv[i] = 0.0f;
    query_loop loop = first_query_tile(p, block);
    if (loop.left > 0)
        mbarrier_wait(at.keys_bar, 0);
#pragma unroll 1
    for (; loop.left > 0; advance(loop, block))
        consume_tile(p, block, w, loop, at, smem);
    if (thread < 64)
        tma_store_wait_read();
    const int first_key = block.key0 + group * 64;
    store_sums(w.dk, p.scale, key_rows(p.dk, seq, of_dk[0], of_dk[1], of_dk[2], block.kv_head), of_dk[2], first_key,
               seq.seq_kv, thread);
    store_sums(w.dv, 1.0f, key_rows(p.dv, seq, of_dv[0], of_dv[1], of_dv[2], block.kv_head), of_dv[2], first_key,
               seq.seq_kv, thread);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, raw_smem);
    unsigned char *smem = raw_smem + (1024 - smem_address(raw_smem) % 1024) % 1024;
    const unsigned bars = smem_address(smem) + BARS_AT;
    const shared_layout at = {smem_address(smem), bars, bars + 8, bars + 8 + 8 * STAGES};
    const int group = uniform_by_shuffle(threadIdx.x / 128), thread = threadIdx.x % 128;
    key_block block;
    if (!find_keys(block, p))
        return;
    if (threadIdx.x == 0) {
        mbarrier_init(at.keys_bar, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(at.full_bar + 8 * stage, LOADERS + 1);
            mbarrier_init(at.empty_bar + 8 * stage, CONSUMERS / 32);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    if (group == 2) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        produce(p, block, at, smem, thread);
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        consume(p, block, at, smem, group, thread);
    }
}
