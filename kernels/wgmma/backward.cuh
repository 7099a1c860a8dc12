/* What wgmma_backward has beside the flow of its products: its tiles, the layout of shared memory, the warpgroup that
 * loads, and the products themselves. */
#pragma once

#define DQ_BOX 64
#include "mma/gradients.cuh"
#include "shared/hopper.cuh"

constexpr int M = FA_M, N = FA_N, STAGES = FA_STAGES, SPLITS = FA_SPLITS; /* splits: blocks of a cluster */
constexpr int BOXES = ceil_div(FA_DIM, 64), DIM_PAD = BOXES * 64;         /* boxes of 64 columns, zero past dim */
constexpr int BOXES_V = ceil_div(FA_DIM_V, 64), DIM_PAD_V = BOXES_V * 64;
constexpr bool SHARED_KEYS = BOXES > 2; /* by the warpgroups: each owns dK or dV of them */
constexpr bool BY_COLUMNS = BOXES > 1;  /* a part of dQ: 64 columns, or 64 rows */
constexpr int DQ_PARTS = BY_COLUMNS ? BOXES : 2;
constexpr unsigned TURN_ENDS = BY_COLUMNS ? 2 : 1; /* by the warps that have the same rows */
static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "wgmma_backward: computes gradients, for --op backward");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= FA_DIM,
              "dim-v must be a multiple of 8 from 16 to dim");
static_assert(M == (BY_COLUMNS ? 64 : 128), "m must be 128, above dim 64 it must be 64");
static_assert(N == (SHARED_KEYS ? 64 : 128), "n must be 128, above dim 128 it must be 64");
static_assert(FA_WARPS == 12, "wgmma_backward: warps must be 12: two warpgroups that compute, one that loads");
static_assert(STAGES == 1 || STAGES == 2, "wgmma_backward: stages must be 1 or 2");
static_assert(SPLITS == 1 || SPLITS == 2 || SPLITS == 4 || SPLITS == 8, "wgmma_backward: splits must be 1, 2, 4 or 8");
static_assert(FA_MAXREG == 0 && !FA_ACC_FP16, "wgmma_backward: maxreg 0, acc fp32");

constexpr int BOX_ROW_BYTES = 128, K_BOX_BYTES = N * BOX_ROW_BYTES, Q_BOX_BYTES = M * BOX_ROW_BYTES;
constexpr int K_BYTES = BOXES * K_BOX_BYTES, V_BYTES = BOXES_V * K_BOX_BYTES;
constexpr int Q_BYTES = BOXES * Q_BOX_BYTES, DO_BYTES = BOXES_V * Q_BOX_BYTES;
/* Q and dO share a stage and its barriers; with shared keys each has a ring, as they are used at different times. */
constexpr int DO_STAGES = SHARED_KEYS && BOXES + BOXES_V > 6 ? 1 : STAGES;
constexpr int Q_STEP = Q_BYTES + (SHARED_KEYS ? 0 : DO_BYTES), DO_STEP = SHARED_KEYS ? DO_BYTES : Q_STEP;
constexpr int DS_BYTES = N / 64 * Q_BOX_BYTES; /* rows of M queries: a box for each 64 keys */
constexpr int DQ_BYTES = 64 * 64 * 4;          /* a part */
constexpr int V_AT = K_BYTES, Q_AT = V_AT + V_BYTES, DO_AT = Q_AT + (SHARED_KEYS ? STAGES : 1) * Q_BYTES;
constexpr int DS_AT = Q_AT + STAGES * Q_BYTES + DO_STAGES * DO_BYTES, DQ_AT = DS_AT + 2 * DS_BYTES;
constexpr int S_AT = DQ_AT + 2 * DQ_BYTES, ROWS_AT = S_AT + (SHARED_KEYS ? M * N * 4 : 0);
constexpr int BARS_AT = ROWS_AT + DO_STAGES * M * 8;
constexpr int SMEM_BYTES = 1024 + BARS_AT + 8 * (1 + 2 * STAGES + (SHARED_KEYS ? 2 * DO_STAGES : 0));
constexpr int SUM_COLUMNS = DIM_PAD + DIM_PAD_V; /* of dK, then of dV, in FP32 from the base on */
static_assert(SPLITS == 1 || N * SUM_COLUMNS * 4 <= ROWS_AT, "wgmma_backward: a block's dK and dV must fit");
constexpr int LOADERS = 128, CONSUMERS = 256;
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
constexpr bool CAUSAL_ALONE = FA_CAUSAL && !HAS_FIRST_KEY && !HAS_VARLEN;
/* A second way for tiles without a mask would spill here, or spill more. */
constexpr bool ALWAYS_MASKED = FA_DIM <= 128 && (CHANGES_SCORES || (FA_DIM <= 64 && (FA_CAUSAL || HAS_FIRST_KEY)));

