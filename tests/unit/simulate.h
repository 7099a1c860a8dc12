/* A flash kernel on the CPU, as a GPU would compute it (FP32 logits and accumulators, online softmax over key tiles, P
 * in the type of the tensors), and the ways to get it wrong. What the checker is tested with. */
#pragma once

#include "check/reference.h"

typedef enum {
    SIM_GOOD,
    SIM_GOOD_P32,     /* P stays FP32 */
    SIM_GOOD_SUM_P16, /* the row sum adds the rounded P */
    SIM_MEAN_OF_V,
    SIM_DROP_LAST_TILE, /* of keys */
    SIM_NO_RESCALE,     /* accumulator not rescaled when the maximum rises */
    SIM_SCALE_OFF,      /* 2 % */
    SIM_OUTPUT_SCALED,  /* O times 1.02 */
    SIM_SWAP_KV,
    SIM_CAUSAL_EARLY,    /* diagonal masked too */
    SIM_CAUSAL_LATE,     /* one key of the future seen */
    SIM_CAUSAL_TOP_LEFT, /* aligned at the wrong corner; shows where seq_q != seq_kv */
    SIM_NO_TAIL_MASK,    /* keys past the end count with logit 0 and V = 0 */
    SIM_WRONG_KV_HEAD,   /* head % kv_heads instead of head / group */
    SIM_ACC_ROUNDED,     /* accumulators rounded to the type of the tensors at every tile */
    SIM_LOGITS_BF16,     /* logits rounded to 8 bits */
    SIM_SUM_NOT_RESCALED,
} sim_fault;

/* One input with its reference, and room for an output of `count` elements. */
typedef struct bench {
    fa_problem problem;
    fa_tensors tensors;
    fa_reference reference;
    uint16_t *output;
    size_t count;
} bench;
/* The problem is freed, too. */
void close_bench(bench *b);

/* Fills output [batch, heads, seq_q, dim] for the rows of `reference`; other rows become 0. */
void sim_flash(const fa_problem *problem, const fa_tensors *tensors, const fa_reference *reference, int32_t tile_n,
               sim_fault fault, uint16_t *output);
