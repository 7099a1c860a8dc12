/* __nv_bfloat16 and __nv_bfloat162: the upper half of a float. Every operation is done in float (fma in double) and
 * rounded once to the nearest, ties to even. */
#ifndef FA_EMU_BF16_H
#define FA_EMU_BF16_H

#ifndef FA_EMU_SHIM_H
#include "fa_emu.h"
#endif

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct __nv_bfloat162_raw {
    unsigned short x, y;
};

static inline unsigned short fa_emu_bf16_bits(float f)
{
    unsigned u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff; /* the device's NaN */
    return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : bits(fa_emu_bf16_bits(f)) {}
    __nv_bfloat16(double f) : bits(fa_emu_bf16_bits((float)f)) {}
    __nv_bfloat16(int i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(unsigned i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(long i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(unsigned long i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(long long i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(unsigned long long i) : bits(fa_emu_bf16_bits((float)i)) {}
    __nv_bfloat16(__half h) : bits(fa_emu_bf16_bits((float)h)) {}
    constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
    operator float() const
    {
        const unsigned u = (unsigned)bits << 16;
        float f;
        memcpy(&f, &u, sizeof f);
        return f;
    }
    constexpr operator __nv_bfloat16_raw() const { return {bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
    constexpr __nv_bfloat162(__nv_bfloat162_raw raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
    constexpr operator __nv_bfloat162_raw() const { return {x.bits, y.bits}; }
};
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x7f80})
#define CUDART_NAN_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x7fff})
#define CUDART_MIN_DENORM_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x0001})
#define CUDART_MAX_NORMAL_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x7f7f})
#define CUDART_NEG_ZERO_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x8000})
#define CUDART_ZERO_BF16 __nv_bfloat16(__nv_bfloat16_raw{0})
#define CUDART_ONE_BF16 __nv_bfloat16(__nv_bfloat16_raw{0x3f80})

/* Conversions. */
static inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
static inline __nv_bfloat16 __float2bfloat16_rz(float f)
{
    unsigned u;
    memcpy(&u, &f, sizeof u);
    return isnan(f) ? __nv_bfloat16(f) : __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)(u >> 16)});
}
/* Down is towards zero for positive numbers, one further for negative ones that are not whole; up the other way. */
static inline __nv_bfloat16 fa_emu_bf16_away(float f, bool negative)
{
    const __nv_bfloat16 near = __float2bfloat16_rz(f);
    if (isnan(f) || (float)near == f || signbit(f) != negative)
        return near;
    return __nv_bfloat16_raw{(unsigned short)(near.bits + 1)};
}
static inline __nv_bfloat16 __float2bfloat16_rd(float f) { return fa_emu_bf16_away(f, true); }
static inline __nv_bfloat16 __float2bfloat16_ru(float f) { return fa_emu_bf16_away(f, false); }
static inline __nv_bfloat16 __double2bfloat16(double f) { return f; }
static inline float __bfloat162float(__nv_bfloat16 b) { return b; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
static inline short __bfloat16_as_short(__nv_bfloat16 b) { return (short)b.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { return __nv_bfloat16_raw{u}; }
static inline __nv_bfloat16 __short_as_bfloat16(short u) { return __nv_bfloat16_raw{(unsigned short)u}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float f) { return {f, f}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {a, b}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 f) { return {f.x, f.y}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 b) { return {b.x, b.y}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 b) { return {b, b}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 b) { return b.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 b) { return b.y; }
static inline float __low2float(__nv_bfloat162 b) { return b.x; }
static inline float __high2float(__nv_bfloat162 b) { return b.y; }
static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 b) { return {b.x, b.x}; }
static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 b) { return {b.y, b.y}; }
static inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
static inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
static inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 b) { return {b.y, b.x}; }

/* Arithmetic, for one and for two. */
#define FA_EMU_BF16_1(name, name2, expression)        \
    static inline __nv_bfloat16 name(__nv_bfloat16 a) \
    {                                                 \
        const float x = a;                            \
        return expression;                            \
    }                                                 \
    static inline __nv_bfloat162 name2(__nv_bfloat162 a) { return {name(a.x), name(a.y)}; }
#define FA_EMU_BF16_2(name, name2, expression)                         \
    static inline __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) \
    {                                                                  \
        const float x = a, y = b;                                      \
        return expression;                                             \
    }                                                                  \
    static inline __nv_bfloat162 name2(__nv_bfloat162 a, __nv_bfloat162 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
FA_EMU_BF16_1(__hneg, __hneg2, -x)
FA_EMU_BF16_1(__habs, __habs2, fabsf(x))
FA_EMU_BF16_1(hexp, h2exp, expf(x))
FA_EMU_BF16_1(hexp2, h2exp2, exp2f(x))
FA_EMU_BF16_1(hlog, h2log, logf(x))
FA_EMU_BF16_1(hlog2, h2log2, log2f(x))
FA_EMU_BF16_1(hsqrt, h2sqrt, sqrtf(x))
FA_EMU_BF16_1(hrsqrt, h2rsqrt, 1.0f / sqrtf(x))
FA_EMU_BF16_1(hrcp, h2rcp, 1.0f / x)
FA_EMU_BF16_2(__hadd, __hadd2, x + y)
FA_EMU_BF16_2(__hsub, __hsub2, x - y)
FA_EMU_BF16_2(__hmul, __hmul2, x *y)
FA_EMU_BF16_2(__hdiv, __h2div, x / y)
FA_EMU_BF16_2(__hmax, __hmax2, fmaxf(x, y))
FA_EMU_BF16_2(__hmin, __hmin2, fminf(x, y))
#undef FA_EMU_BF16_1
#undef FA_EMU_BF16_2
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return (double)(float)a * (float)b + (double)(float)c;
}
static inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
static inline bool __hisnan(__nv_bfloat16 a) { return isnan((float)a); }
static inline int __hisinf(__nv_bfloat16 a) { return isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0; }

#define FA_EMU_BF16_OP(op, name)                                                                          \
    static inline __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return name(a, b); }      \
    static inline __nv_bfloat16 &operator op##=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = a op b; } \
    static inline __nv_bfloat162 operator op(__nv_bfloat162 a, __nv_bfloat162 b)                          \
    {                                                                                                     \
        return {name(a.x, b.x), name(a.y, b.y)};                                                          \
    }                                                                                                     \
    static inline __nv_bfloat162 &operator op##=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = a op b; }
FA_EMU_BF16_OP(+, __hadd)
FA_EMU_BF16_OP(-, __hsub)
FA_EMU_BF16_OP(*, __hmul)
FA_EMU_BF16_OP(/, __hdiv)
#undef FA_EMU_BF16_OP
static inline __nv_bfloat16 operator-(__nv_bfloat16 a) { return __hneg(a); }

FA_EMU_HALF_COMPARES(__nv_bfloat16, __nv_bfloat162)
FA_EMU_HALF_MORE(__nv_bfloat16, __nv_bfloat162)
FA_EMU_HALF_INTEGERS(__nv_bfloat16, bfloat16)

#endif
