/* What wgmma_backward has beside the flow of its products: its tiles, the layout of shared memory, the products. */
#pragma once

#if FA_N == 128 /* not SHARED_KEYS */
#define DQ_BOX 16
#define TAKES_ORDERS true
#else
#define DQ_BOX 64
#endif
#include "mma/gradient_pairs.cuh"
#include "shared/hopper.cuh"

constexpr int M = FA_M, N = FA_N, STAGES = FA_STAGES, SPLITS = FA_SPLITS; /* splits: blocks of a cluster */
constexpr int BOXES = ceil_div(FA_DIM, 64), DIM_PAD = BOXES * 64;         /* boxes of 64 columns, zero past dim */
constexpr int BOXES_V = ceil_div(FA_DIM_V, 64), DIM_PAD_V = BOXES_V * 64;
constexpr bool SHARED_KEYS = N == 64;  /* by the warpgroups: each owns dK or dV of them */
constexpr bool BY_COLUMNS = BOXES > 1; /* a part of dQ: 64 columns; else half of the rows */
constexpr bool WIDE =
    !SHARED_KEYS && BOXES == 3; /* exponentials by halves of a tile; each makes half of dQ's third part */
constexpr bool LATE_DOUT = FA_CAUSAL && BOXES == 2 && M == 64; /* dO and delta land behind barriers of their own */
constexpr int DQ_PARTS = BY_COLUMNS ? BOXES : 2, DQ_ROWS = BY_COLUMNS ? M : M / 2;
/* With turns two warps send dQ, every other tile each: a tile waits for its turn, then for its sums to be in memory,
 * which takes longer than to compute one. The first brings all of the rows' numbers then. */
constexpr int SENDERS = DETERMINISTIC && !SHARED_KEYS ? 2 : 1;
constexpr unsigned TURN_ENDS = SHARED_KEYS ? 2 : 1; /* by the warpgroups, or by the warp that sends dQ */
static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "wgmma_backward: computes gradients, for --op backward");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= FA_DIM,
              "dim-v must be a multiple of 8 from 16 to dim");
static_assert(M == 64 || (M == 80 && BOXES == 2) || (M == 128 && BOXES == 1),
              "m must be 64, up to dim 64 it may be 128, from dim 65 to 128 it may be 80");
static_assert(N == 64 || (M == 64 && !WIDE) || (FA_FEATURES & FA_FEATURE_SOFTCAP) == 0,
              "a softcap needs m 64, and above dim 128 n 64");
static_assert(N == 64 ? BOXES > 2 : N == 128 && BOXES + BOXES_V <= 5 && BOXES < 4,
              "n must be 128, above dim 128 it must be 64, or 128 up to dim 192 with a dim-v up to 128");
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
constexpr int DO_BARS = SHARED_KEYS ? 2 * DO_STAGES : LATE_DOUT ? DO_STAGES : 0;
constexpr int DS_BYTES = N / 64 * Q_BOX_BYTES; /* rows of M queries: a box for each 64 keys */
constexpr int DS_STEP = WHOLE_HEADS ? 0 : DS_BYTES;
constexpr int DQ_BYTES = 64 * DQ_ROWS * 4; /* a part */
constexpr int V_AT = K_BYTES, Q_AT = V_AT + V_BYTES, DO_AT = Q_AT + (SHARED_KEYS ? STAGES : 1) * Q_BYTES;
constexpr int DS_AT = Q_AT + STAGES * Q_BYTES + DO_STAGES * DO_BYTES, DQ_AT = DS_AT + (WIDE ? 1 : 2) * DS_BYTES;
constexpr int S_AT = DQ_AT + (WHOLE_HEADS ? 4 : 2 + WIDE) * DQ_BYTES, ROWS_AT = S_AT + (SHARED_KEYS ? M * N * 4 : 0);
constexpr int FOUND_AT = ROWS_AT + DO_STAGES * M * 8, BARS_AT = FOUND_AT + (DRAWS ? 4 * 32 : 0);
constexpr int FOUND_BARS_AT = BARS_AT + 8 * (1 + 2 * STAGES + DO_BARS);
/* WHOLE_HEADS fills shared memory. It has no static part, so that it begins near a multiple of 1024. */
constexpr int SMEM_BYTES = (WHOLE_HEADS ? 512 : 1024) + FOUND_BARS_AT + (DRAWS ? 4 * 8 : 0);
constexpr int SUM_COLUMNS = DIM_PAD + DIM_PAD_V; /* of dK, then of dV, in FP32 from the base on */
static_assert(SPLITS == 1 || N * SUM_COLUMNS * 4 <= (SHARED_KEYS ? ROWS_AT : DQ_AT),
              "wgmma_backward: a block's dK and dV must fit");
