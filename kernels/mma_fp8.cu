/* mma_fp8: attention on e4m3 tensors by mma.sync m16n8k32, for sm_89 and later.
 *
 * Idea: both products are of FP8. A warp owns BANDS * 16 query rows; K and V arrive through a cp.async ring. Scores
 *   become e4m3 in place and are the A operand of P V: the k's of an mma are keys in the order in which a lane holds
 *   them. There is no ldmatrix for bytes: transposed as pairs, it gives a lane two neighbouring columns of V for four
 *   keys, and a byte permute parts them. So V stays in shared memory as it came.
 * Softmax: exact running maxima in FP32. Probabilities are times 2^8 before they become e4m3: the largest is 256, and
 *   those down to 2^-17 of it count. Row sums are of the unrounded ones, so the factor cancels.
 * Sums: the tensor cores keep some 13 bits of an FP8 product's sum. Products of one tile of keys start from zero, and
 *   are added to O in FP32.
 * Builds on: mma.   Knobs: M, N, WARPS, STAGES, SWIZZLE, maxreg.
 * Shared memory: Q [M], then STAGES slots of K [N] and V [N]; rows of DIM bytes, rounded up to 32.
 * Limits: --dtype e4m3; M a multiple of 16 * WARPS, N of 32; dim a multiple of 16 from 16 to 256. */
#include "mma/tile.cuh"
#include "shared/fp8.cuh"

static_assert(FA_FP8, "mma_fp8 serves --dtype e4m3 only");
static_assert(FA_DIM % 16 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 16 from 16 to 256");
static_assert(FA_DIM_V % 16 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= 256, "dim-v must be a multiple of 16 from 16 to 256");
static_assert(FA_M % (16 * FA_WARPS) == 0, "m must be a multiple of 16 * warps: a warp takes 16 query rows at a time");
static_assert(FA_N % 32 == 0, "n must be a multiple of 32: one mma of P V takes 32 keys");
static_assert(FA_STAGES >= 2, "stages must be 2 or more: tiles of keys arrive while others are used");
static_assert(FA_SPLITS == 1, "mma_fp8: splits must be 1");
static_assert(!FA_ACC_FP16, "mma_fp8 accumulates in FP32 only");

constexpr int M = FA_M, N = FA_N, STAGES = FA_STAGES;
constexpr int ROWS = M / FA_WARPS, BANDS = ROWS / 16;
static_assert(BANDS * (FA_DIM_V / 2 + N / 2) <= 208, "m / warps gives a warp more output than its registers hold");
/* Rows as those of elements of 16 bits: a step of 16 of them is one of 32 bytes. */
using qk_bytes = row_layout<FA_DIM / 2>;
using v_bytes = row_layout<FA_DIM_V / 2>;
constexpr int QK_STEPS = qk_bytes::STEPS, V_CHUNKS = FA_DIM_V / 16, TILES = N / 8, STEPS = N / 32;
constexpr int K_TILE_BYTES = N * qk_bytes::ROW_BYTES, V_TILE_BYTES = N * v_bytes::ROW_BYTES;
constexpr int SLOT_BYTES = K_TILE_BYTES + V_TILE_BYTES, Q_TILE_BYTES = M * qk_bytes::ROW_BYTES;
/* From sm_90 on mma.sync of FP8 is made of conversions and products of halves: Q would be kept converted. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool AS_HALVES = true;
#else
constexpr bool AS_HALVES = false;
#endif
constexpr bool Q_IN_REGISTERS = BANDS * (FA_DIM_V / 2 + N / 2 + FA_DIM / 8) <= (AS_HALVES ? 96 : 160);

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = Q_TILE_BYTES + STAGES * SLOT_BYTES + SMEM_ALIGN - 16,
               .writes_lse = FA_LSE,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_BIAS | FA_FEATURE_MASK | FA_FEATURE_DIM_V |
                         FA_FEATURE_FP8);

/* Rows [0, rows) of COLUMNS bytes to shared memory; those up to TILE_ROWS become zero. */
template <int TILE_ROWS, int COLUMNS>
__device__ __forceinline__ void load_bytes(unsigned char *tile_s, const fa_element_kv *src_g, fa_i64 stride, int rows,
                                           bool aligned)
{
    constexpr int PER_ROW = COLUMNS / 16;
    const auto place = [=](int row, int chunk) { return tile_s + row_layout<COLUMNS / 2>::offset(row, chunk); };
    if (aligned) {
#pragma unroll 4
        for (int piece = reload_thread_index(); piece < TILE_ROWS * PER_ROW; piece += THREADS) {
            const int row = piece / PER_ROW, chunk = piece % PER_ROW;
            cp_async_16(place(row, chunk), row < rows ? src_g + row * stride + chunk * 16 : src_g, row < rows ? 16 : 0);
        }
        return;
    }
#pragma unroll 1
    for (int piece = reload_thread_index(); piece < TILE_ROWS * PER_ROW * 4; piece += THREADS) { /* 4 bytes at a time */
        const int row = piece / (PER_ROW * 4), column = piece % (PER_ROW * 4) * 4;
        unsigned word = 0;
        for (int i = 0; i < 4 && row < rows; ++i)
            word |= static_cast<unsigned>(src_g[row * stride + column + i].__x) << 8 * i;
        *reinterpret_cast<unsigned *>(place(row, column / 16) + column % 16) = word;
    }
}

/* With an odd number of 16-byte chunks in a row, the one that fills its last step: zeros, for all slots. */
template <int COLUMNS>
__device__ __forceinline__ void clear_last_chunks(smem_addr tile_at, int rows)
{
    if constexpr (COLUMNS % 32 != 0)
        for (int row = threadIdx.x; row < rows; row += THREADS)
            st_shared_16_at(tile_at + row_layout<COLUMNS / 2>::offset(row, COLUMNS / 16), make_uint4(0, 0, 0, 0));
}

/* Fragments as in shared/fp8.cuh. */
struct warp_state {
    float o[BANDS][V_CHUNKS][2][4];
    float m[BANDS][2], l[BANDS][2];
    float s[BANDS][TILES][4];
    unsigned q[Q_IN_REGISTERS ? QK_STEPS : 1][BANDS][4];
    smem_addr q_lane, k_lane, v_lane; /* the rows of 16 bytes that a lane gives ldmatrix */
};

/* A lane's row, `chunk` chunks of 16 bytes and `offset` bytes on. */
template <class ROW>
__device__ __forceinline__ smem_addr row_at(smem_addr lane_at, int offset, int chunk)
{
    return xor_address(lane_at + offset, chunk % ROW::XORS * 16) + chunk / ROW::XORS * ROW::XORS * 16;
}

/* Where O takes most registers: keeps ptxas from loading many fragments ahead, for which it would spill. */
__device__ __forceinline__ void keep_order()
{
    if (FA_DIM_V > 128)
        __syncwarp();
}

__device__ __forceinline__ void load_q_step(unsigned (&q)[BANDS][4], const warp_state &w, int step)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        ldmatrix_x4_at(q[b], row_at<qk_bytes>(w.q_lane, b * 16 * qk_bytes::ROW_BYTES, 2 * step));
}