/* Named barriers: dS is written; S^T is; dS is, by the warpgroup itself. */
enum { BAR_DS = 1, BAR_S = 2, BAR_OWN_DS = 3 };

/* Addresses in shared memory. full: a stage has landed; empty: it has been used. */
struct shared_layout {
    unsigned base, keys_bar, full_bar, empty_bar;
};

/* The query tiles of a block, its share of those of its keys, heads outermost; count: those that are over. */
struct query_loop {
    int head, tile, left, count;
    unsigned group; /* query heads of a K/V head */
};

__device__ __forceinline__ query_loop first_query_tile(const fa_params &p, const key_block &block)
{
    const int group = p.heads / p.kv_heads;
    if constexpr (SPLITS > 1) {
        const int tiles = block.end - block.begin, share = blockIdx.x % SPLITS;
        const int first = tiles * group * share / SPLITS, end = tiles * group * (share + 1) / SPLITS;
        const int heads_over = tiles > 0 ? first / tiles : 0;
        return {block.kv_head * group + heads_over, block.begin + first - heads_over * tiles, end - first, 0,
                static_cast<unsigned>(group)};
    }
    return {block.kv_head * group, block.begin, (block.end - block.begin) * group, 0, static_cast<unsigned>(group)};
}

__device__ __forceinline__ void advance(query_loop &loop, const key_block &block)
{
    loop.left--;
    if (++loop.tile == block.end)
        loop.tile = block.begin, loop.head++;
    loop.count++;
}

/* Of the rings of Q and dO. */
__device__ __forceinline__ int stage_of(const query_loop &loop) { return loop.count % STAGES; }
__device__ __forceinline__ unsigned phase_of(const query_loop &loop) { return loop.count / STAGES & 1; }
__device__ __forceinline__ int dout_stage_of(const query_loop &loop) { return loop.count % DO_STAGES; }
__device__ __forceinline__ unsigned dout_phase_of(const query_loop &loop) { return loop.count / DO_STAGES & 1; }

/* From empty_bar on: a stage of dO has landed; 8 DO_STAGES on: it has been used. */
__device__ __forceinline__ int dout_bar_of(const query_loop &loop) { return 8 * (STAGES + dout_stage_of(loop)); }