constexpr int LOADERS = 128, CONSUMERS = 256, DO_LOADERS = SHARED_KEYS ? LOADERS : 1 + 32;
constexpr bool CAUSAL_ALONE = FA_CAUSAL && !HAS_FIRST_KEY && !HAS_VARLEN;
/* The order of blocks and of their tiles, of gradients.cuh. Without groups tiles go down, too, or with n 64 up. */
constexpr bool ZIGZAG = CAUSAL_ALONE && !DETERMINISTIC && (LATE_DOUT || SHARED_KEYS);

/* Blocks of about equal length are persistent: loads of the next one begin while a block's dK and dV leave. */
constexpr bool PERSISTENT =
    N == 128 && !WIDE && SPLITS == 1 && !DETERMINISTIC && !HAS_VARLEN && (!CAUSAL_ALONE || M == 128 || BOXES == 2);
static_assert(PERSISTENT || !DRAWS);
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

/* Named barriers: dS is written; S^T is; dS is, by the warpgroup itself. A warpgroup's part of dQ is written, and has
 * been sent (+ 2); the second sender's is written (+ 6). With one buffer, the other warpgroup has used dS. */
enum { BAR_DS = 1, BAR_S = 2, BAR_OWN_DS = 3, BAR_DQ = 4, BAR_HEADS = 4, BAR_DS_USED = 8 };

/* Addresses in shared memory. full: a stage has landed; empty: it has been used. */
struct shared_layout {
    unsigned base, keys_bar, full_bar, empty_bar;
};

/* The query tiles of a block, its share of those of its keys, heads outermost; count: those that are over. With ZIGZAG
 * heads are innermost, and the blocks of a cluster take turns. PERSISTENT: count goes on from block to block. */
struct query_loop {
    int head, tile, left, count;
    unsigned group; /* query heads of a K/V head */
    int start;      /* count, of the block's first tile */
};

/* With ZIGZAG: so many heads on. With n 128 a block without splits goes on by one, without a branch. */
__device__ __forceinline__ void move(query_loop &loop, const key_block &block, int heads)
{
    if constexpr (!SHARED_KEYS && SPLITS == 1) {
        const bool last = loop.head + heads == (block.kv_head + 1) * static_cast<int>(loop.group);
        loop.tile += last ? (block.up ? 1 : -1) : 0;
        loop.head += heads - (last ? static_cast<int>(loop.group) : 0);
        return;
    }
    for (loop.head += heads; loop.head >= (block.kv_head + 1) * static_cast<int>(loop.group);)
        loop.head -= loop.group, loop.tile += block.up ? 1 : -1;
}

__device__ __forceinline__ query_loop first_query_tile(const fa_params &p, const key_block &block, int start = 0)
{
    const int group = p.heads / p.kv_heads, all = (block.end - block.begin) * group;
    const int share = SPLITS > 1 ? blockIdx.x % SPLITS : 0;
    query_loop loop = {block.kv_head * group, block.begin, all, start, static_cast<unsigned>(group), start};
    if constexpr (BACK) {
        loop.tile = block.up ? block.begin : block.end - 1;
    } else if constexpr (ZIGZAG) {
        loop.tile = block.up ? block.begin : block.end - 1;
        loop.left = (all - share + SPLITS - 1) / SPLITS;
        move(loop, block, share);
    } else if constexpr (SPLITS > 1) {
        const int tiles = block.end - block.begin, first = all * share / SPLITS, end = all * (share + 1) / SPLITS;
        const int heads_over = tiles > 0 ? first / tiles : 0;
        loop.head += heads_over, loop.tile += first - heads_over * tiles, loop.left = end - first;
    }
    return loop;
}

