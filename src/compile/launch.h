/* The geometry of a launch, and how many of its blocks a multiprocessor holds. Arithmetic only. */
#pragma once

#include "compile/module.h"
#include "input/problem.h"
#include "input/spec.h"

/* Grid, block and workspace of one launch. With a plan (of the file's lines, or of fa_before, fa_kernel and
 * fa_after) these are its fa_kernel's, grid and threads the products of their dimensions, and what is launched are the
 * steps of the plan. */
typedef struct fa_launch {
    uint32_t grid, threads, smem_dynamic_bytes, cluster;
    int32_t tiles_m, tiles;
    int64_t workspace_bytes;
    fa_plan plan;
} fa_launch;
/* grid is 0 when the problem needs more blocks than a launch can have (2^31 - 1). */
fa_launch fa_launch_of(const fa_module *module, const fa_problem *problem, int32_t sm_count);
/* The steps of a launch: those of its plan, or the one. */
int32_t fa_launch_steps(const fa_launch *launch);
/* Step i. False: it is left out, as the tensor that it would copy lies as the kernels take it, or is not asked for. */
bool fa_launch_step_of(const fa_launch *launch, const fa_params *params, int32_t i, fa_step *step);

/* How many blocks with these needs a multiprocessor of the architecture holds at once. */
fa_occupancy fa_occupancy_of(const fa_arch_limits *limits, int32_t threads, int32_t registers, int32_t smem_bytes);
