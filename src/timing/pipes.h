/* What an instruction costs the pipes of a multiprocessor, and what it adds to the products. Rates are the highest that
 * any source gives, so that costs are lower bounds. */
#pragma once

#include "compile/sass.h"

/* The parts of a multiprocessor that can run out. Shared: the 128 bytes per clock of shared memory and shuffles. */
typedef enum fa_pipe {
    FA_PIPE_TENSOR,
    FA_PIPE_MUFU, /* exp2, reciprocal, ... */
    FA_PIPE_FMA,  /* FP32 and packed FP16 arithmetic, integer multiply-add */
    FA_PIPE_ALU,  /* integer, compare, select, maximum, packing to FP16 */
    FA_PIPE_SHARED,
    FA_PIPE_ISSUE, /* one instruction per scheduler and clock */
    FA_PIPE_COUNT,
} fa_pipe;

const char *fa_pipe_name(fa_pipe pipe); /* "tensor", "mufu", ... */

/* One warp instruction: clocks that it keeps each pipe of a multiprocessor busy, at least, and the floating-point
 * operations of products (a multiply-add is two) that it can do for 32 threads, at most. */
typedef struct fa_cost {
    double clocks[FA_PIPE_COUNT];
    double flop;
} fa_cost;

/* cc: 80, 86, 87, 89 or 90. tensor_flop: dense FP16 operations of the tensor cores per multiprocessor and clock. */
fa_cost fa_cost_of(const fa_instruction *instruction, int32_t cc, int32_t tensor_flop);
