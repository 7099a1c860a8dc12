/* Moving rows between global memory, shared memory and registers. There are two tile loaders: load_pieces goes through
 * registers and takes any alignment, copy_pieces is cp.async. Both take an ORDER, which thread takes which piece of the
 * tile, and a function place(row, col), where the piece goes in shared memory.
 * Three kernels have loaders of their own, because their copies are part of a schedule: mma spreads those of a tile
 * over the products of another (mma/tile.cuh), mma_decode loads beside few registers, in a short loop, and the wgmma
 * kernels load by TMA (wgmma/parts.cuh). */
#pragma once

#include "shared/common.cuh"

constexpr int THREADS = FA_WARPS * WARP_SIZE; /* of a block */

/* VEC elements as one register value. */
template <int BYTES>
struct vec_type;
#define VEC_TYPE(BYTES, NAME) \
    template <>               \
    struct vec_type<BYTES> {  \
        using type = NAME;    \
    }
VEC_TYPE(1, unsigned char);
VEC_TYPE(2, unsigned short);
VEC_TYPE(4, unsigned);
VEC_TYPE(8, uint2);
VEC_TYPE(16, uint4);
#undef VEC_TYPE
template <int VEC, class ELEMENT = fa_element>
using vec_t = typename vec_type<VEC *static_cast<int>(sizeof(ELEMENT))>::type;

/* Whether every row of a tensor starts where VEC elements can be read at once: pointer and strides (elements). */
template <int VEC, class ELEMENT = fa_element>
__device__ __forceinline__ bool rows_aligned(const void *base_g, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s)
{
    constexpr int BYTES = sizeof(ELEMENT);
    if (VEC == 1)
        return true;
    const unsigned long long strides = static_cast<unsigned long long>((stride_b | stride_h | stride_s) * BYTES);
    return ((reinterpret_cast<unsigned long long>(base_g) | strides) & (BYTES * VEC - 1)) == 0;
}

/* Order in which threads take the VEC-wide pieces of a ROWS x COLS tile: whole rows, neighbours in a row first. */
template <int COLS, int VEC>
struct row_order {
    static constexpr unsigned PER_ROW = COLS / VEC;
    static constexpr unsigned PERIOD = PER_ROW, PERIOD_ROWS = 1; /* so many pieces are so many whole rows */
    __device__ static int row(unsigned piece) { return piece / PER_ROW; }
    __device__ static int col(unsigned piece) { return piece % PER_ROW * VEC; }
};

/* Copies rows [0, rows) of a [TILE_ROWS][COLS] tile to `place(row, col)` in shared memory; the other rows become zero.
 * Several loads are in flight per thread. THREADS threads take part, this one as number `thread`; the caller
 * synchronises. */
template <int VEC, int TILE_ROWS, int COLS, int THREADS, class ORDER, class ELEMENT, class PLACE>
__device__ __forceinline__ void load_pieces(unsigned thread, const ELEMENT *src_g, fa_i64 stride, int rows,
                                            const PLACE &place)
{
    using piece_type = vec_t<VEC, ELEMENT>;
    constexpr unsigned PIECES = TILE_ROWS * COLS / VEC;
    constexpr int BATCH = smaller(VEC < FA_VEC ? 4 : 8, ceil_div(PIECES, THREADS));
    for (unsigned first = thread; first < PIECES; first += THREADS * BATCH) {
        piece_type value_r[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const unsigned piece = first + i * THREADS;
            const int row = ORDER::row(piece);
            value_r[i] = {};
            if (row < rows)
                value_r[i] = *reinterpret_cast<const piece_type *>(src_g + row * stride + ORDER::col(piece));
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const unsigned piece = first + i * THREADS;
            if (piece < PIECES)
                *reinterpret_cast<piece_type *>(place(ORDER::row(piece), ORDER::col(piece))) = value_r[i];
        }
    }
}

template <int TILE_ROWS, int COLS, class ELEMENT, class PLACE>
__device__ __forceinline__ void load_rows(const ELEMENT *src_g, fa_i64 stride, int rows, bool aligned,
                                          const PLACE &place)
{
    if (aligned)
        load_pieces<FA_VEC, TILE_ROWS, COLS, THREADS, row_order<COLS, FA_VEC>>(threadIdx.x, src_g, stride, rows, place);
    else
        load_pieces<1, TILE_ROWS, COLS, THREADS, row_order<COLS, 1>>(threadIdx.x, src_g, stride, rows, place);
}

