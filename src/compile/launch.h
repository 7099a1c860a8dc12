/* The geometry of a launch, and how many of its blocks a multiprocessor holds. Arithmetic only. */
#ifndef FA_LAUNCH_H
#define FA_LAUNCH_H

#include "compile/module.h"
#include "input/problem.h"
#include "input/spec.h"

/* Grid, block and workspace of one launch. */
typedef struct fa_launch {
    uint32_t grid, threads, smem_dynamic_bytes, cluster;
    int32_t tiles_m, tiles;
    int64_t workspace_bytes;
} fa_launch;
/* grid is 0 when the problem needs more blocks than a launch can have (2^31 - 1). */
fa_launch fa_launch_of(const fa_kernel_info *info, const fa_problem *problem, int32_t sm_count);

/* How many blocks with these needs a multiprocessor of the architecture holds at once. */
fa_occupancy fa_occupancy_of(const fa_arch_limits *limits, int32_t threads, int32_t registers, int32_t smem_bytes);

#endif
