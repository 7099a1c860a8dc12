/* The constants of mma: how its warps share rows and keys, the layout of shared memory, and which tiles it takes. */
#pragma once

#include "mma/combine.cuh"
#include "mma/tile.cuh"
#include "shared/score.cuh"

constexpr int M = FA_M, N = FA_N, WARPS = FA_WARPS, STAGES = FA_STAGES, SPLITS = FA_SPLITS;
static_assert(M % 16 == 0, "m must be a multiple of 16: one mma takes 16 query rows");
static_assert(N % 16 == 0, "n must be a multiple of 16: one mma of P V takes 16 keys");
static_assert(WARPS * 16 <= M ? M % (WARPS * 16) == 0 : WARPS * 16 % M == 0,
              "warps must divide m / 16, or be a multiple of it (the extra warps share out the keys)");
static_assert(SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not inside it");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= 256, "dim-v must be a multiple of 8 from 16 to 256");
static_assert(!FA_ACC_FP16, "mma accumulates in FP32 only");

constexpr int GROUPS =
    WARPS * 16 > M ? WARPS * 16 / M : 1; /* warp groups, each with every query row and its share of the keys */
constexpr int ROWS = M * GROUPS / WARPS; /* query rows of a warp */
constexpr int BANDS = ROWS / 16;         /* 16-row bands of a warp: each fragment of K or V serves all of them */
constexpr int V_DIM16 = v_row::DIM16, V_STEPS = v_row::STEPS; /* columns of V and O */
constexpr int STEPS = qk_row::STEPS, TILES8 = N / 8, CHUNKS16 = N / 16;
static_assert(BANDS <= 4 && BANDS * V_DIM16 <= 256, "m / warps gives a warp more output than its registers hold");

/* The k16 steps of Q that stay in registers beside a band's output; the others are read again for every tile. ROOM is
 * the number of registers with which nothing spills; features take some of it. */
constexpr int FEATURE_REGISTERS = HAS_ALIBI && V_DIM16 < 256               ? 20
                                  : CHANGES_SCORES                         ? 12
                                  : (FA_FEATURES & ~FA_FEATURE_DIM_V) != 0 ? 8
                                                                           : 0;
constexpr int ROOM = (FA_DIM_V == 256 || V_DIM16 <= 192 ? 168 : 148) - FEATURE_REGISTERS;
constexpr int Q_ROOM = (ROOM - V_DIM16 / 2) / 4;
constexpr int Q_STEPS = BANDS * (DIM16 + V_DIM16) <= 256 ? STEPS : BANDS > 1 ? 0 : STEPS < Q_ROOM ? STEPS : Q_ROOM;
constexpr bool Q_IN_REGISTERS = Q_STEPS == STEPS;
constexpr int ROUND_KEYS = GROUPS * N;
/* With Q in registers a warp goes through its keys in chunks of 16: P V of one chunk beside the exponentials of the
 * next and the scores of the one after. Otherwise it goes tile by tile, as every tile reads all of Q. */
constexpr bool BY_CHUNKS = Q_IN_REGISTERS && N % 32 == 0 && (GROUPS == 1 || N == 32);
constexpr int AHEAD_KEYS = BY_CHUNKS && GROUPS == 1 ? 32 : ROUND_KEYS; /* a slot's K lies that many keys after its V */
constexpr int S_TILES8 = BY_CHUNKS ? 4 : TILES8; /* scores a warp holds, and chunks of probabilities */
constexpr int P_CHUNKS = BY_CHUNKS ? 2 : CHUNKS16;
constexpr int V_ROW_BYTES = v_row::ROW_BYTES;
constexpr int Q_BYTES = M * ROW_BYTES, V_BYTES = ROUND_KEYS * V_ROW_BYTES, K_BYTES = ROUND_KEYS * ROW_BYTES;
constexpr int SLOT_BYTES = V_BYTES + K_BYTES;
/* With features whole rounds are loaded fast at any stride of rows; otherwise where rows follow without a gap. */
constexpr bool ANY_STRIDE = FA_FEATURES != 0 && !HAS_PAGES;
/* share.global_offset is larger than a thread's first copy by CENTRE: immediate offsets reach as far down as up. */
constexpr int CENTRE = 2048;
constexpr int PIPELINE_BYTES = Q_BYTES + STAGES * SLOT_BYTES;
constexpr bool PARTIAL = GROUPS > 1 || SPLITS > 1;
constexpr int O_BYTES = M * V_ROW_BYTES; /* rows of O take the place of Q on their way out */
constexpr int PARTS_BYTES = PARTIAL ? GROUPS * PART_FLOATS * 4 : 0;
constexpr int MAIN_BYTES = larger(PIPELINE_BYTES, PARTIAL ? PARTS_BYTES : O_BYTES);
constexpr int SMEM_BYTES = MAIN_BYTES + SMEM_ALIGN - 16;
