/* The attention problem: shapes, mask, scale; validated, with its FLOP count. */
#ifndef FA_PROBLEM_H
#define FA_PROBLEM_H

#include "input/options.h"

/* Shapes in elements. q, o: [batch, heads, seq_q, dim]; k, v: [batch, kv_heads, seq_kv, dim]; contiguous, all of
 * one type. */
typedef struct fa_problem {
    int32_t batch, heads, kv_heads, seq_q, seq_kv, dim;
    bool causal; /* bottom-right aligned: row i sees key j iff j <= i + seq_kv - seq_q */
    float scale; /* multiplies Q K^T; default 1/sqrt(dim) */
    fa_dtype dtype;
} fa_problem;

/* FA_USAGE when kv_heads does not divide heads, dim is no multiple of 8, ... */
fa_status fa_problem_make(const fa_options *options, fa_problem *problem, fa_reason *why);

size_t fa_problem_q_count(const fa_problem *problem);  /* elements of Q, and of O */
size_t fa_problem_kv_count(const fa_problem *problem); /* elements of K, and of V */
int64_t fa_problem_pairs(const fa_problem *problem);   /* unmasked (query, key) pairs, over all batches and heads */
double fa_problem_flop(const fa_problem *problem);     /* 4 * dim * pairs */
double fa_problem_bytes(const fa_problem *problem);    /* Q, K, V read once, O written once */
/* Keys that query row `row` sees: 0..seq_kv. */
int32_t fa_problem_row_keys(const fa_problem *problem, int32_t row);

#endif
