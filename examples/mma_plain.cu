/* mma_plain: flash attention on tensor cores in one short file. The step between kernels/wmma.cu and kernels/mma.cu.
 *
 * Idea: the register layout of mma.sync is documented, so scores and probabilities never leave registers. A warp owns
 *   16 query rows. Thread `lane` holds, of each 16x8 block of scores, rows lane / 4 and lane / 4 + 8, columns
 *   lane % 4 * 2 and the next: the layout in which mma.sync takes the left operand of P V.
 * Softmax: online. Each row keeps its maximum m and its sum l; a larger maximum rescales l and the output.
 * Loads: cp.async copies the next tiles of K and V into the other of two buffers while the current ones are used.
 * Builds on: kernels/wmma.cu.   Knobs: M = 16 * WARPS query rows; N keys of a tile.
 * Shared memory: Q [M][DIM], then two buffers of K and V [N][DIM]; rows padded by 16 bytes, so that the eight rows that
 *   ldmatrix reads at once lie in different banks.
 * Limits: N a multiple of 16, dim a multiple of 8 from 16 to 256. Rows that do not start at a multiple of 16 bytes are
 *   copied one by one. Try it:
 *       ./fa_bench --source examples/mma_plain.cu --m 64 --n 32 --warps 4 --stages 2 --vec 8 */
#include "../kernels/shared/schedule.cuh"

static_assert(FA_M == 16 * FA_WARPS, "mma_plain: M must be 16 * WARPS (a warp takes 16 rows)");
static_assert(FA_N % 16 == 0, "mma_plain: N must be a multiple of 16 (an mma of P V takes 16 keys)");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "mma_plain: dim must be 16, 24, ... 256");
static_assert(FA_STAGES == 2 && FA_SPLITS == 1 && !FA_ACC_FP16, "mma_plain: STAGES must be 2, SPLITS 1, ACC fp32");

constexpr int THREADS = FA_WARPS * 32;
constexpr int DIM = (FA_DIM + 15) / 16 * 16; /* an mma of Q K^T takes 16 dimensions; the extra ones are zero */
constexpr int STRIDE = DIM + 8;              /* halves from a row to the next in shared memory */
constexpr int TILE = FA_N * STRIDE;          /* halves of a tile of K or V */

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = (FA_M * STRIDE + 4 * TILE) * 2, .writes_lse = FA_LSE,
               .serves_bf16 = 1);

/* A thread's part of the warp's output, maxima and sums. Index h: row lane / 4 + 8 h, elements 2 h and 2 h + 1 of each
 * 16x8 block. l: of this thread's columns only. */
struct warp_rows {
    float o[DIM / 8][4], m[2], l[2];
};

/* Copies rows [0, rows) of a tile of TILE_ROWS rows; the other rows, and columns from FA_DIM on, become zero. */
template <int TILE_ROWS>
__device__ void load_tile(fa_element *tile_s, const fa_element *src_g, fa_i64 stride, int rows)
{
    const bool aligned = ((fa_i64)src_g | stride * 2) % 16 == 0; /* so is every row */
    for (int i = threadIdx.x; i < TILE_ROWS * DIM / 8; i += THREADS) {
        const int row = i / (DIM / 8), col = i % (DIM / 8) * 8;
        const bool present = row < rows && col < FA_DIM;
        const fa_element *from_g = present ? src_g + row * stride + col : src_g;
        fa_element *to_s = tile_s + row * STRIDE + col;
        if (aligned)
            cp_async_16(to_s, from_g, present ? 16 : 0);
        else
            for (int j = 0; j < 8; j++)
                to_s[j] = present ? from_g[j] : fa_element(0.0f);
    }
}

/* S = Q K^T for 16 rows and N keys. ldmatrix_x4 reads four 8x8 blocks; lane l gives the address of row l % 8 of block
 * l / 8. For K two blocks are the 16 dimensions of keys 0-7, the others those of keys 8-15. */
__device__ void compute_scores(float (&s_r)[FA_N / 8][4], const fa_element *q_s, const fa_element *k_s, int lane)
{
    for (int d = 0; d < DIM; d += 16) {
        unsigned q_r[4], k_r[4];
        ldmatrix_x4(q_r, q_s + lane % 16 * STRIDE + d + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < FA_N; n += 16) {
            ldmatrix_x4(k_r, k_s + (n + lane / 16 * 8 + lane % 8) * STRIDE + d + lane / 8 % 2 * 8);
            mma_m16n8k16(s_r[n / 8], q_r, {k_r[0], k_r[1]});
            mma_m16n8k16(s_r[n / 8 + 1], q_r, {k_r[2], k_r[3]});
        }
    }
}

