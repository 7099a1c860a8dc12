// Device functions that few kernels use: roundings, words, unordered comparisons, conversions that saturate, FP8 pairs.
#include "ordinary.cuh"

#include <cuda_bf16.h>
#include <math_constants.h>
#include <cuda_fp8.h>

template <typename H, typename H2>
static __device__ bool compares(H nan, H one)
{
    const H2 mixed(nan, one), ones(one, one);
    return !__hne(nan, one) && __hneu(nan, one) && nan != one && !__heq(nan, nan) && __hequ(nan, nan) &&
           !(nan >= one) && __hgeu(nan, one) && __hbgeu2(mixed, ones) && !__hbge2(mixed, ones) &&
           __heq2_mask(mixed, ones) == 0xffff0000u && __hequ2_mask(mixed, ones) == 0xffffffffu &&
           float(__hltu2(mixed, ones).x) == 1.0f && float(__hisnan2(mixed).x) == 1.0f &&
           float(__hcmadd(ones, ones, ones).y) == 3.0f && float(__hmul2_rn(ones, ones).x) == 1.0f;
}

CHECKS()
{
    const int big = (1 << 24) + 1;
    const float third = 1.0f / 3.0f, x = 3.0f + t * 0;
    EXPECT(fabs(CUDART_PI - 4 * atan(1.0)) < 1e-15 && CUDART_LN2_F == logf(2.0f) && CUDART_TWO_TO_23_F == 8388608.0f);
    EXPECT(__int2float_rz(big) == 16777216.0f && __int2float_ru(big) == 16777218.0f &&
           __ull2float_rd(~0ull) == 18446742974197923840.0f && __ll2double_rn(3) == 3.0);
    EXPECT(__frcp_rd(x) < __frcp_ru(x) && __frcp_rn(x) == third && __fdiv_rd(1.0f, x) == __frcp_rd(x));
    EXPECT(__fsqrt_rd(x) < __fsqrt_ru(x) && __fsqrt_rz(x) == __fsqrt_rd(x) && __fsqrt_ru(4.0f) == 2.0f);
    EXPECT(__fmaf_ru(third, x, -1.0f) == __fmaf_rd(third, x, -1.0f) && __fadd_ru(1.0f, 1e-20f) > 1.0f &&
           __fadd_rz(1.0f, 1e-20f) == 1.0f && __dadd_rd(1.0, -1e-40) < 1.0 && __ddiv_ru(1.0, 3.0) > 1.0 / 3.0);
    EXPECT(__float2int_rn(3e9f) == 0x7fffffff && __float2int_rz(NAN) == 0 && __float2uint_rn(-1.0f) == 0 &&
           __half2short_rz(__float2half(60000.0f)) == 32767 && __half2uchar_rz(__float2half(-3.0f)) == 0);
    EXPECT(float(__int2half_rz(2049)) == 2048.0f && float(__int2half_ru(2049)) == 2050.0f &&
           float(__int2bfloat16_rd(257)) == 256.0f && float(__float2bfloat16_ru(1.001f)) == 1.0078125f &&
           float(__float2bfloat16_rd(-1.001f)) == -1.0078125f);

    EXPECT(__funnelshift_lc(1, 2, 40) == 1 && __funnelshift_rc(1, 2, 32) == 2 && __funnelshift_l(1, 2, 4) == 32);
    EXPECT(__dp4a(make_char4(1, -2, 3, 4), make_char4(1, 1, 1, 1), 1) == 7);
    EXPECT(__viaddmax_s32(1, 2, 5) == 5 && __vimax3_s32(-1, -5, -7) == -1 &&
           __vimin3_u16x2(0x00050006, 0x00060005, ~0u) == 0x00050005 &&
           __viaddmin_s16x2(0x00060001, 0, 0x00050005) == 0x00050001);

    EXPECT((compares<__half, __half2>(__float2half(NAN), __float2half(1.0f))));
    EXPECT((compares<__nv_bfloat16, __nv_bfloat162>(__float2bfloat16(NAN), __float2bfloat16(1.0f))));
    EXPECT(float(h2log(__half2(1.0f, 1.0f)).x) == 0.0f && __hisinf(__nv_bfloat16(-INFINITY)) == -1 &&
           float(__highs2bfloat162(__nv_bfloat162(1.0f, 2.0f), __nv_bfloat162(3.0f, 4.0f)).y) == 4.0f);

    const __nv_fp8x2_e4m3 pair(__floats2half2_rn(1.0f, 2.0f));
    const __nv_fp8x4_e5m2 four(__floats2half2_rn(1.0f, 2.0f), __floats2half2_rn(3.0f, 4.0f));
    EXPECT(__high2float(__half2(pair)) == 2.0f && static_cast<float4>(four).z == 3.0f && int(__nv_fp8_e4m3(7u)) == 7 &&
           __nv_cvt_bfloat16raw2_to_fp8x2(__floats2bfloat162_rn(1, 2), __NV_SATFINITE, __NV_E4M3) == 0x4038);

    __shared__ int words[THREADS];
    words[t] = t;
    __barrier_sync(2);
    EXPECT(words[t ^ 33] == (t ^ 33));
    __barrier_sync_count(3, THREADS);
    words[t ^ 1] = 0;
}
