#include "ptx/formats.h"

#include <math.h>

typedef struct format {
    int fraction, exponent, pad; /* bits; pad: unused ones below the fraction (TF32) */
} format;

static const format formats[] = {
    [FA_PTX_F16] = {10, 5, 0}, [FA_PTX_BF16] = {7, 8, 0}, [FA_PTX_TF32] = {10, 8, 13}, [FA_PTX_E4M3] = {3, 4, 0},
    [FA_PTX_E5M2] = {2, 5, 0}, [FA_PTX_F32] = {23, 8, 0}, [FA_PTX_F64] = {52, 11, 0}};

fa_ptx_type fa_ptx_element(fa_ptx_type type)
{
    return type == FA_PTX_F16X2    ? FA_PTX_F16
           : type == FA_PTX_BF16X2 ? FA_PTX_BF16
           : type == FA_PTX_E4M3X2 ? FA_PTX_E4M3
           : type == FA_PTX_E5M2X2 ? FA_PTX_E5M2
           : type == FA_PTX_U16X2  ? FA_PTX_U16
           : type == FA_PTX_S16X2  ? FA_PTX_S16
                                   : type;
}

double fa_ptx_to_double(uint64_t bits, fa_ptx_type type)
{
    if (type == FA_PTX_F32)
        return (double)fa_ptx_float(bits);
    if (type == FA_PTX_F64)
        return fa_ptx_double(bits);
    const format f = formats[type];
    bits >>= f.pad;
    const uint64_t fraction = bits & (((uint64_t)1 << f.fraction) - 1);
    const int top = (1 << f.exponent) - 1, bias = top / 2, exponent = (int)(bits >> f.fraction) & top;
    const double sign = bits >> (f.fraction + f.exponent) & 1 ? -1.0 : 1.0;
    /* E4M3 has no infinity, and one NaN */
    if (exponent == top && (type != FA_PTX_E4M3 || fraction == 7))
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)fraction, 1 - bias - f.fraction);
    return sign * ldexp((double)(fraction | (uint64_t)1 << f.fraction), exponent - bias - f.fraction);
}

/* |value| = whole + rest, in units of the result's last bit. */
static double round_whole(double scaled, bool negative, fa_ptx_rounding rounding)
{
    const double whole = floor(scaled), rest = scaled - whole;
    const bool up = rounding == FA_PTX_ZERO           ? false
                    : rounding == FA_PTX_DOWN         ? negative && rest > 0
                    : rounding == FA_PTX_UP           ? !negative && rest > 0
                    : rounding == FA_PTX_NEAREST_AWAY ? rest >= 0.5
                                                      : rest > 0.5 || (rest == 0.5 && fmod(whole, 2.0) != 0);
    return whole + up;
}

uint64_t fa_ptx_from_double(double value, fa_ptx_type type, fa_ptx_rounding rounding, bool finite)
{
    if (type == FA_PTX_F64)
        return fa_ptx_double_bits(value);
    if (type == FA_PTX_F32 && rounding == FA_PTX_NEAREST && !finite)
        return isnan(value) ? 0x7fffffff : fa_ptx_float_bits((float)value);
    const format f = formats[type];
    const int top = (1 << f.exponent) - 1, bias = top / 2;
    const bool small = type == FA_PTX_E4M3;
    const uint64_t sign = (uint64_t)(signbit(value) != 0) << (f.fraction + f.exponent);
    const uint64_t infinity = (uint64_t)top << f.fraction, largest = small ? infinity + 6 : infinity - 1;
    if (isnan(value))
        return (infinity | (((uint64_t)1 << f.fraction) - 1)) << f.pad;
    const double size = fabs(value);
    uint64_t bits;
    if (isinf(value)) {
        bits = small ? infinity + 7 : infinity;
    } else {
        int exponent = size > 0 ? ilogb(size) : 1 - bias;
        exponent = exponent < 1 - bias ? 1 - bias : exponent;
        const double whole = round_whole(ldexp(size, f.fraction - exponent), sign != 0, rounding);
        /* a carry out of the fraction moves into the exponent by itself */
        bits = ((uint64_t)(exponent + bias - 1) << f.fraction) + (uint64_t)whole;
        const bool inward =
            rounding == FA_PTX_ZERO || (rounding == FA_PTX_DOWN && sign == 0) || (rounding == FA_PTX_UP && sign != 0);
        if (exponent > bias + 2 || bits > largest)
            bits = inward ? largest : small ? infinity + 7 : infinity;
    }
    if (finite && bits > largest)
        bits = largest;
    return (sign | bits) << f.pad;
}

double fa_ptx_add_odd(double x, double y)
{
    const double sum = x + y;
    if (!isfinite(sum))
        return sum;
    const double back = sum - x, error = (x - (sum - back)) + (y - back);
    uint64_t bits = fa_ptx_double_bits(sum);
    if (error == 0 || bits & 1)
        return sum;
    /* the exact sum lies beyond `sum` in the direction of the error: the odd neighbour on that side */
    const bool outward = (error > 0) == (sum > 0);
    return fa_ptx_double(outward ? bits + 1 : bits - 1);
}
