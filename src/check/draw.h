/* Seeds of a check also draw a distribution, scale and layout other than the requested ones. */
#pragma once

#include "input/tensors.h"

typedef struct fa_draw {
    uint64_t seed, q_seed; /* q_seed: of Q alone */
    bool as_asked;
    int32_t dist;    /* fa_dist */
    int32_t strides; /* fa_strides */
    float factor;    /* of the problem's scale; inputs are drawn for the requested scale */
    int32_t v_power; /* V times 2^v_power */
    int32_t lengths; /* 0: as asked; else other lengths (fa_lengths_vary) and another page table */
    bool given;      /* values of the workload's files lie over those that are drawn */
    bool flat;       /* some queries are zero, and the keys of some heads equal: every weight is the same */
    double max_abs_err;
} fa_draw;

/* The draw of seed number `index`. The first and the last use the requested inputs. Between them, in turn:
 *   needle or rising, scale x 16, padded: a softmax whose maximum is missing, or of the first keys, overflows; V is
 *   2^10 times as large, with BF16 2^20 times: sums in FP16 overflow;
 *   low, bshd: every logit is near -128, so a maximum that starts at 0 or -10 leaves nothing;
 *   other values, scale x 1/4 or x 3, padded or bshd: a scale or stride that is not the launch's own; V is 2^10 times
 *   smaller, with BF16 2^30 times: what is added to an output, or taken for zero, shows; some weights are all alike.
 * With --op backward sharp, padded; low, bshd; other values without another V. With --deterministic low comes first and
 * is repeated: all keys have a large column, which cancels in dQ, so the order of its sums shows in 16 bits.
 * Sequences have other lengths in each, in the same memory. */
fa_draw fa_draw_of(const fa_options *options, const fa_problem *problem, int32_t index);
/* The problem with the draw's lengths and pages; all else as asked. Free it by fa_draw_problem_free. */
fa_problem fa_draw_problem(const fa_draw *draw, const fa_problem *asked);
void fa_draw_problem_free(const fa_problem *asked, fa_problem *drawn);
/* The draw's inputs. Where Q is made for the keys (needle, cliff), q_seed is that of the keys. */
fa_tensors fa_draw_tensors(const fa_draw *draw, const fa_problem *asked);
#define FA_DRAW_TEXT 128
/* "seed 43", or "seed 43 (needle, scale x 16, padded)". */
void fa_draw_describe(const fa_draw *draw, char text[FA_DRAW_TEXT]);
