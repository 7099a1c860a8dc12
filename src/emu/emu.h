/* The emulator core: runs a grid of CUDA threads on the CPU, one fibre each, in an order that a policy picks. */
#ifndef FA_EMU_H
#define FA_EMU_H

#include "fa_params.h"
#include "emu/abi.h"

#include <stddef.h>

typedef enum { FA_EMU_ASCENDING, FA_EMU_DESCENDING, FA_EMU_RANDOM, FA_EMU_GREEDY } fa_emu_policy;

/* Classes of failure, as they begin a report. */
#define FA_EMU_DIVERGENT_BARRIER "divergent barrier"
#define FA_EMU_DEADLOCK "deadlock"
#define FA_EMU_PARTIAL_WARP "partial warp"
#define FA_EMU_LANE_ABSENT "absent lane"
#define FA_EMU_BAD_MASK "bad mask"
#define FA_EMU_BAD_BARRIER "bad barrier"
#define FA_EMU_MISALIGNED "misaligned"
#define FA_EMU_ASYNC_LEFT "cp.async left"
#define FA_EMU_SMEM_OVERFLOW "shared memory overflow"
#define FA_EMU_FAULT "fault"
#define FA_EMU_TRAP "trap"
#define FA_EMU_FRAGMENT "fragment"

/* A loaded object. */
typedef struct fa_emu_image {
    void *handle;         /* dlopen */
    fa_emu_call_fn *call; /* fa_kernel */
    fa_emu_slot_fn *slot;
    const fa_emu_build_info *build;
} fa_emu_image;

/* Opens the object and finds its symbols. False: `error` says what is missing. The process must have the sanitizer's
 * runtime. */
int fa_emu_open(const char *path, fa_emu_image *image, char *error, size_t error_size);
void fa_emu_close(fa_emu_image *image);

typedef struct fa_emu_grid {
    fa_emu_uint3 grid, block;
    uint32_t smem_bytes;
    fa_emu_policy policy;
    uint64_t seed;   /* of the random policy and of the WMMA fragment maps */
    int32_t workers; /* OS threads; 0: one per processor */
} fa_emu_grid;

/* Runs the grid to its end. False: `error` has the report of the first failure. */
int fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, char *error,
               size_t error_size);

#endif