__device__ __forceinline__ void advance(query_loop &loop, const key_block &block)
{
    loop.left--;
    if constexpr (ZIGZAG) {
        move(loop, block, SPLITS);
    } else if constexpr (BACK) {
        const int first = block.up ? block.begin : block.end - 1, last = block.up ? block.end - 1 : block.begin;
        loop.head += loop.tile == last;
        loop.tile = loop.tile == last ? first : loop.tile + (block.up ? 1 : -1);
    } else if (++loop.tile == block.end) {
        loop.tile = block.begin, loop.head++;
    }
    loop.count++;
}

/* Of the rings of Q and dO. With tiles of 128 rows a remainder needs to know that it is not negative. */
__device__ __forceinline__ auto count_of(const query_loop &loop)
{
    if constexpr (M == 128)
        return static_cast<unsigned>(loop.count);
    else
        return loop.count;
}
__device__ __forceinline__ int stage_of(const query_loop &loop) { return count_of(loop) % STAGES; }
__device__ __forceinline__ unsigned phase_of(const query_loop &loop) { return count_of(loop) / STAGES & 1; }
__device__ __forceinline__ int dout_stage_of(const query_loop &loop) { return count_of(loop) % DO_STAGES; }
__device__ __forceinline__ unsigned dout_phase_of(const query_loop &loop) { return count_of(loop) / DO_STAGES & 1; }

/* From empty_bar on: a stage of dO has landed; 8 DO_STAGES on: it has been used. */
__device__ __forceinline__ int dout_bar_of(const query_loop &loop) { return 8 * (STAGES + dout_stage_of(loop)); }

/* Where a tile's Q, dO, dS and numbers are: log-sum-exp, then delta. */
__device__ __forceinline__ unsigned q_of(const query_loop &loop) { return Q_AT + stage_of(loop) * Q_STEP; }
__device__ __forceinline__ unsigned dout_of(const query_loop &loop) { return DO_AT + dout_stage_of(loop) * DO_STEP; }
__device__ __forceinline__ unsigned ds_of(const query_loop &loop) { return DS_AT + count_of(loop) % 2 * DS_STEP; }
__device__ __forceinline__ int numbers_of(const query_loop &loop) { return ROWS_AT + dout_stage_of(loop) * M * 8; }

/* The descriptor of what lies so many bytes on: by one addition of 64 bits, where ptxas would make each anew. */
__device__ __forceinline__ u64 descriptor_at(unsigned low, unsigned bytes)
{
    return SHARED_KEYS ? wgmma_descriptor(low + descriptor_start(bytes))
                       : wgmma_descriptor(low) + descriptor_start(bytes);
}

/* s = keys times queries: transposed scores, of 64 rows of keys. then: what is done once the first step is issued. */
template <int COLUMNS, int REGISTERS, class F>
__device__ __forceinline__ void issue_scores(float (&s)[REGISTERS], unsigned keys_at, unsigned queries_at,
                                             const F &then)
{
    const unsigned keys = descriptor_start(keys_at), queries = descriptor_start(queries_at);
#pragma unroll
    for (int step = 0; step < COLUMNS / 16; ++step) {
        wgmma<2 * REGISTERS>::ss(s, descriptor_at(keys, step / 4 * K_BOX_BYTES + step % 4 * 32),
                                 descriptor_at(queries, step / 4 * Q_BOX_BYTES + step % 4 * 32), step > 0);
        if (step == 0)
            then();
    }
}

/* The warp has used a stage. */
__device__ __forceinline__ void release(unsigned empty_bar, int thread)
{
    __syncwarp();
    if (thread % 32 == 0)
        mbarrier_arrive(empty_bar);
}

