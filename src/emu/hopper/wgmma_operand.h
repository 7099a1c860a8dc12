/* Matrices of wgmma in shared memory: PTX ISA, "wgmma: Shared Memory Matrix Layout", "Matrix Descriptor". */
#pragma once

#include "emu/core/pending.h"

/* An operand by its descriptor: `rows` rows of M or N from `first` on, 16 deep. Its chunks of 16 bytes hold 8 elements
 * along K, or along M or N when it is transposed. */
typedef struct fa_emu_operand {
    unsigned char *start; /* NULL: outside of shared memory */
    uint32_t leading, stride, swizzle, base_offset;
    bool transposed, bf16;
    int first, rows;
} fa_emu_operand;

fa_emu_operand fa_emu_operand_of(const fa_emu_worker *worker, uint64_t descriptor, bool transposed, bool bf16,
                                 int first, int rows);
int fa_emu_operand_chunks(const fa_emu_operand *operand);
unsigned char *fa_emu_operand_chunk(const fa_emu_operand *operand, int index);
/* Whether every chunk lies in the block's shared memory. */
bool fa_emu_operand_inside(const fa_emu_worker *worker, const fa_emu_operand *operand);

/* to[row * 16 + k], from shared memory as it is now. */
void fa_emu_operand_by_row(const fa_emu_operand *operand, float sign, float *to);
/* to[k * rows + row] */
void fa_emu_operand_by_depth(const fa_emu_operand *operand, float *to);
/* sum[16][columns] += a[16][16] b[16][columns] */
void fa_emu_multiply(int columns, const float a[16][16], const float *b, float sum[16][256]);

float fa_emu_widen(uint16_t bits, bool bf16);
