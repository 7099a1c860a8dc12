/* mma.sync: its dense shapes, which lane holds which element, and the product. Pure.
 * PTX ISA, "Matrix Fragments for mma": group g = lane / 4, thread t = lane % 4; E elements lie in a register, r counts
 * the registers, h the elements of one. A: row g + 8 (r % 2), column 4 E (r / 2) + t E + h (with 8 rows: row g, column
 * 4 E r + t E + h). B: k = 4 E r + t E + h, column g. C and D: row g + 8 (i / 2), column 2 t + i % 2, i counting
 * elements. */
#pragma once

#include "ptx/program.h"

typedef struct fa_ptx_tile {
    uint8_t shape; /* a word */
    uint8_t m, n, k;
    const char *inputs, *sums; /* types of A and B, of C and D */
} fa_ptx_tile;

/* NULL: no such product. */
const fa_ptx_tile *fa_ptx_tile_find(const fa_ptx_instr *mma);
/* Registers of a lane. */
int fa_ptx_tile_a(const fa_ptx_tile *tile, fa_ptx_type type);
int fa_ptx_tile_b(const fa_ptx_tile *tile, fa_ptx_type type);
int fa_ptx_tile_c(const fa_ptx_tile *tile, fa_ptx_type type);

/* The registers of one lane. */
typedef struct fa_ptx_fragment {
    uint64_t a[8], b[4], c[4], d[4];
} fa_ptx_fragment;
/* d of all 32 lanes. Sums are taken in double, or in integers, and rounded once; those of FP8 as ptx/fp8.h says. */
void fa_ptx_tile_multiply(const fa_ptx_instr *mma, fa_ptx_fragment *const lane[32]);