/* S = Q K^T of the tile in the slot `slot` bytes on. */
__device__ __forceinline__ void score_tile(warp_state &w, int slot)
{
#pragma unroll
    for (int step = 0; step < QK_STEPS; ++step) {
        unsigned q_now[BANDS][4];
        if (AS_HALVES)
            keep_order();
        if (!Q_IN_REGISTERS)
            load_q_step(q_now, w, step);
#pragma unroll
        for (int t = 0; t < TILES; t += 2) {
            unsigned k[4];
            ldmatrix_x4_at(k, row_at<qk_bytes>(w.k_lane, slot + t * 8 * qk_bytes::ROW_BYTES, 2 * step));
            const unsigned lo[2] = {k[0], k[1]}, hi[2] = {k[2], k[3]};
#pragma unroll
            for (int b = 0; b < BANDS; ++b) {
                const unsigned(&q)[4] = Q_IN_REGISTERS ? w.q[Q_IN_REGISTERS ? step : 0][b] : q_now[b];
                if (step == 0)
                    w.s[b][t][0] = w.s[b][t][1] = w.s[b][t][2] = w.s[b][t][3] = w.s[b][t + 1][0] = w.s[b][t + 1][1] =
                        w.s[b][t + 1][2] = w.s[b][t + 1][3] = 0.0f;
                mma_m16n8k32_e4m3(w.s[b][t], q, lo);
                mma_m16n8k32_e4m3(w.s[b][t + 1], q, hi);
            }
        }
    }
}

