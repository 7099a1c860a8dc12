#include "input/element.h"

#include <math.h>

enum { HALF_BITS = 11, BF16_BITS = 8, E4M3_BITS = 4 };
/* Exponents of the smallest subnormal numbers. */
enum { HALF_LEAST = -24, BF16_LEAST = -133, E4M3_LEAST = -9 };

float fa_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
    uint32_t bits;
    if (magnitude >= 0x7C00u) {
        bits = sign | 0x7F800000u | (magnitude & 0x3FFu) << 13;
    } else if (magnitude >= 0x400u) {
        bits = sign | ((magnitude << 13) + (112u << 23));
    } else {
        bits = sign | fa_bits_of_float((float)magnitude * 0x1p-24f);
    }
    return fa_float_of_bits(bits);
}

uint16_t fa_float_to_half(float value)
{
    const uint32_t bits = fa_bits_of_float(value);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
    if (magnitude >= 0x477FF000u) /* 65520, halfway to what would be 65536 */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude >= 0x38800000u) { /* 2^-14: normal */
        const uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
        return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
    }
    /* Subnormal: floats in [0.5, 1) are 2^-24 apart, so the addition rounds to the spacing of FP16, to nearest even. */
    return (uint16_t)(sign | fa_bits_of_float(fa_float_of_bits(magnitude) + 0.5f)); /* 0.5's lower half is 0 */
}

const char *fa_dtype_name(fa_dtype dtype)
{
    return dtype == FA_DTYPE_BF16 ? "BF16" : dtype == FA_DTYPE_E4M3 ? "E4M3" : "FP16";
}

int fa_dtype_bytes(fa_dtype dtype) { return dtype == FA_DTYPE_E4M3 ? 1 : 2; }

int fa_dtype_bits(fa_dtype dtype)
{
    return dtype == FA_DTYPE_BF16 ? BF16_BITS : dtype == FA_DTYPE_E4M3 ? E4M3_BITS : HALF_BITS;
}

double fa_dtype_coarseness(fa_dtype dtype) { return ldexp(1.0, HALF_BITS - fa_dtype_bits(dtype)); }

/* BF16 is the upper half of a float. */
static float bf16_to_float(uint16_t element) { return fa_float_of_bits((uint32_t)element << 16); }

static uint16_t float_to_bf16(float value)
{
    const uint32_t bits = fa_bits_of_float(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* stays NaN */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* Sign, four bits of exponent with a bias of 7, three of mantissa; no infinity. FA_POISON is NaN here, too. */
static float e4m3_to_float(uint16_t element)
{
    const uint32_t sign = (uint32_t)(element & 0x80u) << 24, magnitude = element & 0x7Fu;
    uint32_t bits = (magnitude << 20) + (120u << 23);
    if (magnitude < 8)
        bits = fa_bits_of_float((float)magnitude * 0x1p-9f);
    return fa_float_of_bits(sign | (magnitude == 0x7Fu ? 0x7FC00000u : bits));
}

static uint16_t float_to_e4m3(float value)
{
    const float rounded = fa_round_e4m3(value);
    const uint32_t bits = fa_bits_of_float(rounded);
    if (isnan(value))
        return 0x7Fu;
    const uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude < 0x3C800000u) /* 2^-6 */
        return (uint16_t)(sign | (uint32_t)(fabsf(rounded) * 0x1p9f));
    return (uint16_t)(sign | ((magnitude >> 20) - (120u << 3)));
}

float fa_element_to_float(fa_dtype dtype, uint16_t element)
{
    return dtype == FA_DTYPE_BF16   ? bf16_to_float(element)
           : dtype == FA_DTYPE_E4M3 ? e4m3_to_float(element)
                                    : fa_half_to_float(element);
}

uint16_t fa_element_of_float(fa_dtype dtype, float value)
{
    return dtype == FA_DTYPE_BF16   ? float_to_bf16(value)
           : dtype == FA_DTYPE_E4M3 ? float_to_e4m3(value)
                                    : fa_float_to_half(value);
}

float fa_element_largest(fa_dtype dtype)
{
    return dtype == FA_DTYPE_BF16 ? 0x1.FEp127f : dtype == FA_DTYPE_E4M3 ? 448.0f : 65504.0f;
}

bool fa_element_is_finite(fa_dtype dtype, uint16_t element)
{
    const uint16_t exponent = dtype == FA_DTYPE_BF16 ? 0x7F80 : dtype == FA_DTYPE_E4M3 ? 0x7F : 0x7C00;
    return (element & exponent) != exponent;
}

double fa_element_ulp(fa_dtype dtype, double x)
{
    const int64_t least = dtype == FA_DTYPE_BF16 ? BF16_LEAST : dtype == FA_DTYPE_E4M3 ? E4M3_LEAST : HALF_LEAST;
    uint64_t bits;
    double ulp;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t field = bits >> 52 & 0x7FF;
    /* As by frexp, which takes longer: x is in [2^(exponent-1), 2^exponent). 0, infinity and NaN count as 1/2. */
    const int64_t exponent = x == 0.0 || field == 0x7FF ? 0 : (int64_t)field - 1022;
    const int64_t spacing = exponent - fa_dtype_bits(dtype);
    bits = (uint64_t)((spacing < least ? least : spacing) + 1023) << 52;
    memcpy(&ulp, &bits, sizeof ulp);
    return ulp;
}
