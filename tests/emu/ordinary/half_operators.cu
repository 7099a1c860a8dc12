// Operators, comparisons and conversions of half and half2.
#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;

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
           __hlt(y, x) && __heq(x, x) && __hmax(x, y) == x && __hmin(x, y) == y && (float)hsqrt(__float2half(4)) == 2 &&
           (float)hrcp(__float2half(2)) == .5f && (float)__hfma(x, y, y) == 48 && (float)__hneg(x) == -15 &&
           (float)__habs(__hneg(x)) == 15);
    half2 m = __hmax2(c, b);
    EXPECT(__low2float(m) == 3 && __hbgt2(b, c) && __hbeq2(c, c) && !__hisnan(x) && __hisinf(__ushort_as_half(0x7c00)));
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

    attend(p, good);
}
