/* cute: flash attention from the layouts and the SM80 TensorOp atoms of CuTe, the library under CUTLASS 3 and 4.
 *
 * Idea: layouts are types. A tile in shared memory is a composed layout (a swizzle over rows); the instructions are
 *   atoms (SM80_16x8x16 mma, SM75 ldmatrix, SM80 cp.async), and which thread holds which score is the atom's layout.
 *   CuTe's TiledMMA and TiledCopy give the same instructions, but a configuration then compiles for half a minute.
 * Softmax: online. Each row keeps its maximum and its sum; a larger maximum rescales the sum and the output.
 * Builds on: wmma.   Knobs: m, n, warps, stages (tiles of K and V in flight), swizzle (0: rows padded by 16 bytes).
 * Shared memory: Q [M][DIM], then stages of K [N][DIM] and of V [N][DIM]; the output goes through Q's place.
 * Limits: dim a multiple of 8 from 16 to 256. Rows that do not start on 16 bytes are copied element by element.
 * CUTLASS's headers are not part of this repository: scripts/setup.sh cutlass. */
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/copy_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/swizzle_layout.hpp>

#include "shared/schedule.cuh"

using element = cute::conditional_t<FA_BF16, cute::bfloat16_t, cute::half_t>;
using multiply = cute::MMA_Traits<
    cute::conditional_t<FA_BF16, cute::SM80_16x8x16_F32BF16BF16F32_TN, cute::SM80_16x8x16_F32F16F16F32_TN>>;
using load_blocks = cute::Copy_Traits<cute::SM75_U32x4_LDSM_N>; /* ldmatrix */
using load_blocks_trans = cute::Copy_Traits<cute::SM75_U16x8_LDSM_T>;
using copy_async = cute::Copy_Traits<cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>>;

static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "cute: dim must be 16, 24, ... 256");
static_assert(FA_M % (16 * FA_WARPS) == 0, "cute: M must be a multiple of 16 * WARPS (an mma takes 16 rows of a warp)");
static_assert(FA_M / (16 * FA_WARPS) * (FA_DIM + FA_N) <= 384,
              "cute: M / WARPS * (DIM + N) must be at most 6144: scores and outputs of a warp stay in registers");
static_assert(FA_N % 16 == 0, "cute: N must be a multiple of 16 (an mma of P V takes 16 keys)");
static_assert(FA_STAGES >= 2 && FA_STAGES <= 4, "cute: STAGES must be 2, 3 or 4 (loads run under the products)");
static_assert(FA_VEC == 8, "cute: VEC must be 8 (cp.async and ldmatrix move 16 bytes)");
static_assert(FA_SPLITS == 1, "cute: SPLITS must be 1");
static_assert(!FA_ACC_FP16, "cute: ACC must be fp32");

using namespace cute;

constexpr int THREADS = FA_WARPS * 32;
constexpr int WARP_ROWS = FA_M / FA_WARPS, BANDS = WARP_ROWS / 16; /* of 16 rows */
constexpr int DIM = ::ceil_div(FA_DIM, 16) * 16; /* an mma of Q K^T takes 16 dimensions; the extra ones are zero */
constexpr int LANES_PER_ROW = smaller(DIM / 8 & -(DIM / 8), 8); /* threads that copy 16 bytes each of one row at once */

/* [ROWS][DIM] in shared memory, so that the eight rows that ldmatrix reads at once lie in different banks. Swizzled:
 * the 16-byte pieces of a row change places by an XOR with the row's number, in pages of 16, 32 or 64 columns. */
constexpr int PAGE = 8 * LANES_PER_ROW;
template <int ROWS>
using padded_tile = Layout<Shape<Int<ROWS>, Int<DIM>>, Stride<Int<DIM + 8>, _1>>;
template <int ROWS>
using pages_of_tile =
    Layout<Shape<Int<ROWS>, Shape<Int<PAGE>, Int<DIM / PAGE>>>, Stride<Int<PAGE>, Stride<_1, Int<PAGE * ROWS>>>>;
using page_swizzle = Swizzle<LANES_PER_ROW == 8 ? 3 : LANES_PER_ROW == 4 ? 2 : 1, 3, 3>;
template <int ROWS>
using swizzled_tile = ComposedLayout<page_swizzle, _0, pages_of_tile<ROWS>>;
template <int ROWS>
using smem_tile = conditional_t<FA_SWIZZLE, swizzled_tile<ROWS>, padded_tile<ROWS>>;

