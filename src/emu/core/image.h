/* A kernel compiled for the emulator: the shared object and its entry points. */
#pragma once

#include "base/status.h"
#include "emu/core/abi.h"
#include "input/options.h"

typedef struct fa_emu_image {
    void *handle;         /* dlopen */
    fa_emu_call_fn *call; /* fa_kernel, or another entry point that the launch asks for */
    int32_t entry;        /* 0: call is fa_kernel */
    fa_emu_slot_fn *slot;
    const fa_emu_build_info *build;
    const int32_t *cluster_dims; /* __cluster_dims__ of the kernel; NULL: it has none */
    const int32_t *bounds;       /* threads, blocks of __launch_bounds__, or 0, 0 and __maxnreg__; NULL: none */
    bool hopper;                 /* its inline PTX has barrier objects, bulk copies or products of warpgroups */
} fa_emu_image;

/* Opens the object and finds its symbols. False: `error` says what is missing. A sanitized object needs the sanitizer's
 * runtime in this process. */
bool fa_emu_open(const char *path, fa_emu_image *image, char *error, size_t error_size);
/* The image with entry point `entry` of a plan (include/fa_launch.h); 0: fa_kernel. The image stays the caller's. */
fa_emu_image fa_emu_entry(const fa_emu_image *image, int32_t entry);
void fa_emu_close(fa_emu_image *image);

/* A launch on the emulator: its grid, and the order in which its threads run. */
typedef struct fa_emu_grid {
    fa_emu_uint3 grid, block;
    uint32_t smem_bytes, cluster; /* cluster: blocks, along x; 0 counts as 1 */
    fa_schedule schedule;         /* which ready thread runs next */
    uint64_t seed;                /* seed of the WMMA fragment maps */
    uint64_t order_seed;          /* seed of the random schedule */
    int32_t blocks_per_sm;        /* that the kernel is compiled for; 0: one */
    int32_t workers;              /* OS threads; 0: one per processor */
} fa_emu_grid;
