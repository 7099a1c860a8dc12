#include "input/problem.h"

#include <math.h>

enum { FAR_MOST = 4096 }; /* parts of a tensor that lie apart, each with guards of its own */

fa_status fa_problem_make(const fa_options *options, fa_problem *problem, fa_reason *why)
{
    *problem = (fa_problem){
        .batch = options->batch,
        .heads = options->heads,
        .kv_heads = options->kv_heads == FA_UNSET ? options->heads : options->kv_heads,
        .seq_q = options->seq,
        .seq_kv = options->seq_kv == FA_UNSET ? options->seq : options->seq_kv,
        .dim = options->dim,
        .causal = options->causal,
        .dtype = options->dtype,
    };
    problem->scale = options->scale == FA_UNSET_REAL ? (float)(1.0 / sqrt(options->dim)) : (float)options->scale;
    if (problem->dim % 8 != 0)
        return fa_refuse(why, FA_USAGE, "--dim takes a multiple of 8 from 16 to 256, not '%d'", problem->dim);
    if (problem->heads % problem->kv_heads != 0)
        return fa_refuse(why, FA_USAGE, "--kv-heads takes a divisor of --heads (%d), not '%d'", problem->heads,
                         problem->kv_heads);
    const int32_t blocks = problem->batch > 1 ? problem->batch : problem->heads > 1 ? problem->heads : options->seq;
    if (options->strides == FA_STRIDES_FAR && (blocks > FAR_MOST || problem->seq_kv > FAR_MOST))
        return fa_refuse(why, FA_USAGE, "--strides far takes at most %d batches, heads or rows", FAR_MOST);
    return FA_PASS;
}

size_t fa_problem_q_count(const fa_problem *problem)
{
    return (size_t)problem->batch * (size_t)problem->heads * (size_t)problem->seq_q * (size_t)problem->dim;
}

size_t fa_problem_kv_count(const fa_problem *problem)
{
    return (size_t)problem->batch * (size_t)problem->kv_heads * (size_t)problem->seq_kv * (size_t)problem->dim;
}

int32_t fa_problem_row_keys(const fa_problem *problem, int32_t row)
{
    if (!problem->causal)
        return problem->seq_kv;
    const int64_t keys = (int64_t)row + 1 + problem->seq_kv - problem->seq_q;
    if (keys < 0)
        return 0;
    return keys < problem->seq_kv ? (int32_t)keys : problem->seq_kv;
}

int64_t fa_problem_pairs(const fa_problem *problem)
{
    const int64_t heads = (int64_t)problem->batch * problem->heads;
    if (!problem->causal)
        return heads * problem->seq_q * problem->seq_kv;
    /* The last row sees all keys, each row above one fewer, down to none. */
    const int64_t rows = problem->seq_q < problem->seq_kv ? problem->seq_q : problem->seq_kv;
    const int64_t last = problem->seq_kv, first = last - rows + 1;
    return heads * (rows * (first + last) / 2);
}

double fa_problem_flop(const fa_problem *problem) { return 4.0 * problem->dim * (double)fa_problem_pairs(problem); }

double fa_problem_bytes(const fa_problem *problem)
{
    return 2.0 * (2.0 * (double)fa_problem_q_count(problem) + 2.0 * (double)fa_problem_kv_count(problem));
}
