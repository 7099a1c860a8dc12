/* half and half2 on _Float16. Every operation is done in float (or double) and rounded once, which for + - * / and sqrt
 * of halves is the correctly rounded result the device gives. */
#pragma once

#include "fa_emu.h"

struct __half_raw {
    unsigned short x;
};

struct __half2_raw {
    unsigned short x, y;
};

/* Rounded to nearest. Every NaN becomes the device's: one that a kernel computes is never taken for the pattern that an
 * output holds before it is written. */
template <typename fa_T>
static inline _Float16 fa_emu_fp16(fa_T f)
{
    const unsigned short nan = 0x7fff;
    _Float16 h = (_Float16)f;
    if (f != f)
        memcpy(&h, &nan, sizeof h);
    return h;
}

struct __half {
    _Float16 v;
    __half() = default;
    __half(float f) : v(fa_emu_fp16(f)) {}
    __half(double f) : v(fa_emu_fp16(f)) {}
    __half(int i) : v((_Float16)(float)i) {}
    __half(unsigned i) : v((_Float16)(float)i) {}
    __half(long i) : v((_Float16)(double)i) {}
    __half(unsigned long i) : v((_Float16)(double)i) {}
    __half(long long i) : v((_Float16)(double)i) {}
    __half(unsigned long long i) : v((_Float16)(double)i) {}
    constexpr __half(__half_raw raw) : v(__builtin_bit_cast(_Float16, raw.x)) {}
    operator float() const { return (float)v; }
    constexpr operator __half_raw() const { return {__builtin_bit_cast(unsigned short, v)}; }
    __half &operator=(float f)
    {
        v = fa_emu_fp16(f);
        return *this;
    }
};
typedef __half half;

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(__half a, __half b) : x(a), y(b) {}
    constexpr __half2(__half2_raw raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
    constexpr operator __half2_raw() const { return {__half_raw(x).x, __half_raw(y).x}; }
};
typedef __half2 half2;
typedef __half __nv_half, nv_half;
typedef __half2 __nv_half2, nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

#define CUDART_INF_FP16 __half(__half_raw{0x7c00})
#define CUDART_NAN_FP16 __half(__half_raw{0x7fff})
#define CUDART_MIN_DENORM_FP16 __half(__half_raw{0x0001})
#define CUDART_MAX_NORMAL_FP16 __half(__half_raw{0x7bff})
#define CUDART_NEG_ZERO_FP16 __half(__half_raw{0x8000})
#define CUDART_ZERO_FP16 __half(__half_raw{0})
#define CUDART_ONE_FP16 __half(__half_raw{0x3c00})

static inline __half fa_emu_half(float f) { return f; }
static inline float fa_emu_float(__half h) { return (float)h.v; }

static inline __half __float2half(float f) { return fa_emu_half(f); }
static inline __half __float2half_rn(float f) { return fa_emu_half(f); }
static inline __half __double2half(double f) { return f; }
static inline float __half2float(__half h) { return fa_emu_float(h); }
static inline unsigned short __half_as_ushort(__half h) { return __builtin_bit_cast(unsigned short, h.v); }
static inline short __half_as_short(__half h) { return __builtin_bit_cast(short, h.v); }
static inline __half __ushort_as_half(unsigned short u) { return __half_raw{u}; }
static inline __half __short_as_half(short u) { return __half_raw{(unsigned short)u}; }
/* Towards zero, down, up: the nearest half, one step back where that went past. */
static inline __half fa_emu_half_step(float f, bool past, bool away)
{
    const __half near = fa_emu_half(f);
    if (!past)
        return near;
    return __ushort_as_half((unsigned short)(__half_as_ushort(near) + (away ? 1 : -1)));
}
static inline __half __float2half_rz(float f)
{
    return fa_emu_half_step(f, !isinf(f) && fabsf(fa_emu_float(fa_emu_half(f))) > fabsf(f), false);
}
static inline __half __float2half_rd(float f)
{
    const float n = fa_emu_float(fa_emu_half(f));
    if (!(n > f) || isinf(f))
        return fa_emu_half(f);
    return n == 0 ? __ushort_as_half(0x8001) : fa_emu_half_step(f, true, n < 0);
}
static inline __half __float2half_ru(float f)
{
    const float n = fa_emu_float(fa_emu_half(f));
    if (!(n < f) || isinf(f))
        return fa_emu_half(f);
    return n == 0 ? __ushort_as_half(0x0001) : fa_emu_half_step(f, true, n > 0);
}

/* Arithmetic that rounds otherwise than a float does. */
static inline __half __hneg(__half a) { return __ushort_as_half(__half_as_ushort(a) ^ 0x8000); }
static inline __half __habs(__half a) { return __ushort_as_half(__half_as_ushort(a) & 0x7fff); }
/* The product is exact in float, the sum of it and a half in double but for far cancellations. */
static inline __half __hfma(__half a, __half b, __half c)
{
    return __double2half((double)(fa_emu_float(a) * fa_emu_float(b)) + (double)fa_emu_float(c));
}

#include "fa_emu_half_more.h"
FA_EMU_HALF_PAIRS(__half, __half2, half)
FA_EMU_HALF_COMPARES(__half, __half2)
FA_EMU_HALF_MORE(__half, __half2)
FA_EMU_HALF_INTEGERS(__half, half)
