/* Products of FP8 matrices as the tensor cores of Ada (mma.sync) and Hopper (wgmma) make them. Pure.
 *
 * An element of D is a sum of groups of products, C first, and each group is one addition of fixed point: with e the
 * largest exponent of its addends (of a product the sum of its factors' exponents, not normalised), every addend is
 * truncated to a multiple of 2^(e - 13) and they are added exactly. The sum is truncated to 13 bits of fraction in
 * FP32, or rounded to nearest in FP16. A group is 16 products for mma.sync on Ada, 32 for wgmma on Hopper.
 * Source: Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores", arXiv 2511.10909 (its
 * T-FDPA with F = 13, output E8M13), which its authors compared with both GPUs bit by bit. DeepSeek-V3's report (3.3.2)
 * saw about 14 bits. wgmma of drawn E4M3 matrices is the same on an H200, word for word; mma.sync was not compared. On
 * Hopper it widens FP8 to FP16 and keeps 25 bits; the emulator has Ada's, which is less, on every architecture. */
#pragma once

#include "ptx/formats.h"

enum { FA_PTX_FP8_MMA_TERMS = 16, FA_PTX_FP8_WGMMA_TERMS = 32 };

static inline bool fa_ptx_is_fp8(unsigned type) { return type == FA_PTX_E4M3 || type == FA_PTX_E5M2; }

static inline float fa_ptx_fp8_value(unsigned bits, unsigned type)
{
    const float sign = bits & 0x80 ? -1.0f : 1.0f;
    const unsigned size = bits & 0x7f;
    if (type == FA_PTX_E4M3)
        return sign * (size == 0x7f ? __builtin_nanf("") : fa_ptx_float((uint64_t)size << 20) * 0x1p120f);
    return sign * (size > 0x7c    ? __builtin_nanf("")
                   : size == 0x7c ? __builtin_inff()
                                  : fa_ptx_float((uint64_t)size << 21) * 0x1p112f);
}

typedef struct fa_ptx_fp8 {
    int rows, columns, depth; /* columns a multiple of 8, depth of terms and at most 32 */
    int terms;                /* products of one group */
    fa_ptx_type a, b;         /* E4M3, E5M2: an exponent is at least that of the type's smallest normal number */
    bool half;                /* C and D are FP16 values */
} fa_ptx_fp8;

/* d = a b + d. Elements are values of the types, as floats: a [rows][depth], b [depth][columns], d [rows] rows that lie
 * `stride` floats apart. */
void fa_ptx_fp8_multiply(const fa_ptx_fp8 *shape, const float *a, const float *b, float *d, int stride);
