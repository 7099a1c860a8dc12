/* What mma_backward has beside the flow of its products: its tiles, the layout of shared memory, its loads. */
#pragma once

#define DQ_BOX 16
#define DQ_ALIGNED false
#define DQ_BY_LANES !RED_ADDS_4
#include "mma/gradient_pairs.cuh"

constexpr int M = FA_M, N = FA_N, WARPS = FA_WARPS, STAGES = FA_STAGES;
static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "mma_backward: computes gradients, for --op backward");
static_assert(M % 16 == 0 && N % 16 == 0, "m and n must be multiples of 16: an mma takes 16 rows");
static_assert(WARPS * 16 <= N ? N % (WARPS * 16) == 0 : WARPS * 16 % N == 0,
              "warps must divide n / 16, or be a multiple of it (the extra warps share out queries and columns)");
/* 32 keys of a warp, which one warp has or several share. */
constexpr bool TWO_BANDS = N >= 64 && WARPS * 32 >= N && WARPS * 32 % N == 0 && M % (WARPS * 512 / N) == 0;
static_assert(STAGES == 1 || STAGES == 2, "mma_backward: stages must be 1 or 2");
static_assert(FA_SPLITS == 1, "mma_backward: splits must be 1");
static_assert(!FA_ACC_FP16, "mma accumulates in FP32 only");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= 256, "dim-v must be a multiple of 8 from 16 to 256");

constexpr int SHARERS = TWO_BANDS ? WARPS * 32 / N : WARPS * 16 > N ? WARPS * 16 / N : 1; /* warps with the same keys */
constexpr int BANDS = N * SHARERS / WARPS / 16;                                           /* 16-key bands of a warp */
constexpr int OWNED = M / SHARERS;               /* queries of which a warp makes the scores, */
constexpr int QUERIES = OWNED < 32 ? OWNED : 32; /* so many at once */
static_assert(SHARERS == 1 || WARPS / SHARERS < 16, "warps that share keys meet at one of 15 barriers");
static_assert(M % (16 * SHARERS) == 0, "m must be a multiple of 16 for each of the warps that share the same keys");
static_assert(SHARERS == 1 ? OWNED % QUERIES == 0 : (OWNED & (OWNED - 1)) == 0,
              "m must be a power of two where warps share keys");
constexpr int K_STEPS = ceil_div(qk_row::STEPS, SHARERS), V_STEPS = ceil_div(v_row::STEPS, SHARERS); /* of 16 columns */
static_assert(BANDS * (K_STEPS + V_STEPS) * 8 + BANDS * QUERIES / 2 <= 216,
              "n / warps gives a warp more of dK and dV than its registers hold");
/* Rows see some keys alone: a warp looks whether they see its own. Above dim 128 there is no register for it. */
constexpr bool HIDES = (FA_CAUSAL || HAS_WINDOW || HAS_CHUNK) && FA_DIM <= 128;
constexpr int QUERY_BANDS = M / 16, KEY_STEPS = N / 16;
static_assert(WARPS % QUERY_BANDS == 0 || QUERY_BANDS % WARPS == 0, "warps must divide m / 16, or be a multiple of it");

/* P^T and dS^T in shared memory: a row of M elements for each key. */
using pair_row = row_layout<M>;
static_assert(no_bank_conflicts<pair_row>(), "the layout of P and dS has bank conflicts");

constexpr int K_BYTES = N * qk_row::ROW_BYTES, V_BYTES = N * v_row::ROW_BYTES;
constexpr int Q_BYTES = M * qk_row::ROW_BYTES, DO_BYTES = M * v_row::ROW_BYTES;
constexpr int STAGE_BYTES = Q_BYTES + DO_BYTES + M * 8; /* then the rows' log-sum-exp, and delta */
constexpr int PAIR_BYTES = N * pair_row::ROW_BYTES;
constexpr int V_AT = K_BYTES, STAGES_AT = V_AT + V_BYTES, DS_AT = STAGES_AT + STAGES * STAGE_BYTES;
constexpr int P_AT = DS_AT + PAIR_BYTES, POINTERS_AT = P_AT + (SHARERS > 1 ? PAIR_BYTES : 0);
constexpr int SMEM_BYTES = POINTERS_AT + THREADS * 32;

/* Where a lane finds a fragment: lane_at is that of step 0 and band 0. */
template <class ROW>
__device__ __forceinline__ smem_addr fragment(smem_addr lane_at, int step, int band)
{
    constexpr int PATTERNS = ROW::PATTERNS;
    return xor_address(lane_at, step % PATTERNS * 32) + step / PATTERNS * PATTERNS * 32 + band * 16 * ROW::ROW_BYTES;
}

__device__ __forceinline__ void load_keys(const fa_params &p, const key_block &block, unsigned char *smem)
{
    const sequence &seq = block.seq;
    load_tile<N, FA_DIM, true>(
        smem_address(smem),
        head_rows{key_rows(p.k, seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, block.kv_head), p.k_stride_s},
        block.key0, seq.seq_kv, block.aligned, threadIdx.x);
    load_tile<N, FA_DIM_V, true>(
        smem_address(smem + V_AT),
        head_rows{key_rows(p.v, seq, p.v_stride_b, p.v_stride_h, p.v_stride_s, block.kv_head), p.v_stride_s},
        block.key0, seq.seq_kv, block.aligned, threadIdx.x);
}

