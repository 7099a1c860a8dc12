/* What __half and __nv_bfloat16 have alike: pairs, arithmetic, comparisons, ReLU and saturation, conversions to and
 * from integers, rounding, increments. Both headers use it, with H, H2 and their parts of names. */
#pragma once

/* Pairs out of numbers and numbers out of pairs; name: half or bfloat16. */
#define FA_EMU_HALF_PAIRS(H, H2, name)                                          \
    static inline H2 __float2##name##2_rn(float f) { return {f, f}; }           \
    static inline H2 __floats2##name##2_rn(float a, float b) { return {a, b}; } \
    static inline H2 __float22##name##2_rn(float2 f) { return {f.x, f.y}; }     \
    static inline float2 __##name##22float2(H2 h) { return {h.x, h.y}; }        \
    static inline H2 __##name##2##name##2(H h) { return {h, h}; }               \
    static inline H2 __halves2##name##2(H a, H b) { return {a, b}; }            \
    static inline H2 make_##name##2(H a, H b) { return {a, b}; }                \
    static inline H __low2##name(H2 h) { return h.x; }                          \
    static inline H __high2##name(H2 h) { return h.y; }                         \
    static inline float __low2float(H2 h) { return h.x; }                       \
    static inline float __high2float(H2 h) { return h.y; }                      \
    static inline H2 __low2##name##2(H2 h) { return {h.x, h.x}; }               \
    static inline H2 __high2##name##2(H2 h) { return {h.y, h.y}; }              \
    static inline H2 __lows2##name##2(H2 a, H2 b) { return {a.x, b.x}; }        \
    static inline H2 __highs2##name##2(H2 a, H2 b) { return {a.y, b.y}; }       \
    static inline H2 __lowhigh2highlow(H2 h) { return {h.y, h.x}; }

