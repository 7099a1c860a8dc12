/* The constants of wgmma: its warpgroups, the layout of shared memory, what stays in registers, and which tiles it
 * takes. wgmma_small and wgmma_decode have constants of their own. */
#pragma once

#include "fa_params.h"

/* The order of columns in shared memory (wgmma/parts.cuh). It needs Q in registers (Q_IN_REGISTERS). */
#define TAIL_FIRST (FA_DIM_V == FA_DIM && FA_DIM % 16 != 0 && FA_DIM > 64 && FA_WARPS <= 8 && FA_DIM + 8 + FA_N <= 256)

/* Boxes of 32 columns where the row's end would cut a box of 64 (studies/tma_rows.txt). */
#if FA_DIM_V == FA_DIM && (FA_DIM <= 32 || FA_DIM == 80 || FA_DIM == 96)
#define BOX_COLS 32
#endif

#include "wgmma/combine.cuh"

/* References of rows are needed again when O is stored. A macro, so that code without a use is left out. */
#define SINK ((FA_FEATURES & FA_FEATURE_SINK) != 0)
#define KEEP_REFERENCES (FA_SPLITS > 1 || ((FA_LSE || SINK) && FA_DIM_V <= 64))

/* Beyond dense forward */
#define SERVES                                                                                                  \
    (SHORT ? 0                                                                                                  \
           : FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP | \
                 FA_FEATURE_SINK | (PACKED ? 0 : FA_FEATURE_ALIBI) | FA_FEATURE_DIM_V)

constexpr int CONSUMERS = FA_WARPS / 4;
constexpr int BLOCK_THREADS = 128 * (CONSUMERS + 1);
constexpr int BLOCKS_PER_SM = CONSUMERS > 1 ? 1 : 2;
constexpr int Q_BYTES = CONSUMERS * Q_TILE_BYTES;
constexpr int K_RING_BYTES = FA_STAGES * K_TILE_BYTES, RING_BYTES = K_RING_BYTES + FA_STAGES * V_TILE_BYTES;
constexpr int REFERENCE_BYTES = KEEP_REFERENCES ? CONSUMERS * 64 * 4 : 0;
constexpr int FIXED_BYTES = 1024 + RING_BYTES + ONES_BYTES + REFERENCE_BYTES;
/* A block may have 227 KiB, some of it is static. The next tile's Q is loaded early where there is room for two; O is
 * stored through shared memory where there is room for the columns of a box at least. */
constexpr int ROOM = 226 * 1024 / BLOCKS_PER_SM - FIXED_BYTES;
constexpr int Q_STAGES = 2 * Q_BYTES <= ROOM ? 2 : 1;
constexpr int O_ROOM = (ROOM - Q_STAGES * Q_BYTES) / (CONSUMERS * 64 * 2) / BOX_COLS * BOX_COLS;
constexpr int O_BUFFER_COLS = O_ROOM < 0 ? 0 : O_ROOM < DIM_PAD_V ? O_ROOM : DIM_PAD_V;
constexpr int O_BUFFER_BYTES = CONSUMERS * 64 * 2 * O_BUFFER_COLS;
constexpr int SMEM_BYTES = FIXED_BYTES + Q_STAGES * Q_BYTES + O_BUFFER_BYTES;

static_assert(FA_MAXREG == 0, "wgmma: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && CONSUMERS >= 1 && CONSUMERS <= 4, "warps: 4, 8, 12 or 16 (warpgroups that compute)");
static_assert(FA_M == 64 * CONSUMERS, "m must be 16 * warps: 64 rows per warpgroup");
static_assert(FA_STAGES >= 1, "stages: at least 1");
static_assert(!(PACKED || SHORT) || FA_SPLITS == 1, "splits must be 1");
static_assert(FA_SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not in it");

/* Per thread after setmaxnreg; the block's total stays what it had at launch. */
constexpr int PRODUCER_REGISTERS = CONSUMERS <= 2 ? 40 : 32;
constexpr int CONSUMER_REGISTERS = CONSUMERS == 1 ? 216 : CONSUMERS == 2 ? 232 : CONSUMERS == 3 ? 160 : 112;

/* Q is read from shared memory once per tile, not with every product, where S, O, P and it fit the registers. */
constexpr bool Q_IN_REGISTERS = CONSUMERS <= 2 && FA_N / 2 + O_REGS + FA_N / 4 + Q_REGS <= 192;
static_assert(!TAIL_FIRST || Q_IN_REGISTERS, "the order of columns needs the zeros that Q has in registers");
static_assert(PRODUCT_REGISTERS + (Q_IN_REGISTERS ? Q_REGS : 0) + SPARE_REGISTERS <= CONSUMER_REGISTERS,
              "n: S, O and P of this n and dim do not fit the registers that so many warps leave a thread");
/* ptxas allocates the accumulators of a product within the registers at launch. */
constexpr int LAUNCH_REGISTERS = 65536 / (BLOCK_THREADS * BLOCKS_PER_SM) / 8 * 8;
static_assert(FA_N / 2 + 32 <= LAUNCH_REGISTERS && O_REGS + 32 <= LAUNCH_REGISTERS,
              "warps: S or O of this n and dim does not fit the registers of a thread at launch");

/* Rows that begin within a sector pass TMA at half its pace (studies/tma_rows.txt): then a warp beside the producer
 * asks L2 for the next Q. */
#define ASKS_FOR_Q (FA_DIM % 16 == 8 && FA_DIM > 192 && FA_FEATURES == 0 && !PACKED)

/* With one buffer of Q the next Q comes late: then a tile's last P V goes before it, on its own. */
constexpr bool PV_FIRST = Q_STAGES == 1;
