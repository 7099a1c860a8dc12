/* Which lane holds which element: the register fragments of mma.sync.m16n8k16 and ldmatrix, as functions.
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "ldmatrix". The emulator (C) and its tests (CUDA C++) use
 * them. lane 0..31; r: index of the 32-bit register, or of the float in a float accumulator; h: 0 low half, 1 high
 * half. */
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FA_EMU_LAYOUT __host__ __device__ constexpr
#elif defined(__cplusplus)
#define FA_EMU_LAYOUT constexpr
#else
#define FA_EMU_LAYOUT static inline
#endif

/* A: 16 x 16 halves, row major, 4 registers. */
FA_EMU_LAYOUT int fa_mma_a_row(int lane, int r) { return r % 2 * 8 + lane / 4; }
FA_EMU_LAYOUT int fa_mma_a_col(int lane, int r, int h) { return r / 2 * 8 + lane % 4 * 2 + h; }

/* B: 16 (k) x 8 (n) halves, 2 registers. */
FA_EMU_LAYOUT int fa_mma_b_row(int lane, int r, int h) { return r * 8 + lane % 4 * 2 + h; }
FA_EMU_LAYOUT int fa_mma_b_col(int lane) { return lane / 4; }

/* C, D: 16 x 8; 4 floats, or 2 registers of two halves (then r / h of the half i = 2 r + h are i here). */
FA_EMU_LAYOUT int fa_mma_c_row(int lane, int i) { return i / 2 * 8 + lane / 4; }
FA_EMU_LAYOUT int fa_mma_c_col(int lane, int i) { return lane % 4 * 2 + i % 2; }

/* ldmatrix: the element of every 8 x 8 matrix that a lane receives; .trans exchanges row and column. */
FA_EMU_LAYOUT int fa_ldmatrix_to_row(int lane) { return lane / 4; }
FA_EMU_LAYOUT int fa_ldmatrix_to_col(int lane, int h) { return lane % 4 * 2 + h; }
