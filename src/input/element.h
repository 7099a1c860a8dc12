/* The element types of the tensors (--dtype): conversions, rounding and spacing. The host holds an element in 16 bits:
 * a pattern of the type, or FA_POISON. One of E4M3 has 8 bits; in memory it takes a byte, and poison is
 * FA_POISON_E4M3. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fa_params.h"

#define FA_DTYPE_WORDS "fp16|bf16|e4m3"
#define FA_KV_DTYPE_WORDS "same|e4m3"
enum { FA_KV_DTYPE_SAME, FA_KV_DTYPE_E4M3 };
typedef int32_t fa_dtype; /* FA_DTYPE_FP16, FA_DTYPE_BF16, FA_DTYPE_E4M3 */

/* What gaps, guards and outputs before a launch are filled with: a NaN of all types that no arithmetic produces. */
#define FA_POISON 0xFFFFu
#define FA_POISON_E4M3 0x7Fu

float fa_half_to_float(uint16_t half);
uint16_t fa_float_to_half(float value); /* round to nearest even; overflow to infinity */

const char *fa_dtype_name(fa_dtype dtype); /* "FP16", "BF16", "E4M3": for people */
int fa_dtype_bytes(fa_dtype dtype);        /* of an element in memory */
/* Significant bits, the leading one included: 11, 8, 4. The unit roundoff is 2^-bits. */
int fa_dtype_bits(fa_dtype dtype);
/* The unit roundoff over that of FP16, 1, 8 or 128: what a tolerance that was stated for FP16 is multiplied by. */
double fa_dtype_coarseness(fa_dtype dtype);

float fa_element_to_float(fa_dtype dtype, uint16_t element);
uint16_t fa_element_of_float(fa_dtype dtype, float value); /* as fa_float_to_half; E4M3 saturates */
float fa_element_largest(fa_dtype dtype);                  /* finite number */
bool fa_element_is_finite(fa_dtype dtype, uint16_t element);
/* Spacing of the type's numbers at |x|. */
double fa_element_ulp(fa_dtype dtype, double x);

/* The bits of a float. */
typedef union fa_float_bits {
    uint32_t bits;
    float value;
} fa_float_bits;
static inline uint32_t fa_bits_of_float(float value) { return (fa_float_bits){.value = value}.bits; }
static inline float fa_float_of_bits(uint32_t bits) { return (fa_float_bits){.bits = bits}.value; }

/* Rounds to a type and back, without a branch so that it vectorises. Saturates: a logit beyond the largest number
 * costs the baseline its accuracy and not its meaning. dropped: bits of a float's fraction that the type lacks;
 * largest, least: bits of its largest and its least normal number. Floats near `apart` are as far apart as its
 * subnormal ones. */
static inline __attribute__((always_inline)) float fa_round_to(float value, unsigned dropped, uint32_t largest,
                                                               uint32_t least, float apart)
{
    const uint32_t bits = fa_bits_of_float(value), magnitude = bits & 0x7FFFFFFFu, unit = 1u << dropped;
    uint32_t normal = (magnitude + unit / 2 - 1 + (magnitude >> dropped & 1u)) & ~(unit - 1);
    normal = normal > largest ? largest : normal;
    const uint32_t subnormal = fa_bits_of_float((fa_float_of_bits(magnitude) + apart) - apart);
    return fa_float_of_bits((magnitude < least ? subnormal : normal) | (bits & 0x80000000u));
}

static inline float fa_round_half(float value) { return fa_round_to(value, 13, 0x477FE000u, 0x38800000u, 0.5f); }
static inline float fa_round_bf16(float value) { return fa_round_to(value, 16, 0x7F7F0000u, 0, 0.0f); }
static inline float fa_round_e4m3(float value) { return fa_round_to(value, 20, 0x43E00000u, 0x3C800000u, 0x1p14f); }

static inline float fa_element_round(fa_dtype dtype, float value)
{
    return dtype == FA_DTYPE_BF16   ? fa_round_bf16(value)
           : dtype == FA_DTYPE_E4M3 ? fa_round_e4m3(value)
                                    : fa_round_half(value);
}