/* P = exp2(S - m), in place; a larger m rescales l and o. keys[h]: how many of the tile's keys row h sees. */
__device__ void online_softmax(warp_rows &rows, float (&s_r)[FA_N / 8][4], const int (&keys)[2], float scale, int lane)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float m = rows.m[h];
#pragma unroll
        for (int i = 0; i < FA_N / 8 * 2; i++) {
            float &s = s_r[i / 2][2 * h + i % 2];
            s = i / 2 * 8 + lane % 4 * 2 + i % 2 < keys[h] ? s * scale : -INF;
            m = fmaxf(m, s);
        }
        m = quad_max(m); /* four lanes share a row */
        const float alpha = exp2_approx(rows.m[h] - m);
        rows.m[h] = m;
        rows.l[h] *= alpha;
#pragma unroll
        for (int i = 0; i < FA_N / 8 * 2; i++) {
            float &s = s_r[i / 2][2 * h + i % 2];
            s = exp2_approx(s - m);
            rows.l[h] += s;
        }
#pragma unroll
        for (int i = 0; i < DIM / 8 * 2; i++)
            rows.o[i / 2][2 * h + i % 2] *= alpha;
    }
}

/* O += P V. Two neighbouring 16x8 blocks of P, as halves, are one left operand. V has a key per row: transposed. */
__device__ void add_values(warp_rows &rows, const float (&s_r)[FA_N / 8][4], const fa_element *v_s, int lane)
{
#pragma unroll
    for (int n = 0; n < FA_N; n += 16) {
        const float *left = s_r[n / 8], *right = s_r[n / 8 + 1];
        const unsigned p_r[4] = {pack_elements(left[0], left[1]), pack_elements(left[2], left[3]),
                                 pack_elements(right[0], right[1]), pack_elements(right[2], right[3])};
#pragma unroll
        for (int d = 0; d < DIM; d += 16) {
            unsigned v_r[4];
            ldmatrix_x4_trans(v_r, v_s + (n + lane % 16) * STRIDE + d + lane / 16 * 8);
            mma_m16n8k16(rows.o[d / 8], p_r, {v_r[0], v_r[1]});
            mma_m16n8k16(rows.o[d / 8 + 1], p_r, {v_r[2], v_r[3]});
        }
    }
}

/* Normalises and stores the warp's rows, the first of which is `warp_row` of the tile. */
__device__ void store_output(const fa_params &p, const query_tile &tile, int warp_row, const warp_rows &rows, int lane)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = warp_row + lane / 4 + 8 * h;
        const float l = quad_sum(rows.l[h]), inverse = inverse_of_sum(l);
#pragma unroll
        for (int i = 0; i < DIM / 8 * 2; i++) {
            const int col = i / 2 * 8 + lane % 4 * 2 + i % 2;
            if (row < tile.rows && col < FA_DIM)
                tile.o_g[row * p.o_stride_s + col] = fa_element(rows.o[i / 2][2 * h + i % 2] * inverse);
        }
#if FA_LSE
        if (row < tile.rows && lane % 4 == 0)
            store_lse(p, tile, row, log_sum_exp(rows.m[h], l));
#endif
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(fa_element, q_s);
    fa_element *k_s = q_s + FA_M * STRIDE, *v_s = k_s + 2 * TILE; /* two buffers each */
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;
    const query_tile tile = tile_of_block<FA_M>(p);
    const auto load_keys = [&](int key0, int buffer) {
        const int keys = p.seq_kv - key0;
        load_tile<FA_N>(k_s + buffer * TILE, tile.k_g + key0 * p.k_stride_s, p.k_stride_s, keys);
        load_tile<FA_N>(v_s + buffer * TILE, tile.v_g + key0 * p.v_stride_s, p.v_stride_s, keys);
    };

    warp_rows rows = {{}, {NO_MAX, NO_MAX}, {}};
    if (tile.keys > 0) {
        load_tile<FA_M>(q_s, tile.q_g, p.q_stride_s, tile.rows);
        load_keys(0, 0);
    }
    cp_async_commit();
    for (int key0 = 0, buffer = 0; key0 < tile.keys; key0 += FA_N, buffer ^= 1) {
        cp_async_wait<0>();
        __syncthreads(); /* this tile has landed, and all warps are done with the other buffer */
        if (key0 + FA_N < tile.keys)
            load_keys(key0 + FA_N, buffer ^ 1);
        cp_async_commit();

        float s_r[FA_N / 8][4] = {};
        compute_scores(s_r, q_s + warp_row * STRIDE, k_s + buffer * TILE, lane);
        const int row = tile.row0 + warp_row + lane / 4;
        const int keys[2] = {keys_of_row(p, row) - key0, keys_of_row(p, row + 8) - key0};
        online_softmax(rows, s_r, keys, p.scale * LOG2_E, lane);
        add_values(rows, s_r, v_s + buffer * TILE, lane);
    }
    store_output(p, tile, warp_row, rows, lane);
}
