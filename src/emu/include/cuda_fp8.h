/* FP8 by conversion (OCP 8-bit formats): E4M3 has no infinity and one NaN, 0x7f; E5M2 is an FP16 with eight bits less.
 * Round to the nearest, ties to even; saturation as the conversion says. */
#pragma once

#include "cuda_bf16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

static inline double fa_emu_fp8_value(unsigned bits, __nv_fp8_interpretation_t kind)
{
    const int mantissa_bits = kind == __NV_E4M3 ? 3 : 2, bias = kind == __NV_E4M3 ? 7 : 15;
    const int exponent = (int)(bits >> mantissa_bits) & (kind == __NV_E4M3 ? 15 : 31);
    const int mantissa = (int)bits & ((1 << mantissa_bits) - 1);
    const double sign = bits & 0x80 ? -1.0 : 1.0;
    if (kind == __NV_E4M3 ? (bits & 0x7f) == 0x7f : exponent == 31 && mantissa != 0)
        return NAN;
    if (kind == __NV_E5M2 && exponent == 31)
        return sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

static inline __nv_fp8_storage_t fa_emu_fp8_of(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind)
{
    const unsigned sign = signbit(x) ? 0x80 : 0, largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
    if (isnan(x))
        return (unsigned char)(kind == __NV_E4M3 ? 0x7f : 0x7e | sign);
    const double size = fabs(x);
    unsigned low = 0, high = largest; /* values grow with their bits: the largest that is not above */
    while (low < high) {
        const unsigned middle = (low + high + 1) / 2;
        if (fa_emu_fp8_value(middle, kind) <= size)
            low = middle;
        else
            high = middle - 1;
    }
    const double at = fa_emu_fp8_value(low, kind);
    const double step = low < largest ? fa_emu_fp8_value(low + 1, kind) - at : kind == __NV_E4M3 ? 32 : 8192;
    const bool up = size - at > step / 2 || (size - at == step / 2 && (low & 1));
    if (up && low == largest)
        return (unsigned char)(sign | (saturate == __NV_SATFINITE ? largest : kind == __NV_E4M3 ? 0x7f : 0x7c));
    return (unsigned char)(sign | (low + up));
}

static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t kind)
{
    return fa_emu_fp8_of(x, s, kind);
}
static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t kind)
{
    return fa_emu_fp8_of(x, s, kind);
}
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s,
                                                         __nv_fp8_interpretation_t kind)
{
    return fa_emu_fp8_of((float)__half(x), s, kind);
}
static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t s,
                                                            __nv_fp8_interpretation_t kind)
{
    return (unsigned short)(fa_emu_fp8_of(x.x, s, kind) | fa_emu_fp8_of(x.y, s, kind) << 8);
}
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind)
{
    return __half((float)fa_emu_fp8_value(x, kind));
}

static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind)
{
    return {__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
            __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x};
}
static inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t s,
                                                              __nv_fp8_interpretation_t kind)
{
    return (unsigned short)(__nv_cvt_halfraw_to_fp8({x.x}, s, kind) | __nv_cvt_halfraw_to_fp8({x.y}, s, kind) << 8);
}
static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t s,
                                                             __nv_fp8_interpretation_t kind)
{
    return (unsigned short)(fa_emu_fp8_of(x.x, s, kind) | fa_emu_fp8_of(x.y, s, kind) << 8);
}
static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t s,
                                                             __nv_fp8_interpretation_t kind)
{
    return fa_emu_fp8_of((float)__nv_bfloat16(x), s, kind);
}
static inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t s,
                                                                  __nv_fp8_interpretation_t kind)
{
    return (unsigned short)(__nv_cvt_bfloat16raw_to_fp8({x.x}, s, kind) | __nv_cvt_bfloat16raw_to_fp8({x.y}, s, kind)
                                                                              << 8);
}

