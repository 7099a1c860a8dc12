/* Arithmetic and conversions rounded towards zero, down or up: the CPU's rounding mode around one operation. */
#pragma once

#include <fenv.h>

/* Volatile copies of the operands keep the operation between the changes of the mode. */
#define FA_EMU_IN_MODE(fa_T, fa_S, name, mode, expression, parameters, ...) \
    static inline fa_T name parameters                                      \
    {                                                                       \
        const int before = fegetround();                                    \
        const volatile fa_S __VA_ARGS__;                                    \
        fesetround(mode);                                                   \
        const volatile fa_T result = (fa_T)(expression);                    \
        fesetround(before);                                                 \
        return result;                                                      \
    }
#define FA_EMU_ROUNDED(fa_T, fa_S, name, expression, ...)                         \
    FA_EMU_IN_MODE(fa_T, fa_S, name##_rz, FE_TOWARDZERO, expression, __VA_ARGS__) \
    FA_EMU_IN_MODE(fa_T, fa_S, name##_rd, FE_DOWNWARD, expression, __VA_ARGS__)   \
    FA_EMU_IN_MODE(fa_T, fa_S, name##_ru, FE_UPWARD, expression, __VA_ARGS__)
/* f: the letter of the type; root, mad: of C */
#define FA_EMU_ROUNDED_ARITHMETIC(fa_T, f, root, mad)                             \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##add, x + y, (fa_T a, fa_T b), x = a, y = b) \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##sub, x - y, (fa_T a, fa_T b), x = a, y = b) \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##mul, x *y, (fa_T a, fa_T b), x = a, y = b)  \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##div, x / y, (fa_T a, fa_T b), x = a, y = b) \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##rcp, 1 / x, (fa_T a), x = a)                \
    FA_EMU_ROUNDED(fa_T, fa_T, __##f##sqrt, root(x), (fa_T a), x = a)             \
    FA_EMU_ROUNDED(fa_T, fa_T, __##mad, mad(x, y, z), (fa_T a, fa_T b, fa_T c), x = a, y = b, z = c)
#define FA_EMU_ROUNDED_OF(fa_T, fa_S, name) FA_EMU_ROUNDED(fa_T, fa_S, name, x, (fa_S a), x = a)
FA_EMU_ROUNDED_ARITHMETIC(float, f, sqrtf, fmaf)
FA_EMU_ROUNDED_ARITHMETIC(double, d, sqrt, fma)
FA_EMU_ROUNDED_OF(float, double, __double2float)
FA_EMU_ROUNDED_OF(float, int, __int2float)
FA_EMU_ROUNDED_OF(float, unsigned, __uint2float)
FA_EMU_ROUNDED_OF(float, long long, __ll2float)
FA_EMU_ROUNDED_OF(float, unsigned long long, __ull2float)
FA_EMU_ROUNDED_OF(double, long long, __ll2double)
FA_EMU_ROUNDED_OF(double, unsigned long long, __ull2double)
#undef FA_EMU_ROUNDED_OF
#undef FA_EMU_ROUNDED_ARITHMETIC
#undef FA_EMU_ROUNDED
#undef FA_EMU_IN_MODE
static inline float __fmaf_ieee_rz(float x, float y, float z) { return __fmaf_rz(x, y, z); }
static inline float __fmaf_ieee_rd(float x, float y, float z) { return __fmaf_rd(x, y, z); }
static inline float __fmaf_ieee_ru(float x, float y, float z) { return __fmaf_ru(x, y, z); }
