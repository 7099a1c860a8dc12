/* What the shared-memory kernels have in common: which rows a block works on, which keys a row sees, and
 * moving rows between global and shared memory at any alignment. */
#ifndef FA_COMMON_CUH
#define FA_COMMON_CUH

#include "prims.cuh"

constexpr int FA_THREADS = FA_WARPS * FA_WARP_SIZE;
constexpr float FA_LOG2_E = 1.4426950408889634f;

__host__ __device__ constexpr int fa_ceil_div(int a, int b) { return (a + b - 1) / b; }

__host__ __device__ constexpr int fa_round_up(int a, int b) { return fa_ceil_div(a, b) * b; }

__host__ __device__ constexpr int fa_max(int a, int b) { return a > b ? a : b; }

__host__ __device__ constexpr int fa_min(int a, int b) { return a < b ? a : b; }

/* `rows` query rows from `row0` of one (batch, head), and their keys [0, keys). */
struct fa_unit {
    const __half *q_g, *k_g, *v_g; /* first row of the tile; first row of the K/V head */
    __half *o_g;
    int row0, rows, keys;
};

/* Keys that query row `row` sees: [0, result). */
__device__ __forceinline__ int fa_keys_of_row(const fa_params &p, int row)
{
#if FA_CAUSAL
    return max(0, min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q));
#else
    (void)row;
    return p.seq_kv;
#endif
}

/* Tiles of one head are neighbours (they share K and V in L2); causal runs the longest tile of a head first. */
template <int TILE_M>
__device__ __forceinline__ fa_unit fa_unit_of_block(const fa_params &p)
{
    const unsigned tiles_m = p.tiles_m, batch_head = blockIdx.x / tiles_m, heads = p.heads;
    int tile = blockIdx.x - batch_head * tiles_m;
#if FA_CAUSAL
    tile = p.tiles_m - 1 - tile;
#endif
    const int batch = batch_head / heads, head = batch_head - batch * heads;
    const int kv_head = static_cast<unsigned>(head) / (heads / static_cast<unsigned>(p.kv_heads));
    fa_unit unit;
    unit.row0 = tile * TILE_M;
    unit.rows = min(TILE_M, p.seq_q - unit.row0);
    unit.keys = fa_keys_of_row(p, unit.row0 + unit.rows - 1);
    unit.q_g = static_cast<const __half *>(p.q) + batch * p.q_stride_b + head * p.q_stride_h + unit.row0 * p.q_stride_s;
    unit.k_g = static_cast<const __half *>(p.k) + batch * p.k_stride_b + kv_head * p.k_stride_h;
    unit.v_g = static_cast<const __half *>(p.v) + batch * p.v_stride_b + kv_head * p.v_stride_h;
    unit.o_g = static_cast<__half *>(p.o) + batch * p.o_stride_b + head * p.o_stride_h + unit.row0 * p.o_stride_s;
    return unit;
}

/* VEC halves as one register value. */
template <int VEC>
struct fa_vec_type;
template <>
struct fa_vec_type<1> {
    using type = unsigned short;
};
template <>
struct fa_vec_type<2> {
    using type = unsigned;
};
template <>
struct fa_vec_type<4> {
    using type = uint2;
};
template <>
struct fa_vec_type<8> {
    using type = uint4;
};
template <int VEC>
using fa_vec = typename fa_vec_type<VEC>::type;

/* Whether every row of a tensor starts where VEC halves can be read at once: pointer and strides (elements). */
template <int VEC>
__device__ __forceinline__ bool fa_rows_aligned(const void *base_g, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s)
{
    if (VEC == 1)
        return true;
    const unsigned long long strides = static_cast<unsigned long long>((stride_b | stride_h | stride_s) * 2);
    return ((reinterpret_cast<unsigned long long>(base_g) | strides) & (2 * VEC - 1)) == 0;
}

/* Order in which threads take the VEC-wide pieces of a ROWS x COLS tile: whole rows, neighbours in a row first. */
template <int COLS, int VEC>
struct fa_row_order {
    static constexpr unsigned PER_ROW = COLS / VEC;
    static constexpr unsigned PERIOD = PER_ROW, PERIOD_ROWS = 1; /* so many pieces are so many whole rows */
    __device__ static int row(unsigned piece) { return piece / PER_ROW; }
    __device__ static int col(unsigned piece) { return piece % PER_ROW * VEC; }
};

