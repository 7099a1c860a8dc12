/* Inputs: Q, K and V drawn independently on the host, the same for the same seed on every device and thread count. */
#ifndef FA_TENSORS_H
#define FA_TENSORS_H

#include "input/problem.h"

/* Bit patterns of the problem's type. q: [batch, heads, seq_q, dim]; k, v: [batch, kv_heads, seq_kv, dim]. */
typedef struct fa_tensors {
    uint16_t *q, *k, *v;
    size_t q_count, kv_count;
} fa_tensors;

/* Counter-based: element i of tensor t depends on (seed, t, i) only. */
fa_tensors fa_tensors_make(const fa_problem *problem, fa_dist dist, uint64_t seed);
void fa_tensors_free(fa_tensors *tensors);

#endif
