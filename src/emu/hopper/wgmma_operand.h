/* Matrices of wgmma in shared memory: PTX ISA, "wgmma: Shared Memory Matrix Layout", "Matrix Descriptor". */
#pragma once

#include "emu/core/pending.h"

/* An operand by its descriptor: `rows` rows of M or N from `first` on, 32 bytes deep: 16 elements, or 32 of FP8. Its
 * chunks of 16 bytes lie along K, or (of 16-bit elements) along M or N when it is transposed. */
typedef struct fa_emu_operand {
    unsigned char *start; /* NULL: outside of shared memory */
    uint32_t leading, stride, swizzle, base_offset;
    bool transposed;
    uint8_t type; /* fa_ptx_type */
    int first, rows;
} fa_emu_operand;

fa_emu_operand fa_emu_operand_of(const fa_emu_worker *worker, uint64_t descriptor, bool transposed, uint8_t type,
                                 int first, int rows);
int fa_emu_operand_chunks(const fa_emu_operand *operand);
unsigned char *fa_emu_operand_chunk(const fa_emu_operand *operand, int index);
/* Whether every chunk lies in the block's shared memory. */
bool fa_emu_operand_inside(const fa_emu_worker *worker, const fa_emu_operand *operand);

/* to[row * depth + k], from shared memory as it is now. */
void fa_emu_operand_by_row(const fa_emu_operand *operand, float sign, float *to);
/* to[k * rows + row] */
void fa_emu_operand_by_depth(const fa_emu_operand *operand, float *to);
/* Register r of the four of A that a lane holds: PTX ISA, "wgmma.mma_async: Register Fragments". To to[row * depth + k]
 * of its warp's 16 rows. */
void fa_emu_register_of_a(int lane, int r, uint32_t word, uint8_t type, float sign, float *to);
/* The sums of the product's tile += a_values b, b [depth][columns]: in FP32, those of FP8 as ptx/fp8.h says. */
void fa_emu_multiply(fa_emu_product *product, const float *b);

float fa_emu_widen(uint16_t bits, bool bf16);
