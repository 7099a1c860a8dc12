/* __nv_bfloat16 and __nv_bfloat162: the upper half of a float. Every operation is done in float (fma in double) and
 * rounded once to the nearest, ties to even. */
#pragma once

#include "fa_emu.h"

struct __nv_bfloat16_raw {
    unsigned short x;
};

struct __nv_bfloat162_raw {
    unsigned short x, y;
};

static inline unsigned short fa_emu_bf16_bits(float f)
{
    const unsigned u = __builtin_bit_cast(unsigned, f);
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
    operator float() const { return __builtin_bit_cast(float, (unsigned)bits << 16); }
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

static inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
static inline __nv_bfloat16 __float2bfloat16_rz(float f)
{
    const unsigned u = __builtin_bit_cast(unsigned, f);
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
static inline __nv_bfloat16 __hneg(__nv_bfloat16 a) { return -(float)a; }
static inline __nv_bfloat16 __habs(__nv_bfloat16 a) { return fabsf(a); }
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return (double)(float)a * (float)b + (double)(float)c;
}

FA_EMU_HALF_PAIRS(__nv_bfloat16, __nv_bfloat162, bfloat16)
FA_EMU_HALF_COMPARES(__nv_bfloat16, __nv_bfloat162)
FA_EMU_HALF_MORE(__nv_bfloat16, __nv_bfloat162)
FA_EMU_HALF_INTEGERS(__nv_bfloat16, bfloat16)