/* O = alpha O + P V. */
__device__ __forceinline__ void value_tile(warp_state &w, const float (&alpha)[BANDS][2], int slot)
{
    unsigned p[STEPS][BANDS][4];
#pragma unroll
    for (int i = 0; i < STEPS * BANDS * 4; ++i) {
        const int step = i / 4 / BANDS, b = i / 4 % BANDS, r = i % 4;
        p[step][b][r] = probabilities(w.s[b], 4 * step, r);
    }
#pragma unroll
    for (int chunk = 0; chunk < V_CHUNKS; ++chunk) {
        float sum[BANDS][2][4] = {};
        keep_order();
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            unsigned v[4];
            ldmatrix_x4_trans_at(v, row_at<v_bytes>(w.v_lane, slot + step * 32 * v_bytes::ROW_BYTES, chunk));
            const unsigned even[2] = {__byte_perm(v[0], v[1], 0x6420), __byte_perm(v[2], v[3], 0x6420)};
            const unsigned odd[2] = {__byte_perm(v[0], v[1], 0x7531), __byte_perm(v[2], v[3], 0x7531)};
#pragma unroll
            for (int b = 0; b < BANDS; ++b) {
                mma_m16n8k32_e4m3(sum[b][0], p[step][b], even);
                mma_m16n8k32_e4m3(sum[b][1], p[step][b], odd);
            }
        }
#pragma unroll
        for (int i = 0; i < BANDS * 8; ++i) {
            float &o = w.o[i / 8][chunk][i / 4 % 2][i % 4];
            o = fmaf(o, alpha[i / 8][i % 4 / 2], sum[i / 8][i / 4 % 2][i % 4]);
        }
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, SMEM_ALIGN);
    const smem_addr q_at = smem_address(smem), slots_at = q_at + Q_TILE_BYTES;
    const unsigned lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * ROWS;
    const query_tile tile = tile_of_block<M>(p);
    if (HAS_VARLEN && tile.rows == 0)
        return;
    const bool q_aligned = rows_aligned<16, fa_element_q>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s);
    const bool kv_aligned = rows_aligned<16, fa_element_kv>(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s) &&
                            rows_aligned<16, fa_element_kv>(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s);
    const int first_key = tile.first_key / N * N;
    const auto load_keys = [&](int key0, int slot) { /* one group, empty past the last tile */
                                                     if (key0 < tile.keys) {
                                                         unsigned char *to = smem + Q_TILE_BYTES + slot * SLOT_BYTES;
                                                         const int keys = tile.seq.seq_kv - key0;
                                                         load_bytes<N, FA_DIM>(to, tile.k_g + key0 * p.k_stride_s,
                                                                               p.k_stride_s, keys, kv_aligned);
                                                         load_bytes<N, FA_DIM_V>(to + K_TILE_BYTES,
                                                                                 tile.v_g + key0 * p.v_stride_s,
                                                                                 p.v_stride_s, keys, kv_aligned);
                                                     }
                                                     cp_async_commit();
    };

    clear_last_chunks<FA_DIM>(q_at, M);
    for (int slot = 0; slot < STAGES; ++slot)
        clear_last_chunks<FA_DIM>(slots_at + slot * SLOT_BYTES, N);
    load_bytes<M, FA_DIM>(smem, tile.q_g, p.q_stride_s, tile.rows, q_aligned);
    for (int slot = 0; slot < STAGES - 1; ++slot)
        load_keys(first_key + slot * N, slot);

    warp_state w;
    w.q_lane = q_at + warp_row * qk_bytes::ROW_BYTES + v_lane_offset<qk_bytes>(lane);
    w.k_lane = slots_at + k_lane_offset<qk_bytes>(lane);
    w.v_lane = slots_at + K_TILE_BYTES + v_bytes::offset(lane, 0);
#pragma unroll
    for (int i = 0; i < BANDS * V_CHUNKS * 8; ++i)
        w.o[i / 8 / V_CHUNKS][i / 8 % V_CHUNKS][i / 4 % 2][i % 4] = 0.0f;
#pragma unroll
    for (int i = 0; i < BANDS * 2; ++i)
        w.m[i / 2][i % 2] = NO_MAX, w.l[i / 2][i % 2] = 0.0f;
    const head_scores scores = scores_of_head(p, tile.seq, tile.head);

    int slot = 0;
    for (int key0 = first_key; key0 < tile.keys; key0 += N) {
        float alpha[BANDS][2];
        cp_async_wait<STAGES - 2>();
        __syncthreads(); /* the tile is here, and all warps have used the one before */
        load_keys(key0 + (STAGES - 1) * N, slot == 0 ? STAGES - 1 : slot - 1);
        if (Q_IN_REGISTERS && key0 == first_key)
#pragma unroll
            for (int step = 0; step < QK_STEPS; ++step)
                load_q_step(w.q[Q_IN_REGISTERS ? step : 0], w, step);
        score_tile(w, slot * SLOT_BYTES);
        const bool masked = is_masked(p, tile, tile.row0 + warp_row, ROWS, key0, N);
#pragma unroll
        for (int b = 0; b < BANDS; ++b) {
            const int row = tile.row0 + warp_row + b * 16 + lane / 4, key = key0 + lane % 4 * 2;
            if (masked || CHANGES_SCORES)
                finish_scores(w.s[b], p, tile, scores, row, key, masked);
            online_softmax(w.s[b], w.m[b], w.l[b], alpha[b], scores.scale_log2);
        }
        value_tile(w, alpha, slot * SLOT_BYTES);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    cp_async_wait<0>();
    const query_tile again = HAS_VARLEN ? tile : tile_of_block<M>(p); /* in between its registers are needed */
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        store_band(w.o[b], w.m[b], w.l[b], p, again, warp_row + b * 16 + lane / 4);
}