/* sums += P^T dO or dS^T Q. pairs: the left operand, in registers. BEGIN, END: steps of 16 rows; END 0: all. */
template <int BEGIN = 0, int END = 0, int REGISTERS, int PAIRS>
__device__ __forceinline__ void issue_sums(float (&sums)[REGISTERS], const unsigned (&pairs)[PAIRS], unsigned rows_at,
                                           int accumulate)
{
    /* In a cluster an address has the block's number above its place, where the descriptor says `leading`. */
    const unsigned place = SPLITS > 1 ? rows_at & 0x3ffff : rows_at;
    const unsigned rows = descriptor_start(place) + descriptor_leading(Q_BOX_BYTES);
#pragma unroll
    for (int step = BEGIN; step < (END > 0 ? END : PAIRS / 4); ++step)
        wgmma<2 * REGISTERS>::rs_n(sums, &pairs[4 * step], descriptor_at(rows, step * 16 * BOX_ROW_BYTES),
                                   step > 0 ? 1 : accumulate);
}

/* dK += dS^T Q, of dS in shared memory: where it would not stay in registers. */
template <int REGISTERS>
__device__ __forceinline__ void issue_dk(float (&dk)[REGISTERS], unsigned ds_at, unsigned rows_at, int accumulate)
{
    const unsigned place = SPLITS > 1 ? rows_at & 0x3ffff : rows_at;
    const unsigned keys = descriptor_start(ds_at), rows = descriptor_start(place) + descriptor_leading(Q_BOX_BYTES);
#pragma unroll
    for (int step = 0; step < M / 16; ++step)
        wgmma<2 * REGISTERS>::ss_mn(dk, descriptor_at(keys, step * 16 * BOX_ROW_BYTES),
                                    descriptor_at(rows, step * 16 * BOX_ROW_BYTES), step > 0 ? 1 : accumulate);
}

/* With shared keys: 64 columns of dQ = dS K. */
__device__ __forceinline__ void issue_dq(float (&dq)[32], unsigned ds_at, unsigned k_at, int part)
{
    const unsigned rows = descriptor_start(ds_at), columns = descriptor_start(k_at + part * K_BOX_BYTES);
#pragma unroll
    for (int step = 0; step < N / 16; ++step)
        wgmma<64>::ss_n(dq, wgmma_descriptor(rows + descriptor_start(step / 4 * Q_BOX_BYTES + step % 4 * 32)),
                        wgmma_descriptor(columns + descriptor_start(step * 16 * BOX_ROW_BYTES)), step > 0);
}

/* dQ^T = K^T dS^T: 64 columns of K, some rows of dS. */
template <int REGISTERS>
__device__ __forceinline__ void issue_transposed_dq(float (&dq)[REGISTERS], unsigned ds_at, unsigned k_at)
{
    const unsigned rows = descriptor_start(ds_at), columns = descriptor_start(k_at);
#pragma unroll
    for (int step = 0; step < N / 16; ++step)
        wgmma<2 * REGISTERS>::ss_m(dq, descriptor_at(columns, step * 16 * BOX_ROW_BYTES),
                                   descriptor_at(rows, step / 4 * Q_BOX_BYTES + step % 4 * 32), step > 0);
}

/* dS^T of the warpgroup's 64 keys to its box of dS: rows are queries. BEGIN, END: 16s of them. */
template <int BEGIN = 0, int END = M / 16, int PAIRS>
__device__ __forceinline__ void store_ds(unsigned box_at, const unsigned (&pairs)[PAIRS], int thread)
{
    const int lane = thread % 32, chunk = thread / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int i = BEGIN; i < END; ++i) {
        const int query = i * 16 + lane / 16 * 8 + lane % 8;
        stmatrix_x4_trans_at(box_at + query * BOX_ROW_BYTES + (chunk ^ lane % 8) * 16,
                             reinterpret_cast<const unsigned(&)[4]>(pairs[4 * i]));
    }
}