/* Where a tile's Q, dO, dS and numbers are: log-sum-exp, then delta. */
__device__ __forceinline__ unsigned q_of(const query_loop &loop) { return Q_AT + stage_of(loop) * Q_STEP; }
__device__ __forceinline__ unsigned dout_of(const query_loop &loop) { return DO_AT + dout_stage_of(loop) * DO_STEP; }
__device__ __forceinline__ unsigned ds_of(const query_loop &loop) { return DS_AT + loop.count % 2 * DS_BYTES; }
__device__ __forceinline__ int numbers_of(const query_loop &loop) { return ROWS_AT + dout_stage_of(loop) * M * 8; }

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
    const bool leads = uniform_by_shuffle(thread / 32) == 0;
    if (leads && loop.left > 0 && elect_one()) {
        mbarrier_arrive_expect(at.keys_bar, K_BYTES + V_BYTES);
        for (int box = 0; box < BOXES; ++box) {
            tma_load(at.base + box * K_BOX_BYTES, &p.k_map, at.keys_bar, box * 64, first_key, block.kv_head, of_keys);
            if (box < BOXES_V)
                tma_load(at.base + V_AT + box * K_BOX_BYTES, &p.v_map, at.keys_bar, box * 64, first_key, block.kv_head,
                         of_keys);
        }
    }
    for (; loop.left > 0; advance(loop, block)) {
        const unsigned full = at.full_bar + 8 * stage_of(loop), to = at.base + q_of(loop);
        mbarrier_wait(at.empty_bar + 8 * stage_of(loop), phase_of(loop) ^ 1);
        if (leads && elect_one()) {
            mbarrier_arrive_expect(full, Q_BYTES);
            for (int box = 0; box < BOXES; ++box)
                tma_load(to + box * Q_BOX_BYTES, &p.q_map, full, box * 64, first_query + loop.tile * M, loop.head,
                         of_queries);
        }
        if (SHARED_KEYS)
            mbarrier_wait(at.empty_bar + dout_bar_of(loop) + 8 * DO_STAGES, dout_phase_of(loop) ^ 1);
        load_dout(p, block, loop, SHARED_KEYS ? at.base + dout_of(loop) : to + Q_BYTES, smem + numbers_of(loop),
                  thread);
        cp_async_wait<0>();
        fence_async_proxy();
        mbarrier_arrive(SHARED_KEYS ? at.empty_bar + dout_bar_of(loop) : full);
    }
}

/* s = keys times queries: transposed scores, of 64 rows of keys. */
template <int COLUMNS>
__device__ __forceinline__ void issue_scores(float (&s)[M / 2], unsigned keys_at, unsigned queries_at)
{
    const unsigned keys = descriptor_start(keys_at), queries = descriptor_start(queries_at);
#pragma unroll
    for (int step = 0; step < COLUMNS / 16; ++step)
        wgmma<M>::ss(s, wgmma_descriptor(keys + descriptor_start(step / 4 * K_BOX_BYTES + step % 4 * 32)),
                     wgmma_descriptor(queries + descriptor_start(step / 4 * Q_BOX_BYTES + step % 4 * 32)), step > 0);
}

/* The warp has used a stage. */
__device__ __forceinline__ void release(unsigned empty_bar, int thread)
{
    __syncwarp();
    if (thread % 32 == 0)
        mbarrier_arrive(empty_bar);
}

/* sums += pairs times rows: P^T dO or dS^T Q; the pairs are in registers. */
template <int REGISTERS, int PAIRS>
__device__ __forceinline__ void issue_sums(float (&sums)[REGISTERS], const unsigned (&pairs)[PAIRS], unsigned rows_at,
                                           int accumulate)
{
    /* In a cluster an address has the block's number above its place, where the descriptor says `leading`. */
    const unsigned place = SPLITS > 1 ? rows_at & 0x3ffff : rows_at;
    const unsigned rows = descriptor_start(place) + descriptor_leading(Q_BOX_BYTES);
#pragma unroll
    for (int step = 0; step < PAIRS / 4; ++step)
        wgmma<2 * REGISTERS>::rs_n(sums, &pairs[4 * step],
                                   wgmma_descriptor(rows + descriptor_start(step * 16 * BOX_ROW_BYTES)),
                                   step > 0 ? 1 : accumulate);
}

/* A part of dQ = dS K: 64 rows of all columns, or all rows of 64 columns. */
__device__ __forceinline__ void issue_dq(float (&dq)[32], unsigned ds_at, unsigned k_at, int part)
{
    const unsigned rows = descriptor_start(ds_at + (BY_COLUMNS ? 0 : part * 64 * BOX_ROW_BYTES));
    const unsigned columns = descriptor_start(k_at + (BY_COLUMNS ? part * K_BOX_BYTES : 0));
#pragma unroll
    for (int step = 0; step < N / 16; ++step)
        wgmma<64>::ss_n(dq, wgmma_descriptor(rows + descriptor_start(step / 4 * Q_BOX_BYTES + step % 4 * 32)),
                        wgmma_descriptor(columns + descriptor_start(step * 16 * BOX_ROW_BYTES)), step > 0);
}

