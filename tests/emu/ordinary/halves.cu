// Arithmetic of __half2, __nv_bfloat16 and __nv_bfloat162, conversions to FP8.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "ordinary.cuh"

#if !defined(__CUDACC__) || __CUDACC_VER_MAJOR__ < 12
#error a file for nvcc asks for it
#endif

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const half2 h = __hfma2(__floats2half2_rn(2, 3), __float2half2_rn(4), __half2half2(__float2half(1)));
    EXPECT(__low2float(h) == 9.0f && __high2float(h) == 13.0f);
    EXPECT(__hgt(__hmul(__float2half(3), __float2half(2)), __float2half(5.5f)));
    const __nv_bfloat16 b = __float2bfloat16(1.00390625f); // halfway: to even
    EXPECT(__bfloat162float(b) == 1.0f && __bfloat16_as_ushort(__float2bfloat16(-2.0f)) == 0xc000);
    const __nv_bfloat162 two = __hadd2(__floats2bfloat162_rn(1, 2), __float2bfloat162_rn(0.5f));
    const float2 f = __bfloat1622float2(two * two);
    EXPECT(f.x == 2.25f && f.y == 6.25f && __bfloat162float(__hfma(b, b, __float2bfloat16(3))) == 4.0f);
    const __nv_fp8_e4m3 e4(0.3f);
    const __nv_fp8_e5m2 e5(-0.3f);
    EXPECT(float(e4) == 0.3125f && float(e5) == -0.3125f && float(__nv_fp8_e4m3(1000.0f)) == 448.0f);
    const float nan = __int_as_float(0xffffe000); // every NaN is written as the same one
    EXPECT(__half_as_ushort(__float2half(nan)) == 0x7fff && __half_as_ushort(__half(double(nan))) == 0x7fff);
    EXPECT(__half_as_ushort(__hadd(__ushort_as_half(0xffff), __half(1.0f))) == 0x7fff);
    EXPECT(__nv_cvt_float_to_fp8(17.0f, __NV_SATFINITE, __NV_E4M3) == 0x58);
    constexpr nv_half one = __half_raw{0x3c00};
    constexpr nv_half2 pair(one, one);
    constexpr nv_bfloat162 pair_b(__nv_bfloat16_raw{0x3f80}, __nv_bfloat16_raw{0x4000});
    EXPECT(float(pair.y) == 1.0f && float(pair_b.y) == 2.0f && float(half(b)) == 1.0f);
#ifndef __CUDACC_RTC__ // nvcc alone has the constants
    EXPECT(CUDART_INF_FP16 > CUDART_MAX_NORMAL_FP16 && __hisnan(CUDART_NAN_BF16) && float(CUDART_ONE_BF16) == 1.0f);
#endif
    attend(p, good);
}
