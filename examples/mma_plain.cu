/* mma_plain: flash attention on tensor cores in one short file. The step between kernels/wmma.cu and kernels/mma.cu.
 *
 * Idea: mma.sync has a documented register layout, so scores and probabilities never leave registers. A warp owns 16
 *   query rows. Thread `lane` holds, of each 16x8 block of scores, rows lane / 4 and lane / 4 + 8, columns
 *   lane % 4 * 2 and the next: the layout in which mma.sync takes the left operand of P V.
 * Softmax: online. Each row keeps its maximum m and its sum l; a larger maximum rescales l and the output.
 * Loads: cp.async copies the next K and V tiles into the other of two buffers while the current ones are used.
 * Shared memory: Q [M][DIM], then two buffers of K and V [N][DIM]; rows padded by 16 bytes, so that the eight rows that
 *   ldmatrix reads at once lie in different banks.
 * Limits: M = 16 * WARPS, N a multiple of 16, dim a multiple of 8 from 16 to 256. Rows that do not start at a multiple
 *   of 16 bytes are copied half by half. Try it:
 *       ./fa_bench --source examples/mma_plain.cu --m 64 --n 32 --warps 4 --stages 2 --vec 8 */
#include "../kernels/prims.cuh"

static_assert(FA_M == 16 * FA_WARPS, "mma_plain: M must be 16 * WARPS (a warp takes 16 rows)");
static_assert(FA_N % 16 == 0, "mma_plain: N must be a multiple of 16 (an mma of P V takes 16 keys)");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256,
              "mma_plain: dim must be a multiple of 8 from 16 to 256");
static_assert(FA_STAGES == 2 && FA_SPLITS == 1, "mma_plain: STAGES must be 2 and SPLITS 1");
static_assert(!FA_ACC_FP16, "mma_plain: ACC must be fp32");

constexpr int THREADS = FA_WARPS * 32;
constexpr int DIM = (FA_DIM + 15) / 16 * 16; /* an mma of Q K^T takes 16 dimensions; the extra ones are zero */
constexpr int STRIDE = DIM + 8;              /* halves from a row to the next in shared memory */
constexpr int TILE = FA_N * STRIDE;          /* halves of a tile of K or V */
constexpr float LOG2_E = 1.4426950408889634f;

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = (FA_M * STRIDE + 4 * TILE) * 2, .writes_lse = FA_LSE);

/* Copies rows [0, rows) of a tile of TILE_ROWS rows; the other rows, and columns from FA_DIM on, become zero. */
template <int TILE_ROWS>
__device__ void load_tile(__half *tile_s, const __half *src_g, fa_i64 stride, int rows, bool aligned)
{
    for (int i = threadIdx.x; i < TILE_ROWS * DIM / 8; i += THREADS) {
        const int row = i / (DIM / 8), col = i % (DIM / 8) * 8;
        const bool present = row < rows && col < FA_DIM;
        const __half *from_g = present ? src_g + row * stride + col : src_g;
        __half *to_s = tile_s + row * STRIDE + col;
        if (aligned)
            cp_async_16(to_s, from_g, present ? 16 : 0);
        else
            for (int j = 0; j < 8; j++)
                to_s[j] = present ? from_g[j] : __float2half(0.0f);
    }
}

/* S = Q K^T for 16 rows and N keys. ldmatrix_x4 reads four 8x8 blocks; lane l gives the address of row l % 8 of block
 * l / 8. For K two blocks are the 16 dimensions of keys 0-7, the others those of keys 8-15. */
__device__ void compute_scores(float (&s_r)[FA_N / 8][4], const __half *q_s, const __half *k_s, int lane)
{
    for (int d = 0; d < DIM; d += 16) {
        unsigned q_r[4], k_r[4];
        ldmatrix_x4(q_r, q_s + lane % 16 * STRIDE + d + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < FA_N; n += 16) {
            ldmatrix_x4(k_r, k_s + (n + lane / 16 * 8 + lane % 8) * STRIDE + d + lane / 8 % 2 * 8);
            const unsigned low_r[2] = {k_r[0], k_r[1]}, high_r[2] = {k_r[2], k_r[3]};
            mma_m16n8k16(s_r[n / 8], q_r, low_r);
            mma_m16n8k16(s_r[n / 8 + 1], q_r, high_r);
        }
    }
}

/* Scores become probabilities; m, l and o follow. keys[h]: how many of the tile's keys row lane / 4 + 8 h sees. */
__device__ void online_softmax(float (&s_r)[FA_N / 8][4], float (&o_r)[DIM / 8][4], float (&m_r)[2], float (&l_r)[2],
                               const int (&keys)[2], float scale, int lane)
{
#pragma unroll
    for (int h = 0; h < 2; h++) { /* elements 2 h and 2 h + 1 of a block belong to row lane / 4 + 8 h */
        float m = m_r[h];
#pragma unroll
        for (int i = 0; i < FA_N / 8 * 2; i++) {
            float &s = s_r[i / 2][2 * h + i % 2];
            s = i / 2 * 8 + lane % 4 * 2 + i % 2 < keys[h] ? s * scale : -INF;
            m = fmaxf(m, s);
        }
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1)); /* four lanes share a row */
        m = fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 2));
        const float m_ref = m == -INF ? 0.0f : m, alpha = exp2_approx(m_r[h] - m_ref); /* -INF: no key so far */
        m_r[h] = m;
        l_r[h] *= alpha;
#pragma unroll
        for (int i = 0; i < FA_N / 8 * 2; i++) {
            float &s = s_r[i / 2][2 * h + i % 2];
            s = exp2_approx(s - m_ref);
            l_r[h] += s;
        }
#pragma unroll
        for (int i = 0; i < DIM / 8 * 2; i++)
            o_r[i / 2][2 * h + i % 2] *= alpha;
    }
}

