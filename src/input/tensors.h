/* Inputs: Q, K and V drawn independently on the host, the same for the same seed on every device and thread count. */
#ifndef FA_TENSORS_H
#define FA_TENSORS_H

#include "input/problem.h"

/* Bit patterns of the problem's type, as stored. q: [batch, heads, seq_q, dim]; k: [batch, kv_heads, seq_kv, dim]; v:
 * [batch, kv_heads, seq_kv, dim_v]. With lengths [heads, rows, dim], and gaps hold FA_POISON. The others are NULL where
 * the problem does not ask for them. */
typedef struct fa_tensors {
    uint16_t *q, *k, *v;
    size_t q_count, k_count, v_count;
    float *sinks, *slopes; /* [heads] */
    /* Of the problem's type, [bias_batch, bias_heads, seq_q, seq_kv]: bias_batch is 1 or batch, bias_heads 1 or heads.
     * Rows and keys beyond a sequence's lengths hold FA_POISON. */
    uint16_t *bias;
    int32_t bias_batch, bias_heads;
} fa_tensors;

/* What gaps, guards and outputs before a launch are filled with: a NaN of all types that no arithmetic produces. */
#define FA_POISON 0xFFFFu

/* Counter-based: element i of tensor t depends on (seed, t, i) only. */
fa_tensors fa_tensors_make(const fa_problem *problem, fa_dist dist, uint64_t seed);
/* Q, K and V are there: adds what the problem asks for beside them, and poison between its sequences. */
void fa_tensors_complete(const fa_problem *problem, uint64_t seed, fa_tensors *tensors);
void fa_tensors_free(fa_tensors *tensors);

size_t fa_tensors_bias_count(const fa_tensors *tensors, const fa_problem *problem);
/* Most elements that a drawn bias has. */
size_t fa_tensors_bias_most(const fa_problem *problem);
static inline uint16_t fa_tensors_bias(const fa_tensors *t, const fa_problem *p, const fa_row *at, int32_t key)
{
    const size_t batch = t->bias_batch > 1 ? (size_t)at->batch : 0, head = t->bias_heads > 1 ? (size_t)at->head : 0;
    const size_t row = (batch * (size_t)t->bias_heads + head) * (size_t)p->seq_q + (size_t)at->row;
    return t->bias[row * (size_t)p->seq_kv + (size_t)key];
}

#endif
