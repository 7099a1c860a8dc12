/* What machine code cannot be faster than: the least work that the pipes must do, whatever the control flow.
 *
 * The threads of a launch are a flow through the control-flow graph: each enters once and leaves once. Their products
 * must add up to what the problem needs. The cheapest such flow is a linear program. Every point of its dual is a lower
 * bound of the pipe that is busiest; this module searches the dual. Pure arithmetic. */
#pragma once

#include "timing/pipes.h"

typedef struct fa_work_need {
    double flop;  /* of the products over unmasked pairs */
    double warps; /* of all blocks */
    int32_t sm_count;
    double wave_factor; /* >= 1: work of the busiest multiprocessor over the mean, known from equal blocks */
    double l2_bytes;    /* that must reach the multiprocessors */
    int32_t cc, tensor_flop;
} fa_work_need;

typedef struct fa_bound {
    bool known;
    char unknown_reason[240];
    double clocks;                     /* of a multiprocessor, for the whole launch: the bound */
    double pipe_clocks[FA_PIPE_COUNT]; /* of each pipe in the cheapest flow that was found */
    double l2_clocks;                  /* bytes over the 64 per clock that a multiprocessor takes from L2 */
    fa_pipe binds, second;             /* the busiest pipes of that flow */
    bool l2_binds;
} fa_bound;

fa_bound fa_bound_of(const fa_sass *sass, const fa_work_need *need);
