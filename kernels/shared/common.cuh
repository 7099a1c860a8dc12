/* What all kernels share: constants of the online softmax, arithmetic on constants, reductions over a warp. */
#pragma once

#include "shared/prims.cuh"

constexpr float LOG2_E = 1.4426950408889634f; /* e^x = 2^(x LOG2_E) */

/* The maximum of a row that has seen no key. Finite: a difference of two is 0, and exp2 of NO_MAX - real is 0. */
constexpr float NO_MAX = -1e30f;

/* 1.0 twice, of fa_element: a product with ones sums the rows of P. */
constexpr unsigned TWO_ONES = FA_BF16 ? 0x3f803f80u : 0x3c003c00u;

/* A number that the compiler knows. */
template <int COUNT>
struct known {
    __device__ constexpr operator int() const { return COUNT; }
};

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

__host__ __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }

/* Zeros in all elements. */
__device__ __forceinline__ void clear(float &x) { x = 0.0f; }

template <class T, int COUNT>
__device__ __forceinline__ void clear(T (&x)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        clear(x[i]);
}

#if FA_FP8_KV
/* Two halves as fa_elements. */
__device__ __forceinline__ unsigned elements_of(__half2 pair)
{
#if FA_BF16
    const float2 wide = __half22float2(pair);
    return pack_elements(wide.x, wide.y);
#else
    return *reinterpret_cast<const unsigned *>(&pair);
#endif
}

/* Four e4m3 as fa_elements, the first and third and then the second and fourth. Before sm_89 a NaN becomes 480. */
__device__ __forceinline__ void unpack_e4m3(unsigned &even, unsigned &odd, unsigned four)
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890 /* to their places; the exponents differ by 8 */
        const unsigned high = i == 0 ? four << 8 : four, small = (high & 0x80008000u) | (high & 0x7f007f00u) >> 1;
        const __half2 pair = __hmul2(*reinterpret_cast<const __half2 *>(&small), __half2half2(__half(256.0f)));
#else
        const unsigned pairs = __byte_perm(four, 0, 0x3120);
        const __half2 pair = __nv_cvt_fp8x2_to_halfraw2(static_cast<unsigned short>(pairs >> 16 * i), __NV_E4M3);
#endif
        (i == 0 ? even : odd) = elements_of(pair);
    }
}

/* Four e4m3 as fa_elements in their order. sm_89. The compiler would shift the second pair; here cvt reads it in its
 * place. [cvt.rn.f16x2.e4m3x2] */
__device__ __forceinline__ void unpack_e4m3_pairs(unsigned &first, unsigned &second, unsigned four)
{
    unsigned pair[2];
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.rn.f16x2.e4m3x2 %0, lo; cvt.rn.f16x2.e4m3x2 %1, hi; }\n"
        : "=r"(pair[0]), "=r"(pair[1])
        : "r"(four));
    first = elements_of(*reinterpret_cast<const __half2 *>(&pair[0]));
    second = elements_of(*reinterpret_cast<const __half2 *>(&pair[1]));
}
#endif

template <int WIDTH = WARP_SIZE>
__device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2)
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, mask));
    return x;
}

template <int WIDTH = WARP_SIZE>
__device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int mask = WIDTH / 2; mask > 0; mask /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, mask);
    return x;
}

/* Over the four lanes of a quad, which share the rows of an accumulator of mma.sync or wgmma. */
__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

/* The log-sum-exp of a row: its scores in log2 units were reduced by `ref`, its exponentials add up to `sum`. A row
 * that saw no key has a finite reference, and a sum of 0, whose logarithm is -infinity. */
__device__ __forceinline__ float log_sum_exp(float ref, float sum)
{
    constexpr float LN_2 = 0.693147180559945f;
    return (ref + log2_approx(sum)) * LN_2;
}

/* log_sum_exp from 1 / sum, which is 0 for a row that saw no key. */
__device__ __forceinline__ float log_sum_exp_of_inverse(float ref, float inverse)
{
    constexpr float LN_2 = 0.693147180559945f;
    return inverse > 0.0f ? (ref - log2_approx(inverse)) * LN_2 : -INF;
}

#if FA_LSE
__device__ __forceinline__ void store_lse(const fa_params &p, int batch, int head, int row, float value)
{
    if (p.lse != nullptr)
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] = value;
}
#endif

/* The factor that normalises a row; a row that saw no key gives 0. Its error, 1 ulp, is far below what 16 bits keep. */
__device__ __forceinline__ float inverse_of_sum(float sum) { return sum > 0.0f ? reciprocal_approx(sum) : 0.0f; }