constexpr int STRIDE = FA_SWIZZLE ? DIM : DIM + 8; /* elements of shared memory for a row */
constexpr int Q_SIZE = FA_M * STRIDE, KV_SIZE = FA_N * STRIDE;

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = (Q_SIZE + 2 * FA_STAGES * KV_SIZE) * 2, .writes_lse = FA_LSE,
               .serves_bf16 = 1);

/* 16 bytes of a tile, as a tensor that a copy takes. */
template <int ROWS>
__device__ __forceinline__ auto piece_in_shared(element *tile_s, int row, int col)
{
    return make_tensor(make_smem_ptr(tile_s + smem_tile<ROWS>{}(row, col)), Layout<_8>{});
}

template <class T>
__device__ __forceinline__ auto piece_in_global(T *row_g, int col)
{
    return make_tensor(make_gmem_ptr(row_g + col), Layout<_8>{});
}

__device__ __forceinline__ bool rows_are_aligned(const void *rows_g, fa_i64 stride)
{
    return (reinterpret_cast<fa_i64>(rows_g) | stride * 2) % 16 == 0;
}

/* Calls piece(row, col, present) for each 16-byte piece that this thread copies of a tile of TILE_ROWS rows. present:
 * its row is one of the first `rows`, and its columns are of the tensor. Few rows leave threads idle. */
constexpr int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }
template <int TILE_ROWS, class PIECE>
__device__ __forceinline__ void for_each_piece(int rows, const PIECE &piece)
{
    constexpr int ROWS_AT_ONCE = common_divisor(TILE_ROWS, THREADS / LANES_PER_ROW);
    if (ROWS_AT_ONCE * LANES_PER_ROW < THREADS && threadIdx.x >= ROWS_AT_ONCE * LANES_PER_ROW)
        return;
    const int row0 = threadIdx.x / LANES_PER_ROW, col0 = threadIdx.x % LANES_PER_ROW * 8;
#pragma unroll
    for (int row = 0; row < TILE_ROWS; row += ROWS_AT_ONCE)
#pragma unroll
        for (int col = 0; col < DIM; col += PAGE)
            piece(row0 + row, col0 + col, row0 + row < rows && (FA_DIM == DIM || col0 + col < FA_DIM));
}

/* Starts to copy rows [0, rows) of a tile; its other rows, and columns from FA_DIM on, become zero. */
template <int TILE_ROWS>
__device__ __forceinline__ void load_tile(element *tile_s, const fa_element *tile_g, fa_i64 stride, int rows)
{
    const element *src_g = reinterpret_cast<const element *>(tile_g);
    if (rows_are_aligned(src_g, stride)) {
        for_each_piece<TILE_ROWS>(rows, [&](int row, int col, bool present) {
            const auto from_g = piece_in_global(present ? src_g + row * stride : src_g, col);
            auto to_s = piece_in_shared<TILE_ROWS>(tile_s, row, col);
            copy_unpack(copy_async{}.with(present), from_g, to_s);
        });
        return;
    }
    for_each_piece<TILE_ROWS>(rows, [&](int row, int col, bool present) {
        const auto piece_s = piece_in_shared<TILE_ROWS>(tile_s, row, col);
        for (int i = 0; i < 8; i++)
            piece_s.data()[i] = present ? src_g[row * stride + col + i] : element(0);
    });
}

/* Accumulators of a warp's rows: 16x8 blocks, of which a thread holds four elements: two columns of two rows. */
template <int COLS>
using accumulators = decltype(make_tensor<float>(Shape<_4, Int<BANDS>, Int<COLS / 8>>{}));
constexpr int ROWS_OF_THREAD = 2 * BANDS; /* row r: accumulators 2 (r % 2) and the next, of band r / 2 */

template <class ACCUMULATORS>
__device__ __forceinline__ void set_zero(ACCUMULATORS &acc_r)
{
#pragma unroll
    for (int i = 0; i < size(acc_r); i++)
        acc_r(i) = 0.0f;
}

/* acc += left right, of one 16x8 block and 16 terms: mma.sync. */
template <class BLOCK, class LEFT, class RIGHT>
__device__ __forceinline__ void add_product(BLOCK &&acc_r, const LEFT &left_r, const RIGHT &right_r)
{
    mma_unpack(multiply{}, acc_r, left_r, right_r, acc_r);
}

/* Where element `i` of a thread's accumulators of a block lies. */
__device__ __forceinline__ int row_of(int i) { return multiply::CLayout{}(threadIdx.x % 32, i) % 16; }
__device__ __forceinline__ int col_of(int i) { return multiply::CLayout{}(threadIdx.x % 32, i) / 16; }

/* S = Q K^T. ldmatrix reads four 8x8 blocks; lane l gives the address of row l % 8 of block l / 8. The blocks of K are
 * the 16 dimensions of 8 keys, then of the next 8. */
