/* Inputs: Q, K and V drawn independently on the host, the same for the same seed on every device and thread count. */
#pragma once

#include "input/score_tensors.h"

/* Elements as the host holds them (input/element.h). q: [batch, heads, seq_q, dim]; k: [batch, kv_heads, seq_kv, dim];
 * v: [batch, kv_heads, seq_kv, dim_v]. With lengths [heads, rows, dim], and gaps hold FA_POISON. */
typedef struct fa_tensors {
    uint16_t *q, *k, *v;
    size_t q_count, k_count, v_count;
    fa_score_tensors scores;
    /* Backward: dO as O lies, drawn; O as a forward rounds it, and its log-sum-exp, [stored rows]: NULL until
     * check/gradients.h has made them. */
    uint16_t *dout, *o;
    float *lse;
} fa_tensors;

/* Counter-based: element i of tensor t depends on (seed, t, i) only. */
/* An FP8 tensor is drawn in BF16 and quantised (input/descales.h). */
fa_tensors fa_tensors_make(const fa_problem *problem, fa_dist dist, uint64_t seed);
/* Q, K and V are there: adds what the problem asks for beside them, and poison between its sequences. */
void fa_tensors_complete(const fa_problem *problem, uint64_t seed, fa_tensors *tensors);
/* Q, with its descales, of another seed. */
void fa_tensors_redraw_q(const fa_problem *problem, fa_dist dist, uint64_t seed, fa_tensors *tensors);
/* With --v-in-k: V becomes the first columns of K. */
void fa_tensors_take_v(const fa_problem *problem, fa_tensors *tensors);
void fa_tensors_free(fa_tensors *tensors);