/* dS^T of the warpgroup's 64 keys to its box of dS: rows are queries. */
template <int PAIRS>
__device__ __forceinline__ void store_ds(unsigned box_at, const unsigned (&pairs)[PAIRS], int thread)
{
    const int lane = thread % 32, chunk = thread / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < PAIRS / 4; ++i) {
        const int query = i * 16 + lane / 16 * 8 + lane % 8;
        stmatrix_x4_trans_at(box_at + query * BOX_ROW_BYTES + (chunk ^ lane % 8) * 16,
                             reinterpret_cast<const unsigned(&)[4]>(pairs[4 * i]));
    }
}

/* Ends the turn that add_dq began, if any, once its sums are in memory: by now they mostly are. */
__device__ __forceinline__ void end_turn(unsigned *&turn_g)
{
    if constexpr (DETERMINISTIC) {
        if (turn_g != nullptr) {
            bulk_wait_done();
            add_release(turn_g, 1);
            turn_g = nullptr;
        }
        __syncwarp();
    }
}

/* Adds the part of dQ to the sums: each warp its 16 rows, through shared memory. With --deterministic it waits for so
 * many turns of tiles of keys at these rows; the lane that does gets the turn that it must end. */
__device__ __forceinline__ unsigned *add_dq(const float (&dq)[32], const gradient_rows &rows, unsigned char *dq_s,
                                            int row0, int seq_q, unsigned turns, int part, int thread)
{
    const int lane = thread % 32, column0 = BY_COLUMNS ? part * 64 : 0;
    const int columns = DIM16 % 64 == 0 ? 64 : smaller(DIM16 - column0, 64);
    const int first_row = row0 + (BY_COLUMNS ? 0 : part * 64) + thread / 32 * 16;
    float *warp_s = reinterpret_cast<float *>(dq_s) + thread / 32 * 16 * 64;
    const bool elected = elect_one();
    if (elected)
        tma_store_wait_read(); /* of the part before */
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        const int row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8;
        if (column < columns)
            *reinterpret_cast<float2 *>(warp_s + row * columns + dq_place(row, column, columns) + lane % 4 * 2) =
                make_float2(dq[i], dq[i + 1]);
    }
    fence_async_proxy();
    __syncwarp();
    unsigned *turn_g = nullptr;
    if (elected) {
        const int count = smaller(seq_q - first_row, 16);
        if (DETERMINISTIC && count > 0) {
            turn_g = rows.turn_g + first_row;
            if (turns > 0)
                wait_for_turn(turn_g, TURN_ENDS * turns);
        }
        if (count > 0)
            bulk_add_floats(rows.dq_g + first_row * static_cast<fa_i64>(DIM16) + column0 +
                                dq_moved(rows, first_row, column0),
                            smem_address(warp_s), count * columns * 4);
        tma_store_commit();
    }
    return turn_g;
}

