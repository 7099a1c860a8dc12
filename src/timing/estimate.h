/* A guess of a kernel's time from its machine code and its launch: the bound's pipes plus what a bound must leave out
 * (latency, copies, uneven waves), with coefficients fitted to measured times. Not a bound: it errs both ways. */
#pragma once

#include "compile/launch.h"
#include "timing/bound.h"

/* What a time is made of. Each is a time in us at the stated clock; the estimate is their weighted sum. */
typedef enum fa_term {
    FA_TERM_LAUNCH, /* 1 us */
    FA_TERM_PIPE,   /* a pipe of the busiest multiprocessor each, in the order of fa_pipe */
    /* Those pipes of one warp alone, times the rounds of blocks: a stand-in for latency, which hardly differs between
     * parts. So its tensor clocks are counted at the rate of the H200, where the weights were fitted. */
    FA_TERM_CHAIN = FA_TERM_PIPE + FA_PIPE_COUNT,
    FA_TERM_L2 = FA_TERM_CHAIN + FA_PIPE_COUNT, /* keys and values that every tile reads, at 64 bytes a clock */
    FA_TERM_COPY,                               /* the load instructions for them, one a clock */
    FA_TERM_STEPS,                              /* steps over the keys of one block, 1000 clocks each */
    FA_TERM_BLOCKS,                             /* rounds of blocks, 1000 clocks each: their start and end */
    FA_TERM_PARTS, /* the parts of O that splits write and read, FP32, at 64 bytes a clock and multiprocessor */
    FA_TERM_DRAM,
    FA_TERM_COUNT,
} fa_term;

typedef struct fa_estimate {
    bool known;
    double us, us_low, us_high; /* low, high: 80 % of the judged half of the measurements lie between */
    double terms_us[FA_TERM_COUNT];
} fa_estimate;

/* What the estimate is made from. pipe_clocks: the mean over the multiprocessors. */
typedef struct fa_estimate_input {
    const double *pipe_clocks;
    const fa_kernel_info *info;
    const fa_launch *launch;
    const fa_problem *problem;
    int32_t sm_count, blocks_per_sm, tensor_flop; /* the last as in fa_work_need */
    double clock_mhz, dram_us, bound_us;          /* the estimate is never below the bound */
} fa_estimate_input;

/* kernel: the name of the variant, for its own weights; another name has those of all, and the widest band. */
fa_estimate fa_estimate_of(const fa_estimate_input *input, const char *kernel);
const char *fa_term_name(fa_term term, char name[32]);