/* VEC elements without passing through registers; nothing is read when !present. */
template <int VEC>
__device__ __forceinline__ void copy_async(void *dst_s, const void *src_g, bool present)
{
    static_assert(VEC == 2 || VEC == 4 || VEC == 8);
    if constexpr (VEC == 8)
        cp_async_16(dst_s, src_g, present ? 16 : 0);
    else if constexpr (VEC == 4)
        cp_async_8(dst_s, src_g, present ? 8 : 0);
    else
        cp_async_4(dst_s, src_g, present ? 4 : 0);
}

template <int TILE_ROWS, int THREADS, class ORDER, class PLACE>
__device__ __forceinline__ void copy_pieces(unsigned thread, const fa_element *src_g, fa_i64 stride, int rows,
                                            const PLACE &place)
{
    constexpr unsigned PIECES = TILE_ROWS * FA_DIM / FA_VEC;
    /* Where a round of all threads is whole rows, a thread's pieces are one column of rows ROW_STEP apart. */
    constexpr bool REGULAR = THREADS % ORDER::PERIOD == 0;
    constexpr int ROW_STEP = THREADS / ORDER::PERIOD * ORDER::PERIOD_ROWS;
    const int row0 = ORDER::row(thread), col0 = ORDER::col(thread);
    const fa_element *piece_g = src_g + row0 * stride + col0;
#pragma unroll
    for (unsigned i = 0; i < (PIECES + THREADS - 1) / THREADS; i++) {
        const unsigned piece = i * THREADS + thread;
        const int row = REGULAR ? row0 + static_cast<int>(i) * ROW_STEP : ORDER::row(piece);
        const int col = REGULAR ? col0 : ORDER::col(piece);
        if (!REGULAR)
            piece_g = src_g + row * stride + col;
        if (PIECES % THREADS == 0 || piece < PIECES)
            copy_async<FA_VEC>(place(row, col), row < rows ? piece_g : src_g, row < rows);
        piece_g += ROW_STEP * stride;
    }
}

/* Two, four or eight elements in shared memory as floats. */
__device__ __forceinline__ void unpack_floats(float (&f)[2], unsigned elements)
{
#if FA_BF16 /* the upper half of a float */
    f[0] = __uint_as_float(elements << 16);
    f[1] = __uint_as_float(elements & 0xffff0000u);
#else
    const float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&elements));
    f[0] = pair.x;
    f[1] = pair.y;
#endif
}

__device__ __forceinline__ void read_floats(float (&f)[4], const fa_element *src_s)
{
    const uint2 raw = *reinterpret_cast<const uint2 *>(src_s);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[0]), raw.x);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[2]), raw.y);
}

__device__ __forceinline__ void read_floats(float (&f)[8], const fa_element *src_s)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(src_s);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[0]), raw.x);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[2]), raw.y);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[4]), raw.z);
    unpack_floats(reinterpret_cast<float(&)[2]>(f[6]), raw.w);
}

#if FA_FP8 || FA_FP8_KV
__device__ __forceinline__ void unpack_floats(float (&f)[4], unsigned elements)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        __nv_fp8_e4m3 element;
        element.__x = static_cast<unsigned char>(elements >> (8 * i));
        f[i] = static_cast<float>(element);
    }
}

__device__ __forceinline__ void read_floats(float (&f)[4], const __nv_fp8_e4m3 *src_s)
{
    unpack_floats(f, *reinterpret_cast<const unsigned *>(src_s));
}

__device__ __forceinline__ void read_floats(float (&f)[8], const __nv_fp8_e4m3 *src_s)
{
    const uint2 raw = *reinterpret_cast<const uint2 *>(src_s);
    unpack_floats(reinterpret_cast<float(&)[4]>(f[0]), raw.x);
    unpack_floats(reinterpret_cast<float(&)[4]>(f[4]), raw.y);
}
#endif

__device__ __forceinline__ void read_floats(float (&f)[4], const float *src_s)
{
    const float4 raw = *reinterpret_cast<const float4 *>(src_s);
    f[0] = raw.x, f[1] = raw.y, f[2] = raw.z, f[3] = raw.w;
}

/* Four outputs of one row; `aligned`: the row starts on 8 bytes. */
__device__ __forceinline__ void write_elements(fa_element *dst_g, const float (&f)[4], bool aligned)
{
    if (aligned) {
        *reinterpret_cast<uint2 *>(dst_g) = make_uint2(pack_elements(f[0], f[1]), pack_elements(f[2], f[3]));
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        dst_g[i] = fa_element(f[i]);
}