/* dV, or dK: `scale` times the sums. A warp stores its 16 rows as whole lines, by way of its share of dq_at. */
template <bool DV, int REGISTERS>
__device__ __forceinline__ void store_sums(const float (&sums)[REGISTERS], const fa_params &p, const key_block &block,
                                           int first_key, unsigned dq_at, int thread)
{
    const fa_i64 *strides = p.grad_stride[DV ? 3 : 2];
    const int lane = thread % 32, warp_row = thread / 32 * 16, columns = (DV ? FA_DIM_V : FA_DIM) - lane % 8 * 8;
    const int keys = block.seq.seq_kv - first_key - warp_row;
    fa_element *rows_g = key_rows(DV ? p.dv : p.dk, block.seq, strides[0], strides[1], strides[2], block.kv_head) +
                         (first_key + warp_row) * strides[2] + lane % 8 * 8;
    const float factor = DV ? 1.0f : p.scale;
    __syncwarp(); /* what was there has been read */
#pragma unroll
    for (int box = 0; box < REGISTERS / 32; ++box) {
        const unsigned box_at = dq_at + (warp_row * 2 + box % 2 * 16) * BOX_ROW_BYTES;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float *from = sums + box * 32 + i * 8;
            const unsigned four[4] = {
                pack_elements(from[0] * factor, from[1] * factor), pack_elements(from[2] * factor, from[3] * factor),
                pack_elements(from[4] * factor, from[5] * factor), pack_elements(from[6] * factor, from[7] * factor)};
            stmatrix_x4_at(box_at + lane % 16 * BOX_ROW_BYTES + (i * 2 + lane / 16 ^ lane % 8) * 16, four);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = i * 4 + lane / 8;
            uint4 chunk;
            ld_shared_16_at(chunk, box_at + row * BOX_ROW_BYTES + (lane % 8 ^ row % 8) * 16);
            if (row < keys && box * 64 < columns)
                st_global_16(rows_g + row * strides[2] + box * 64, chunk);
        }
    }
}

/* Where a sum of dK or dV waits for the other blocks: four neighbouring keys fall in different banks. */
__device__ __forceinline__ int place_of_sum(int key, int column)
{
    return (key * SUM_COLUMNS + (column ^ key % 4 * 8)) * 4;
}

/* A warpgroup's dK or dV of 64 keys to the block's sums. */
template <int REGISTERS>
__device__ __forceinline__ void put_sums(const float (&sums)[REGISTERS], unsigned char *smem, int key0, int column0,
                                         int thread)
{
    const int key = key0 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < REGISTERS; i += 2)
        *reinterpret_cast<float2 *>(smem + place_of_sum(key + i / 2 % 2 * 8, column0 + i / 4 * 8) + thread % 4 * 8) =
            make_float2(sums[i], sums[i + 1]);
}

/* Waits for all threads of the cluster that have not ended; what they did before is seen after it. Whole warps call. */
__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Four floats at this place in the shared memory of a block of the cluster. */
__device__ __forceinline__ float4 ld_block_shared(unsigned from_s, unsigned block)
{
    float4 x;
    asm volatile("{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %4, %5;\n\t"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n\t}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(from_s), "r"(block)
                 : "memory");
    return x;
}

/* Each block of the cluster stores dK and dV of its share of the keys: what all blocks have, added in their order. */
__device__ __forceinline__ void store_shares(const fa_params &p, const key_block &block, unsigned base)
{
    constexpr int KEYS = N / SPLITS, CHUNKS = SUM_COLUMNS / 4;
    cluster_sync();
#pragma unroll 2
    for (int i = threadIdx.x; i < KEYS * CHUNKS; i += CONSUMERS) {
        const int key = blockIdx.x % SPLITS * KEYS + i / CHUNKS, place = i % CHUNKS * 4;
        const bool dv = place >= DIM_PAD;
        float4 sum = {};
#pragma unroll
        for (int share = 0; share < SPLITS; ++share) {
            const float4 part = ld_block_shared(base + place_of_sum(key, place), share);
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        const int column = place - (dv ? DIM_PAD : 0);
        const fa_i64 *strides = p.grad_stride[dv ? 3 : 2];
        const float factor = dv ? 1.0f : p.scale;
        fa_element *head_g = key_rows(dv ? p.dv : p.dk, block.seq, strides[0], strides[1], strides[2], block.kv_head);
        if (block.key0 + key < block.seq.seq_kv && column < (dv ? FA_DIM_V : FA_DIM))
            *reinterpret_cast<uint2 *>(head_g + (block.key0 + key) * strides[2] + column) = {
                pack_elements(sum.x * factor, sum.y * factor), pack_elements(sum.z * factor, sum.w * factor)};
    }
    __syncwarp();
    cluster_sync(); /* no block ends while another reads its sums */
}
