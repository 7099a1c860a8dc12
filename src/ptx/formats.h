/* Number formats: floats of any width to and from double, with PTX's roundings. Pure. */
#pragma once

#include "ptx/table.h"

typedef enum { FA_PTX_NEAREST, FA_PTX_NEAREST_AWAY, FA_PTX_ZERO, FA_PTX_DOWN, FA_PTX_UP } fa_ptx_rounding;

/* Exact. Type: one element of F16, BF16, TF32, E4M3, E5M2, F32 or F64. */
double fa_ptx_to_double(uint64_t bits, fa_ptx_type type);
/* Rounded once. finite: out of range becomes the largest number instead of infinity (NaN for E4M3). */
uint64_t fa_ptx_from_double(double value, fa_ptx_type type, fa_ptx_rounding rounding, bool finite);

/* x + y with the last bit set when the sum is inexact ("round to odd"): rounding it again, to a format with two bits
 * less, gives the rounding of the exact sum. */
double fa_ptx_add_odd(double x, double y);

/* The type of one element: F16 of F16X2. */
fa_ptx_type fa_ptx_element(fa_ptx_type type);

/* The bits of a number. */
typedef union fa_ptx_number {
    uint16_t bits16;
    _Float16 half;
    uint32_t bits32;
    float single;
    uint64_t bits;
    double twice;
} fa_ptx_number;
static inline float fa_ptx_half(uint64_t bits) { return (float)(fa_ptx_number){.bits16 = (uint16_t)bits}.half; }
static inline uint16_t fa_ptx_half_bits(double value) { return (fa_ptx_number){.half = (_Float16)value}.bits16; }
static inline float fa_ptx_float(uint64_t bits) { return (fa_ptx_number){.bits32 = (uint32_t)bits}.single; }
static inline uint64_t fa_ptx_float_bits(float value) { return (fa_ptx_number){.single = value}.bits32; }
static inline double fa_ptx_double(uint64_t bits) { return (fa_ptx_number){.bits = bits}.twice; }
static inline uint64_t fa_ptx_double_bits(double value) { return (fa_ptx_number){.twice = value}.bits; }