/* The types, with their conversions from and to float. */
#define FA_EMU_FP8_TYPE(name, kind)                                                             \
    struct name {                                                                               \
        __nv_fp8_storage_t __x;                                                                 \
        name() = default;                                                                       \
        explicit name(float f) : __x(fa_emu_fp8_of(f, __NV_SATFINITE, kind)) {}                 \
        explicit name(double f) : __x(fa_emu_fp8_of(f, __NV_SATFINITE, kind)) {}                \
        template <typename fa_I, std::enable_if_t<std::is_integral_v<fa_I>, int> = 0>           \
        explicit name(fa_I i) : __x(fa_emu_fp8_of((double)i, __NV_SATFINITE, kind))             \
        {                                                                                       \
        }                                                                                       \
        template <typename fa_I, std::enable_if_t<std::is_integral_v<fa_I>, int> = 0>           \
        explicit operator fa_I() const                                                          \
        {                                                                                       \
            return fa_emu_integer_of<fa_I>(trunc(fa_emu_fp8_value(__x, kind)));                 \
        }                                                                                       \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                            \
        explicit name(__half h) : __x(fa_emu_fp8_of((float)h, __NV_SATFINITE, kind)) {}         \
        explicit name(__nv_bfloat16 b) : __x(fa_emu_fp8_of((float)b, __NV_SATFINITE, kind)) {}  \
        explicit operator float() const { return (float)fa_emu_fp8_value(__x, kind); }          \
        explicit operator double() const { return fa_emu_fp8_value(__x, kind); }                \
        explicit operator __half() const { return __half((float)fa_emu_fp8_value(__x, kind)); } \
        explicit operator __nv_bfloat16() const { return (float)fa_emu_fp8_value(__x, kind); }  \
    };
FA_EMU_FP8_TYPE(__nv_fp8_e4m3, __NV_E4M3)
FA_EMU_FP8_TYPE(__nv_fp8_e5m2, __NV_E5M2)
#undef FA_EMU_FP8_TYPE

#define FA_EMU_FP8_WIDE(name, one, count, storage, wide, pairs, ...) \
    struct alignas(count) name {                                     \
        storage __x;                                                 \
        name() = default;                                            \
        pairs explicit name(wide f)                                  \
        {                                                            \
            const float all[count] = {__VA_ARGS__};                  \
            __x = 0;                                                 \
            for (int i = 0; i < count; i++)                          \
                __x |= (storage)((storage)one(all[i]).__x << 8 * i); \
        }                                                            \
        explicit operator wide() const                               \
        {                                                            \
            float all[4];                                            \
            for (int i = 0; i < count; i++) {                        \
                one part;                                            \
                part.__x = (__nv_fp8_storage_t)(__x >> 8 * i);       \
                all[i] = (float)part;                                \
            }                                                        \
            wide f;                                                  \
            memcpy(&f, all, sizeof f);                               \
            return f;                                                \
        }                                                            \
    };
#define FA_EMU_FP8_2(name, kind)                                                                      \
    explicit name(__half2 h) : __x(__nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, kind)) {}            \
    explicit name(__nv_bfloat162 b) : __x(__nv_cvt_bfloat16raw2_to_fp8x2(b, __NV_SATFINITE, kind)) {} \
    explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, kind); }
#define FA_EMU_FP8_4(name)                                                      \
    name(__half2 lo, __half2 hi) : name(make_float4(lo.x, lo.y, hi.x, hi.y)) {} \
    name(__nv_bfloat162 lo, __nv_bfloat162 hi) : name(make_float4(lo.x, lo.y, hi.x, hi.y)) {}
FA_EMU_FP8_WIDE(__nv_fp8x2_e4m3, __nv_fp8_e4m3, 2, __nv_fp8x2_storage_t, float2,
                FA_EMU_FP8_2(__nv_fp8x2_e4m3, __NV_E4M3), f.x, f.y)
FA_EMU_FP8_WIDE(__nv_fp8x2_e5m2, __nv_fp8_e5m2, 2, __nv_fp8x2_storage_t, float2,
                FA_EMU_FP8_2(__nv_fp8x2_e5m2, __NV_E5M2), f.x, f.y)
FA_EMU_FP8_WIDE(__nv_fp8x4_e4m3, __nv_fp8_e4m3, 4, __nv_fp8x4_storage_t, float4, FA_EMU_FP8_4(__nv_fp8x4_e4m3), f.x,
                f.y, f.z, f.w)
FA_EMU_FP8_WIDE(__nv_fp8x4_e5m2, __nv_fp8_e5m2, 4, __nv_fp8x4_storage_t, float4, FA_EMU_FP8_4(__nv_fp8x4_e5m2), f.x,
                f.y, f.z, f.w)
#undef FA_EMU_FP8_4
#undef FA_EMU_FP8_2
#undef FA_EMU_FP8_WIDE
