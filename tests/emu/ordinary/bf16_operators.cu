// Operators, comparisons and conversions of bfloat16.
#include <cuda_bf16.h>

#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;

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

    attend(p, good);
}