/* Each thread keeps in shared memory, as registers are short, what it loads of the next tile and where its tile's sums
 * of dQ are: two pairs of pointers. */
struct pointer_pair {
    unsigned long long a, b;
};

__device__ __forceinline__ pointer_pair &kept_pointers(unsigned char *smem, int pair)
{
    return reinterpret_cast<pointer_pair *>(smem + POINTERS_AT)[pair * THREADS + threadIdx.x];
}

/* M rows of which `valid` exist. The thread's first chunk is at from_g; returns where it is in the next M rows. */
template <int COLUMNS>
__device__ __forceinline__ unsigned long long load_rows(smem_addr tile_at, unsigned long long from_g, int stride,
                                                        int valid)
{
    using layout = copy_layout<M, COLUMNS>;
    const thread_share share = find_share<M, COLUMNS>(threadIdx.x, stride);
    const unsigned char *chunk_g = reinterpret_cast<const unsigned char *>(from_g);
    if (valid >= M) [[likely]] {
#pragma unroll
        for (int pass = 0; pass < layout::PASSES; ++pass)
            load_pass<M, COLUMNS, true>(tile_at, chunk_g, share.smem_offset, pass, M, threadIdx.x, 0, stride);
    } else {
        if (static_cast<int>(layout::first_of(threadIdx.x)) >= valid)
            chunk_g -= share.global_offset; /* points at a row that exists */
#pragma unroll
        for (int pass = 0; pass < layout::PASSES; ++pass)
            load_pass<M, COLUMNS, false>(tile_at, chunk_g, share.smem_offset, pass, valid, threadIdx.x, 0, stride);
    }
    return from_g + static_cast<fa_i64>(stride) * M * 2;
}

/* Loads Q, dO and the two numbers of each of M rows. A row that does not exist is all zeros, so it adds nothing. The
 * kept pointers move on by a tile: a head's tiles come in order, from the first that sees the keys. */
__device__ __forceinline__ void load_queries(const fa_params &p, const key_block &block, unsigned char *smem,
                                             unsigned char *stage_s, int head, int tile)
{
    const sequence &seq = block.seq;
    const fa_i64 *of_dout = p.grad_stride[0];
    const int valid = seq.seq_q - tile * M;
    const bool fast = block.aligned && max(p.q_stride_s, of_dout[2]) < (1 << 30) / M;
    const int q_stride = static_cast<int>(p.q_stride_s), dout_stride = static_cast<int>(of_dout[2]);
    pointer_pair &rows = kept_pointers(smem, 0), &numbers = kept_pointers(smem, 1);
    if (tile == block.begin || !fast) {
        const head_rows q = {query_rows(p.q, seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, head), p.q_stride_s},
                        dout = {query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], head), of_dout[2]};
        rows.a = reinterpret_cast<unsigned long long>(q.data_g + tile * M * q.stride) +
                 find_share<M, FA_DIM>(threadIdx.x, q_stride).global_offset;
        rows.b = reinterpret_cast<unsigned long long>(dout.data_g + tile * M * dout.stride) +
                 find_share<M, FA_DIM_V>(threadIdx.x, dout_stride).global_offset;
        numbers.a = reinterpret_cast<unsigned long long>(gradients_of(p, seq, head).lse2_g + tile * M + threadIdx.x);
        if (!fast) {
            load_tile<M, FA_DIM, true>(smem_address(stage_s), q, tile * M, seq.seq_q, false, threadIdx.x);
            load_tile<M, FA_DIM_V, true>(smem_address(stage_s + Q_BYTES), dout, tile * M, seq.seq_q, false,
                                         threadIdx.x);
        }
    }
    if (fast) {
        const pointer_pair at = rows;
        rows = {load_rows<FA_DIM>(smem_address(stage_s), at.a, q_stride, valid),
                load_rows<FA_DIM_V>(smem_address(stage_s + Q_BYTES), at.b, dout_stride, valid)};
    }
    if (threadIdx.x < M) {
        const float *from_g = reinterpret_cast<const float *>(numbers.a);
        const fa_i64 all = static_cast<fa_i64>(p.tiles) * FA_M;
#pragma unroll
        for (int i = 0; i < M; i += THREADS) {
            const int row = i + static_cast<int>(threadIdx.x), bytes = row < valid ? 4 : 0;
            if (M % THREADS != 0 && row >= M)
                continue;
            unsigned char *to_s = stage_s + Q_BYTES + DO_BYTES + row * 4;
            const float *lse2_g = from_g + (bytes == 0 ? -static_cast<int>(threadIdx.x) : i);
            cp_async_4(to_s, lse2_g, bytes);
            cp_async_4(to_s + M * 4, lse2_g + all, bytes);
        }
        numbers.a = reinterpret_cast<unsigned long long>(from_g + M);
    }
    cp_async_commit();
}