/* O += P V. Two neighbouring 16x8 blocks of P, as halves, are one left operand. V has a key per row: transposed. */
__device__ void add_values(float (&o_r)[DIM / 8][4], const float (&p_r)[FA_N / 8][4], const __half *v_s, int lane)
{
#pragma unroll
    for (int n = 0; n < FA_N; n += 16) {
        const float *left = p_r[n / 8], *right = p_r[n / 8 + 1];
        const unsigned a_r[4] = {pack_half2(left[0], left[1]), pack_half2(left[2], left[3]),
                                 pack_half2(right[0], right[1]), pack_half2(right[2], right[3])};
#pragma unroll
        for (int d = 0; d < DIM; d += 16) {
            unsigned v_r[4];
            ldmatrix_x4_trans(v_r, v_s + (n + lane % 16) * STRIDE + d + lane / 16 * 8);
            const unsigned low_r[2] = {v_r[0], v_r[1]}, high_r[2] = {v_r[2], v_r[3]};
            mma_m16n8k16(o_r[d / 8], a_r, low_r);
            mma_m16n8k16(o_r[d / 8 + 1], a_r, high_r);
        }
    }
}

/* Normalises and stores the rows below `rows`. A row that saw no key gives 0. */
__device__ void store_output(__half *o_g, fa_i64 stride, int rows, const float (&o_r)[DIM / 8][4], float (&l_r)[2],
                             int lane)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        l_r[h] += __shfl_xor_sync(ALL_LANES, l_r[h], 1);
        l_r[h] += __shfl_xor_sync(ALL_LANES, l_r[h], 2);
        const float inverse = l_r[h] > 0.0f ? 1.0f / l_r[h] : 0.0f;
        const int row = lane / 4 + 8 * h;
#pragma unroll
        for (int i = 0; i < DIM / 8 * 2; i++) {
            const int col = i / 2 * 8 + lane % 4 * 2 + i % 2;
            if (row < rows && col < FA_DIM)
                o_g[row * stride + col] = __float2half_rn(o_r[i / 2][2 * h + i % 2] * inverse);
        }
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, q_s);
    __half *k_s = q_s + FA_M * STRIDE, *v_s = k_s + 2 * TILE; /* two buffers each */
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;

    const int block = FA_CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x; /* causal: the longest tiles first */
    const int row0 = block % p.tiles_m * FA_M, head = block / p.tiles_m % p.heads, batch = block / p.tiles_m / p.heads;
    const int kv_head = head / (p.heads / p.kv_heads), ahead = p.seq_kv - p.seq_q;
    const __half *q_g = (const __half *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row0 * p.q_stride_s;
    const __half *k_g = (const __half *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const __half *v_g = (const __half *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    __half *o_g = (__half *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row0 * p.o_stride_s;
    const fa_i64 bits = (fa_i64)p.q | (fa_i64)p.k | (fa_i64)p.v | (p.q_stride_b | p.q_stride_h | p.q_stride_s) * 2 |
                        (p.k_stride_b | p.k_stride_h | p.k_stride_s) * 2 |
                        (p.v_stride_b | p.v_stride_h | p.v_stride_s) * 2;
    const bool aligned = bits % 16 == 0; /* every row of Q, K and V starts at a multiple of 16 bytes */
    const auto load_keys = [&](int key0, int buffer) {
        load_tile<FA_N>(k_s + buffer * TILE, k_g + key0 * p.k_stride_s, p.k_stride_s, p.seq_kv - key0, aligned);
        load_tile<FA_N>(v_s + buffer * TILE, v_g + key0 * p.v_stride_s, p.v_stride_s, p.seq_kv - key0, aligned);
    };

    /* causal: row i sees the keys up to i + ahead */
    const int end = FA_CAUSAL ? min(p.seq_kv, row0 + FA_M + ahead) : p.seq_kv;
    const int row = row0 + warp_row + lane / 4;
    float o_r[DIM / 8][4] = {}, m_r[2] = {-INF, -INF}, l_r[2] = {};
    if (end > 0) {
        load_tile<FA_M>(q_s, q_g, p.q_stride_s, p.seq_q - row0, aligned);
        load_keys(0, 0);
    }
    cp_async_commit();
    for (int key0 = 0, buffer = 0; key0 < end; key0 += FA_N, buffer ^= 1) {
        cp_async_wait<0>();
        __syncthreads(); /* this tile has landed, and all warps are done with the other buffer */
        if (key0 + FA_N < end)
            load_keys(key0 + FA_N, buffer ^ 1);
        cp_async_commit();

        float s_r[FA_N / 8][4] = {};
        compute_scores(s_r, q_s + warp_row * STRIDE, k_s + buffer * TILE, lane);
        const int keys[2] = {(FA_CAUSAL ? min(p.seq_kv, row + 1 + ahead) : p.seq_kv) - key0,
                             (FA_CAUSAL ? min(p.seq_kv, row + 9 + ahead) : p.seq_kv) - key0};
        online_softmax(s_r, o_r, m_r, l_r, keys, p.scale * LOG2_E, lane);
        add_values(o_r, s_r, v_s + buffer * TILE, lane);
    }
    store_output(o_g + warp_row * p.o_stride_s, p.o_stride_s, p.seq_q - row0 - warp_row, o_r, l_r, lane);
#if FA_LSE /* --lse: the natural logarithm of each row's sum; m counts in powers of two; log 0 is -inf */
    for (int h = 0; h < 2; h++)
        if (p.lse && lane % 4 == 0 && row + 8 * h < p.seq_q)
            p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + (row + 8 * h) * p.lse_stride_s] =
                l_r[h] > 0.0f ? m_r[h] / LOG2_E + logf(l_r[h]) : -INF;
#endif
}