__device__ __forceinline__ void compute_scores(accumulators<FA_N> &s_r, element *q_s, element *k_s)
{
    const int lane = threadIdx.x % 32, q_row = threadIdx.x / 32 * WARP_ROWS + lane % 16, q_col = lane / 16 * 8;
    const int k_row = lane / 16 * 8 + lane % 8, k_col = lane / 8 % 2 * 8;
    set_zero(s_r);
#pragma unroll
    for (int d = 0; d < DIM; d += 16) {
        auto q_r = make_tensor<element>(Shape<_8, Int<BANDS>>{});
#pragma unroll
        for (int band = 0; band < BANDS; band++)
            copy_unpack(load_blocks{}, piece_in_shared<FA_M>(q_s, q_row + band * 16, q_col + d), q_r(_, band));
#pragma unroll
        for (int n = 0; n < FA_N; n += 16) {
            auto k_r = make_tensor<element>(Shape<_4, _2>{});
            copy_unpack(load_blocks{}, piece_in_shared<FA_N>(k_s, k_row + n, k_col + d), group_modes<0, 2>(k_r));
#pragma unroll
            for (int block = 0; block < 2 * BANDS; block++)
                add_product(s_r(_, block / 2, n / 8 + block % 2), q_r(_, block / 2), k_r(_, block % 2));
        }
    }
}

/* O += P V. Two neighbouring blocks of scores are one left operand. V has a key per row: its blocks are transposed. */
__device__ __forceinline__ void add_values(accumulators<DIM> &o_r, const accumulators<FA_N> &s_r, element *v_s)
{
    const int lane = threadIdx.x % 32, v_row = lane % 16, v_col = lane / 16 * 8;
#pragma unroll
    for (int n = 0; n < FA_N; n += 16) {
        auto p_r = make_tensor<unsigned>(Shape<_4, Int<BANDS>>{});
#pragma unroll
        for (int i = 0; i < 4 * BANDS; i++)
            p_r(i) =
                pack_elements(s_r(i % 2 * 2, i / 4, n / 8 + i % 4 / 2), s_r(i % 2 * 2 + 1, i / 4, n / 8 + i % 4 / 2));
        const auto left_r = recast<element>(p_r);
#pragma unroll
        for (int d = 0; d < DIM; d += 16) {
            auto v_r = make_tensor<element>(Shape<_4, _2>{});
            copy_unpack(load_blocks_trans{}, piece_in_shared<FA_N>(v_s, v_row + n, v_col + d), group_modes<0, 2>(v_r));
#pragma unroll
            for (int block = 0; block < 2 * BANDS; block++)
                add_product(o_r(_, block / 2, d / 8 + block % 2), left_r(_, block / 2), v_r(_, block % 2));
        }
    }
}

/* Scores of keys that a row does not see become -inf. row0, key0: of the warp's rows and the tile's keys. */
__device__ __forceinline__ void mask_scores(accumulators<FA_N> &s_r, const fa_params &p, int row0, int key0)
{
#pragma unroll
    for (int row = 0; row < ROWS_OF_THREAD; row++) {
        const int keys = keys_of_row(p, row0 + row / 2 * 16 + row_of(row % 2 * 2)) - key0;
#pragma unroll
        for (int i = 0; i < FA_N / 4; i++) {
            float &s = s_r(row % 2 * 2 + i % 2, row / 2, i / 2);
            s = i / 2 * 8 + col_of(i % 2) < keys ? s : -INF;
        }
    }
}

/* Maximum and sum of the thread's rows; the sum is of its own columns only. */
struct softmax_rows {
    float m[ROWS_OF_THREAD], l[ROWS_OF_THREAD];
};

/* P = exp2(scale (S - m)), in place; a larger m rescales l and o. */
__device__ __forceinline__ void online_softmax(softmax_rows &rows, accumulators<FA_N> &s_r, accumulators<DIM> &o_r,
                                               float scale)
{
#pragma unroll
    for (int row = 0; row < ROWS_OF_THREAD; row++) {
        float m = rows.m[row];
#pragma unroll
        for (int i = 0; i < FA_N / 4; i++)
            m = fmaxf(m, s_r(row % 2 * 2 + i % 2, row / 2, i / 2));
        m = quad_max(m); /* four lanes share a row */
        const float alpha = exp2_approx((rows.m[row] - m) * scale), reference = m * scale;
        rows.m[row] = m;
        rows.l[row] *= alpha;
#pragma unroll
        for (int i = 0; i < FA_N / 4; i++) {
            float &s = s_r(row % 2 * 2 + i % 2, row / 2, i / 2);
            s = exp2_approx(s * scale - reference);
            rows.l[row] += s;
        }
#pragma unroll
        for (int i = 0; i < DIM / 4; i++)
            o_r(row % 2 * 2 + i % 2, row / 2, i / 2) *= alpha;
    }
}

