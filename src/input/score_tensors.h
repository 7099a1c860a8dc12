/* The tensors beside Q, K and V: sinks, ALiBi's slopes, a bias, and descales of FP8. */
#pragma once

#include "input/problem.h"

/* NULL where the problem does not ask for them. */
typedef struct fa_score_tensors {
    float *sinks;           /* [heads] */
    float *slopes;          /* [batch, heads] */
    bool one_row_of_slopes; /* all batches have that of the first */
    /* Of the type of O, [bias_batch, bias_heads, seq_q, seq_kv]: bias_batch is 1 or batch, bias_heads 1 or heads.
     * Rows and keys beyond a sequence's lengths hold FA_POISON. */
    uint16_t *bias;
    int32_t bias_batch, bias_heads;
    /* Q is q times its own, and so are K and V: [batch, heads], and twice [batch, kv_heads] */
    float *q_descale, *k_descale, *v_descale;
} fa_score_tensors;

/* 1 where there are none. */
static inline float fa_descale(const float *descales, const fa_problem *problem, bool query, int32_t batch,
                               int32_t head)
{
    const int32_t heads = query ? problem->heads : problem->kv_heads;
    return descales != NULL ? descales[(int64_t)batch * heads + head] : 1.0f;
}

static inline double fa_slope(const fa_score_tensors *t, const fa_problem *problem, int32_t batch, int32_t head)
{
    return (double)t->slopes[(int64_t)batch * problem->heads + head];
}

fa_score_tensors fa_score_tensors_make(const fa_problem *problem, uint64_t seed);
void fa_score_tensors_free(fa_score_tensors *tensors);

/* Most elements that a drawn bias has. */
size_t fa_score_tensors_bias_most(const fa_problem *problem);
static inline uint16_t fa_score_tensors_bias(const fa_score_tensors *t, const fa_problem *p, const fa_row *at,
                                             int32_t key)
{
    const size_t batch = t->bias_batch > 1 ? (size_t)at->batch : 0, head = t->bias_heads > 1 ? (size_t)at->head : 0;
    const size_t row = (batch * (size_t)t->bias_heads + head) * (size_t)p->seq_q + (size_t)at->row;
    return t->bias[row * (size_t)p->seq_kv + (size_t)key];
}
