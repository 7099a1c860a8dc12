/* A launch on the emulator: its grid, and the order in which its threads run. */
#ifndef FA_EMU_CORE_GRID_H
#define FA_EMU_CORE_GRID_H

#include "emu/core/abi.h"
#include "input/options.h"

typedef struct fa_emu_grid {
    fa_emu_uint3 grid, block;
    uint32_t smem_bytes, cluster; /* cluster: blocks, along x; 0 counts as 1 */
    fa_schedule schedule;         /* which ready thread runs next */
    uint64_t seed;                /* seed of the WMMA fragment maps */
    uint64_t order_seed;          /* seed of the random schedule */
    int32_t blocks_per_sm;        /* that the kernel is compiled for; 0: one */
    int32_t workers;              /* OS threads; 0: one per processor */
} fa_emu_grid;

#endif