/* Copies rows [0, rows) of a [TILE_ROWS][COLS] tile to `place(row, col)` in shared memory; the other rows become zero.
 * Several loads are in flight per thread. THREADS threads take part, this one as number `thread`; the caller
 * synchronises. */
template <int VEC, int TILE_ROWS, int COLS, int THREADS, class ORDER, class PLACE>
__device__ __forceinline__ void fa_load_pieces(unsigned thread, const __half *src_g, fa_i64 stride, int rows,
                                               const PLACE &place)
{
    constexpr unsigned PIECES = TILE_ROWS * COLS / VEC;
    constexpr int BATCH = fa_min(VEC < FA_VEC ? 4 : 8, fa_ceil_div(PIECES, THREADS));
    for (unsigned first = thread; first < PIECES; first += THREADS * BATCH) {
        fa_vec<VEC> value_r[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const unsigned piece = first + i * THREADS;
            const int row = ORDER::row(piece);
            value_r[i] = {};
            if (row < rows)
                value_r[i] = *reinterpret_cast<const fa_vec<VEC> *>(src_g + row * stride + ORDER::col(piece));
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const unsigned piece = first + i * THREADS;
            if (piece < PIECES)
                *reinterpret_cast<fa_vec<VEC> *>(place(ORDER::row(piece), ORDER::col(piece))) = value_r[i];
        }
    }
}

template <int TILE_ROWS, int COLS, class PLACE>
__device__ __forceinline__ void fa_load_rows(const __half *src_g, fa_i64 stride, int rows, bool aligned,
                                             const PLACE &place)
{
    if (aligned)
        fa_load_pieces<FA_VEC, TILE_ROWS, COLS, FA_THREADS, fa_row_order<COLS, FA_VEC>>(threadIdx.x, src_g, stride,
                                                                                        rows, place);
    else
        fa_load_pieces<1, TILE_ROWS, COLS, FA_THREADS, fa_row_order<COLS, 1>>(threadIdx.x, src_g, stride, rows, place);
}

/* Two, four or eight halves in shared memory as floats. */
__device__ __forceinline__ void fa_floats(float (&f)[2], unsigned halves)
{
    const float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&halves));
    f[0] = pair.x;
    f[1] = pair.y;
}

__device__ __forceinline__ void fa_read_floats(float (&f)[4], const __half *src_s)
{
    const uint2 raw = *reinterpret_cast<const uint2 *>(src_s);
    fa_floats(reinterpret_cast<float(&)[2]>(f[0]), raw.x);
    fa_floats(reinterpret_cast<float(&)[2]>(f[2]), raw.y);
}

__device__ __forceinline__ void fa_read_floats(float (&f)[8], const __half *src_s)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(src_s);
    fa_floats(reinterpret_cast<float(&)[2]>(f[0]), raw.x);
    fa_floats(reinterpret_cast<float(&)[2]>(f[2]), raw.y);
    fa_floats(reinterpret_cast<float(&)[2]>(f[4]), raw.z);
    fa_floats(reinterpret_cast<float(&)[2]>(f[6]), raw.w);
}

__device__ __forceinline__ void fa_read_floats(float (&f)[4], const float *src_s)
{
    const float4 raw = *reinterpret_cast<const float4 *>(src_s);
    f[0] = raw.x, f[1] = raw.y, f[2] = raw.z, f[3] = raw.w;
}

/* Four outputs of one row; `aligned`: the row starts on 8 bytes. */
__device__ __forceinline__ void fa_write_halves(__half *dst_g, const float (&f)[4], bool aligned)
{
    if (aligned) {
        *reinterpret_cast<uint2 *>(dst_g) = make_uint2(pack_half2(f[0], f[1]), pack_half2(f[2], f[3]));
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        dst_g[i] = __float2half_rn(f[i]);
}

template <int WIDTH = FA_WARP_SIZE>
__device__ __forceinline__ float fa_warp_max(float x)
{
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2)
        x = fmaxf(x, __shfl_xor_sync(FA_WARP_ALL, x, mask));
    return x;
}

template <int WIDTH = FA_WARP_SIZE>
__device__ __forceinline__ float fa_warp_sum(float x)
{
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2)
        x += __shfl_xor_sync(FA_WARP_ALL, x, mask);
    return x;
}

/* Exponent base of a row whose largest score is m: a row without keys so far must not compute inf - inf. */
__device__ __forceinline__ float fa_finite_max(float m) { return m == -FA_INF ? 0.0f : m; }

#endif