/* Arithmetic of two numbers, in float and rounded once, and of two pairs. */
#define FA_EMU_HALF_2(H, H2, name, name2, expression) \
    static inline H name(H a, H b)                    \
    {                                                 \
        const float x = a, y = b;                     \
        return expression;                            \
    }                                                 \
    static inline H2 name2(H2 a, H2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define FA_EMU_HALF_OP(H, H2, op, name, name2)                            \
    FA_EMU_HALF_2(H, H2, name, name2, x op y)                             \
    static inline H operator op(H a, H b) { return name(a, b); }          \
    static inline H &operator op##=(H &a, H b) { return a = name(a, b); } \
    static inline H2 operator op(H2 a, H2 b) { return name2(a, b); }      \
    static inline H2 &operator op##=(H2 &a, H2 b) { return a = name2(a, b); }

/* A comparison of two, and of pairs. Those with u hold for NaN, the others do not; the operator != does. */
#define FA_EMU_HALF_COMPARE_AS(H, H2, name, expression)                                                            \
    static inline bool __h##name(H a, H b)                                                                         \
    {                                                                                                              \
        const float x = a, y = b;                                                                                  \
        return expression;                                                                                         \
    }                                                                                                              \
    static inline bool __hb##name##2(H2 a, H2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }            \
    static inline H2 __h##name##2(H2 a, H2 b) { return {(float)__h##name(a.x, b.x), (float)__h##name(a.y, b.y)}; } \
    static inline unsigned __h##name##2_mask(H2 a, H2 b)                                                           \
    {                                                                                                              \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                    \
    }
#define FA_EMU_HALF_COMPARE(H, H2, op, name, operator_name)                       \
    FA_EMU_HALF_COMPARE_AS(H, H2, name, !__builtin_isunordered(x, y) && x op y)   \
    FA_EMU_HALF_COMPARE_AS(H, H2, name##u, __builtin_isunordered(x, y) || x op y) \
    static inline bool operator op(H a, H b) { return __h##operator_name(a, b); } \
    static inline bool operator op(H2 a, H2 b) { return __hb##operator_name##2(a, b); }
#define FA_EMU_HALF_COMPARES(H, H2)         \
    FA_EMU_HALF_COMPARE(H, H2, ==, eq, eq)  \
    FA_EMU_HALF_COMPARE(H, H2, !=, ne, neu) \
    FA_EMU_HALF_COMPARE(H, H2, <, lt, lt)   \
    FA_EMU_HALF_COMPARE(H, H2, <=, le, le)  \
    FA_EMU_HALF_COMPARE(H, H2, >, gt, gt)   \
    FA_EMU_HALF_COMPARE(H, H2, >=, ge, ge)
#define FA_EMU_HALF_BOUND(H, H2, name, lower, upper)                                            \
    static inline H __h##name##_bound(H a) { return fminf(fmaxf(a, lower), upper); }            \
    static inline H __hfma_##name(H a, H b, H c) { return __h##name##_bound(__hfma(a, b, c)); } \
    static inline H2 __hfma2_##name(H2 a, H2 b, H2 c)                                           \
    {                                                                                           \
        return {__hfma_##name(a.x, b.x, c.x), __hfma_##name(a.y, b.y, c.y)};                    \
    }
#define FA_EMU_HALF_SAT(H, H2, name)                                                    \
    static inline H __h##name##_sat(H a, H b) { return __hsat_bound(__h##name(a, b)); } \
    static inline H2 __h##name##2_sat(H2 a, H2 b) { return {__h##name##_sat(a.x, b.x), __h##name##_sat(a.y, b.y)}; }
/* never made part of an fma */
#define FA_EMU_HALF_RN(H, H2, name)                                      \
    static inline H __h##name##_rn(H a, H b) { return __h##name(a, b); } \
    static inline H2 __h##name##2_rn(H2 a, H2 b) { return __h##name##2(a, b); }
#define FA_EMU_HALF_ROUND(H, H2, name, expression) \
    static inline H h##name(H a)                   \
    {                                              \
        const float x = a;                         \
        return expression;                         \
    }                                              \
    static inline H2 h2##name(H2 a) { return {h##name(a.x), h##name(a.y)}; }

#define FA_EMU_HALF_STEP(H, step, op)                                 \
    static inline H &operator step(H &a) { return a = a op H(1.0f); } \
    static inline H operator step(H &a, int)                          \
    {                                                                 \
        const H old = a;                                              \
        step a;                                                       \
        return old;                                                   \
    }

#define FA_EMU_HALF_MORE(H, H2)                                                                           \
    FA_EMU_HALF_OP(H, H2, +, __hadd, __hadd2)                                                             \
    FA_EMU_HALF_OP(H, H2, -, __hsub, __hsub2)                                                             \
    FA_EMU_HALF_OP(H, H2, *, __hmul, __hmul2)                                                             \
    FA_EMU_HALF_OP(H, H2, /, __hdiv, __h2div)                                                             \
    FA_EMU_HALF_2(H, H2, __hmax, __hmax2, fmaxf(x, y))                                                    \
    FA_EMU_HALF_2(H, H2, __hmin, __hmin2, fminf(x, y))                                                    \
    static inline bool __hisnan(H a) { return isnan((float)a); }                                          \
    static inline int __hisinf(H a) { return isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0; }             \
    static inline H2 __hneg2(H2 a) { return {__hneg(a.x), __hneg(a.y)}; }                                 \
    static inline H2 __habs2(H2 a) { return {__habs(a.x), __habs(a.y)}; }                                 \
    static inline H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    static inline H operator-(H a) { return __hneg(a); }                                                  \
    FA_EMU_HALF_ROUND(H, H2, exp, expf(x))                                                                \
    FA_EMU_HALF_ROUND(H, H2, exp2, exp2f(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, log, logf(x))                                                                \
    FA_EMU_HALF_ROUND(H, H2, log2, log2f(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, sqrt, sqrtf(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, rsqrt, 1.0f / sqrtf(x))                                                      \
    FA_EMU_HALF_ROUND(H, H2, rcp, 1.0f / x)                                                               \
                                                                                                          \
    FA_EMU_HALF_BOUND(H, H2, relu, 0.0f, INFINITY)                                                        \
    FA_EMU_HALF_BOUND(H, H2, sat, 0.0f, 1.0f)                                                             \
    FA_EMU_HALF_SAT(H, H2, add)                                                                           \
    FA_EMU_HALF_SAT(H, H2, sub)                                                                           \
    FA_EMU_HALF_SAT(H, H2, mul)                                                                           \
    FA_EMU_HALF_ROUND(H, H2, ceil, ceilf(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, floor, floorf(x))                                                            \
    FA_EMU_HALF_ROUND(H, H2, trunc, truncf(x))                                                            \
    FA_EMU_HALF_ROUND(H, H2, rint, rintf(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, sin, sinf(x))                                                                \
    FA_EMU_HALF_ROUND(H, H2, cos, cosf(x))                                                                \
    FA_EMU_HALF_ROUND(H, H2, tanh, tanhf(x))                                                              \
    FA_EMU_HALF_ROUND(H, H2, log10, log10f(x))                                                            \
    FA_EMU_HALF_ROUND(H, H2, exp10, exp10f(x))                                                            \
    FA_EMU_HALF_RN(H, H2, add)                                                                            \
    FA_EMU_HALF_RN(H, H2, sub)                                                                            \
    FA_EMU_HALF_RN(H, H2, mul)                                                                            \
    static inline H htanh_approx(H a) { return htanh(a); }                                                \
    static inline H2 h2tanh_approx(H2 a) { return h2tanh(a); }                                            \
    static inline H2 __hisnan2(H2 a) { return {(float)__hisnan(a.x), (float)__hisnan(a.y)}; }             \
    static inline H2 __hcmadd(H2 a, H2 b, H2 c)                                                           \
    {                                                                                                     \
        return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};       \
    }                                                                                                     \
    static inline H2 operator-(H2 a) { return {-a.x, -a.y}; }                                             \
    static inline H2 operator+(H2 a) { return a; }                                                        \
    static inline H operator+(H a) { return a; }                                                          \
    FA_EMU_HALF_STEP(H, ++, +)                                                                            \
    FA_EMU_HALF_STEP(H, --, -)                                                                            \
    static inline H __hmax_nan(H a, H b) { return a != a ? a : b != b ? b : __hmax(a, b); }               \
    static inline H __hmin_nan(H a, H b) { return a != a ? a : b != b ? b : __hmin(a, b); }               \
    static inline H2 __hmax2_nan(H2 a, H2 b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; }     \
    static inline H2 __hmin2_nan(H2 a, H2 b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; }

/* name: half or bfloat16; T to H and back, in the four roundings. What is too large is the largest, NaN 0. */
#define FA_EMU_FLOAT_OF(way)                                                                    \
    static inline float fa_emu_float##way(long long i) { return __ll2float##way(i); }           \
    static inline float fa_emu_float##way(unsigned long long i) { return __ull2float##way(i); } \
    static inline float fa_emu_float##way(int i) { return __int2float##way(i); }                \
    static inline float fa_emu_float##way(unsigned i) { return __uint2float##way(i); }
FA_EMU_FLOAT_OF(_rz)
FA_EMU_FLOAT_OF(_rd)
FA_EMU_FLOAT_OF(_ru)
#undef FA_EMU_FLOAT_OF
template <typename fa_T>
static inline fa_T fa_emu_integer_of(double x)
{
    constexpr unsigned bits = 8 * sizeof(fa_T);
    constexpr fa_T least = (fa_T)-1 < (fa_T)0 ? (fa_T)(1ull << (bits - 1)) : (fa_T)0, largest = (fa_T)~least;
    if (x != x)
        return bits < 64 ? (fa_T)0 : (fa_T)(1ull << 63);
    return x <= (double)least ? least : x >= (double)largest ? largest : (fa_T)x;
}
#define FA_EMU_HALF_INTEGER(H, name, fa_T, word)                                                         \
    static inline fa_T __##name##2##word##_rn(H h) { return fa_emu_integer_of<fa_T>(rintf((float)h)); }  \
    static inline fa_T __##name##2##word##_rz(H h) { return fa_emu_integer_of<fa_T>(truncf((float)h)); } \
    static inline fa_T __##name##2##word##_rd(H h) { return fa_emu_integer_of<fa_T>(floorf((float)h)); } \
    static inline fa_T __##name##2##word##_ru(H h) { return fa_emu_integer_of<fa_T>(ceilf((float)h)); }  \
    static inline H __##word##2##name##_rn(fa_T i) { return H((double)i); }                              \
    static inline H __##word##2##name##_rz(fa_T i) { return __float2##name##_rz(fa_emu_float_rz(i)); }   \
    static inline H __##word##2##name##_rd(fa_T i) { return __float2##name##_rd(fa_emu_float_rd(i)); }   \
    static inline H __##word##2##name##_ru(fa_T i) { return __float2##name##_ru(fa_emu_float_ru(i)); }
#define FA_EMU_HALF_INTEGERS(H, name)                                                                              \
    FA_EMU_HALF_INTEGER(H, name, int, int)                                                                         \
    FA_EMU_HALF_INTEGER(H, name, unsigned, uint)                                                                   \
    FA_EMU_HALF_INTEGER(H, name, short, short)                                                                     \
    FA_EMU_HALF_INTEGER(H, name, unsigned short, ushort)                                                           \
    FA_EMU_HALF_INTEGER(H, name, long long, ll)                                                                    \
    FA_EMU_HALF_INTEGER(H, name, unsigned long long, ull)                                                          \
    static inline signed char __##name##2char_rz(H h) { return fa_emu_integer_of<signed char>(truncf((float)h)); } \
    static inline unsigned char __##name##2uchar_rz(H h) { return fa_emu_integer_of<unsigned char>(truncf((float)h)); }