/* Divides the rows by their sums into shared memory, and stores their log-sum-exp where it is asked for. */
__device__ __forceinline__ void normalise(element *o_s, const accumulators<DIM> &o_r, const softmax_rows &rows,
                                          const fa_params &p, const query_tile &tile, int warp_row)
{
#pragma unroll
    for (int row = 0; row < ROWS_OF_THREAD; row++) {
        const int at = warp_row + row / 2 * 16 + row_of(row % 2 * 2);
        const float l = quad_sum(rows.l[row]), inverse = inverse_of_sum(l);
#pragma unroll
        for (int block = 0; block < DIM / 8; block++)
            *reinterpret_cast<unsigned *>(o_s + smem_tile<FA_M>{}(at, block * 8 + col_of(0))) = pack_elements(
                o_r(row % 2 * 2, row / 2, block) * inverse, o_r(row % 2 * 2 + 1, row / 2, block) * inverse);
#if FA_LSE
        if (at < tile.rows && threadIdx.x % 4 == 0)
            store_lse(p, tile, at, log_sum_exp(rows.m[row] * (p.scale * LOG2_E), l));
#endif
    }
}

__device__ __forceinline__ void store_output(element *o_s, const query_tile &tile, fa_i64 stride)
{
    element *dst_g = reinterpret_cast<element *>(tile.o_g);
    const bool aligned = rows_are_aligned(dst_g, stride);
    for_each_piece<FA_M>(tile.rows, [&](int row, int col, bool present) {
        const auto piece_s = piece_in_shared<FA_M>(o_s, row, col);
        if (present && aligned)
            *reinterpret_cast<cute::uint128_t *>(dst_g + row * stride + col) = recast<cute::uint128_t>(piece_s)(0);
        for (int i = 0; i < 8 && present && !aligned; i++)
            dst_g[row * stride + col + i] = piece_s.data()[i];
    });
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(element, q_s, 128);
    element *const k_s = q_s + Q_SIZE, *const v_s = k_s + FA_STAGES * KV_SIZE;
    const int warp_row = threadIdx.x / 32 * WARP_ROWS;
    const query_tile tile = tile_of_block<FA_M>(p);
    const int whole = keys_of_row(p, tile.row0); /* keys that every row of the tile sees */
    /* One group of copies, empty behind the last key. */
    const auto load_keys = [&](int key0, int stage) {
        if (key0 < tile.keys) {
            load_tile<FA_N>(k_s + stage * KV_SIZE, tile.k_g + key0 * p.k_stride_s, p.k_stride_s, p.seq_kv - key0);
            load_tile<FA_N>(v_s + stage * KV_SIZE, tile.v_g + key0 * p.v_stride_s, p.v_stride_s, p.seq_kv - key0);
        }
        cute::cp_async_fence();
    };

    accumulators<FA_N> s_r;
    accumulators<DIM> o_r;
    softmax_rows rows;
    set_zero(o_r);
#pragma unroll
    for (int row = 0; row < ROWS_OF_THREAD; row++)
        rows.m[row] = NO_MAX, rows.l[row] = 0.0f;

    if (tile.keys > 0)
        load_tile<FA_M>(q_s, tile.q_g, p.q_stride_s, tile.rows);
#pragma unroll
    for (int stage = 0; stage < FA_STAGES - 1; stage++)
        load_keys(stage * FA_N, stage);
    for (int key0 = 0, stage = 0; key0 < tile.keys; key0 += FA_N, stage = (stage + 1) % FA_STAGES) {
        cute::cp_async_wait<FA_STAGES - 2>();
        __syncthreads(); /* this stage has landed, and all warps are done with the one before */
        load_keys(key0 + (FA_STAGES - 1) * FA_N, (stage + FA_STAGES - 1) % FA_STAGES);
        compute_scores(s_r, q_s, k_s + stage * KV_SIZE);
        if (key0 + FA_N > whole)
            mask_scores(s_r, p, tile.row0 + warp_row, key0);
        online_softmax(rows, s_r, o_r, p.scale * LOG2_E);
        add_values(o_r, s_r, v_s + stage * KV_SIZE);
    }
    __syncwarp(); /* a warp's rows of the output take the place of its queries */
    normalise(q_s, o_r, rows, p, tile, warp_row);
    __syncthreads();
    store_output(q_s, tile, p.o_stride_s);
}
