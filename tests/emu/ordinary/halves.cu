// Operators, comparisons and conversions of half, bfloat16 and their pairs; conversions to FP8.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "ordinary.cuh"

#if !defined(__CUDACC__) || __CUDACC_VER_MAJOR__ < 12
#error a file for nvcc asks for it
#endif

CHECKS()
{
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
    {
        half2 a = __floats2half2_rn(1, 2), b = __half2half2(__float2half(3)),
              c = make_half2(__float2half(1), __float2half(2));
        EXPECT(__low2float(a + b) == 4 && __high2float(a * b) == 6 && __low2float(b - a) == 2 &&
               __high2float(b / a) == 1.5f && a == c && a != b);
        a += b;
        a *= b;
        a -= b;
        a = -a;
        EXPECT(__low2float(a) == -9);
        a = h2exp(__float2half2_rn(0));
        EXPECT(__low2float(a) == 1);
        half x = __float2half(2), y = 3.0f;
        x += y;
        x = x * y;
        EXPECT(float(x) == 15 && x > y && !(x < y) && x >= y && (float)hexp(__float2half(0)) == 1 && __hgt(x, y) &&
               __hlt(y, x) && __heq(x, x) && __hmax(x, y) == x && __hmin(x, y) == y &&
               (float)hsqrt(__float2half(4)) == 2 && (float)hrcp(__float2half(2)) == .5f &&
               (float)__hfma(x, y, y) == 48 && (float)__hneg(x) == -15 && (float)__habs(__hneg(x)) == 15);
        half2 m = __hmax2(c, b);
        EXPECT(__low2float(m) == 3 && __hbgt2(b, c) && __hbeq2(c, c) && !__hisnan(x) &&
               __hisinf(__ushort_as_half(0x7c00)));
        half2 l = __lows2half2(c, b), hh = __highs2half2(c, b), sw = __lowhigh2highlow(c);
        EXPECT(__high2float(l) == 3 && __low2float(hh) == 2 && __low2float(sw) == 2 && (float)__low2half(c) == 1 &&
               (float)__high2half(c) == 2 && __low2float(__low2half2(c)) == 1 && __high2float(__high2half2(c)) == 2 &&
               __low2float(__halves2half2(x, y)) == 15);
        float2 f = __half22float2(c);
        EXPECT(f.y == 2);
        half2 r = __float22half2_rn(make_float2(5, 6));
        EXPECT(__high2float(r) == 6 && (float)r.x == 5);
        half2 relu = __hfma2_relu(c, __float2half2_rn(-1), __float2half2_rn(0));
        EXPECT(__low2float(relu) == 0);
        half2 sat = __hadd2_sat(c, c);
        EXPECT(__low2float(sat) == 1);
        x++;
        ++x;
        EXPECT((float)x == 17);
        EXPECT(__half2int_rn(x) == 17 && __half2uint_rz(x) == 17 && (float)__ushort2half_rn(3) == 3 &&
               (float)__uint2half_rn(3) == 3 && __half2short_rn(x) == 17 && __half_as_short(x) != 0 &&
               (float)__short_as_half(__half_as_short(x)) == 17 && (float)__double2half(2.0) == 2 &&
               (float)__float2half_rz(1.0f) == 1 && (float)__float2half_ru(1.f) == 1);
        EXPECT((float)hceil(__float2half(1.5f)) == 2 && (float)hfloor(__float2half(1.5f)) == 1 &&
               (float)hlog2(__float2half(8)) == 3 && (float)hrsqrt(__float2half(4)) == .5f &&
               (float)htrunc(__float2half(1.5f)) == 1 && (float)hrint(__float2half(1.6f)) == 2 &&
               (float)hsin(__float2half(0.f)) == 0 && (float)htanh(__float2half(0.f)) == 0);
        unsigned bits = *reinterpret_cast<unsigned *>(&c);
        half2 back = *reinterpret_cast<half2 *>(&bits);
        EXPECT(__hbeq2(back, c));
        bool bb = x;
        int ii = x;
        EXPECT(bb && ii == 17);
        __half_raw raw = x;
        EXPECT(raw.x == __half_as_ushort(x));
        x = half(3);
        x = half{4.f};
        x = __half(2);
        x = 7;
        EXPECT((float)x == 7);
    }
    {
        __nv_bfloat162 a = __floats2bfloat162_rn(1, 2), b = __float2bfloat162_rn(3);
        EXPECT(__low2float(a + b) == 4 && __high2float(a * b) == 6 && __low2float(__hfma2(a, b, b)) == 6 &&
               __high2float(__hsub2(b, a)) == 1 && __high2float(__hmul2(a, a)) == 4);
        __nv_bfloat16 x = __float2bfloat16(2), y = 3.0f;
        x += y;
        x *= y;
        EXPECT((float)x == 15 && x > y && __hgt(x, y) && (float)__hmax(x, y) == 15 && (float)__hadd(x, y) == 18 &&
               (float)hexp(__float2bfloat16(0.f)) == 1 && (float)hsqrt(__float2bfloat16(4.f)) == 2);
        float2 f = __bfloat1622float2(a);
        EXPECT(f.y == 2);
        __nv_bfloat162 r = __float22bfloat162_rn(make_float2(5, 6));
        EXPECT((float)r.x == 5 && __bfloat162float(r.y) == 6 && (float)__low2bfloat16(r) == 5 &&
               (float)__high2bfloat16(r) == 6 && __low2float(__halves2bfloat162(x, y)) == 15 &&
               __low2float(__bfloat162bfloat162(x)) == 15 && __bfloat16_as_ushort(__float2bfloat16(1.f)) == 0x3f80 &&
               (float)__ushort_as_bfloat16(0x3f80) == 1 && (float)__float2bfloat16_rn(1) == 1 &&
               (float)__int2bfloat16_rn(3) == 3 && (float)__float2bfloat16_rz(1.f) == 1 && __bfloat162int_rn(x) == 15);
        nv_bfloat16 z = x;
        nv_bfloat162 zz{x, y};
        EXPECT((float)z == 15 && (float)zz.y == 3 && (float)(-z) == -15 && z == x && zz == zz);
        __nv_bfloat162 q = make_bfloat162(x, y);
        EXPECT((float)q.x == 15 && __hbgt2(q, a));
        __nv_bfloat16 u = __ldg((const __nv_bfloat16 *)p.q);
        EXPECT(__bfloat16_as_ushort(u) == *(const unsigned short *)p.q);
        EXPECT((float)__hneg(x) == -15 && (float)__habs(-x) == 15 && (float)__hfma(x, y, y) == 48 &&
               __low2float(__hmax2(a, b)) == 3 && __low2float(h2exp(__float2bfloat162_rn(0.f))) == 1 && !__hisnan(x));
        __shared__ __nv_bfloat162 s;
        __shared__ __nv_bfloat16 s1;
        if (t == 0) {
            s = __float2bfloat162_rn(0.f);
            s1 = __float2bfloat16(0.f);
        }
        __syncthreads();
        atomicAdd(&s, __float2bfloat162_rn(1.f));
        atomicAdd(&s1, __float2bfloat16(1.f));
        __syncthreads();
        EXPECT(__low2float(s) == THREADS && (float)s1 == THREADS);
    }
}
