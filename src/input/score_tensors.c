#include "input/score_tensors.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

enum { SINKS = 16, BIAS }; /* streams beside those of Q, K and V */
/* A bias for each batch and head up to this many elements; beyond it they share one. */
#define BIAS_MOST ((size_t)1 << 26)

/* Natural units, about as large as the log-sum-exp of a row: half of its weight or so, and far from alike. That of one
 * head is below 0 (or of none: with a single head it is not always). */
static float *make_sinks(const fa_problem *problem, uint64_t stream)
{
    const double rows = fmax((double)fa_problem_pairs(problem), 1.0) /
                        fmax((double)problem->heads * problem->batch * problem->seq_q, 1.0);
    float *sinks = fa_alloc((size_t)problem->heads * sizeof *sinks);
    for (int32_t head = 0; head < problem->heads; head++)
        sinks[head] = (float)log(fmax(rows, 1.0)) + 2.0f * fa_draw_normal(fa_draw_bits(stream, (uint64_t)head));
    const uint64_t below = fa_draw_bits(stream, (uint64_t)problem->heads) % ((uint64_t)problem->heads + 1);
    if (below < (uint64_t)problem->heads)
        sinks[below] = -1.0f - fabsf(sinks[below]) / 4;
    return sinks;
}

/* 2^(-8k/n) for k = 1..n where n is a power of two; otherwise those of the power below, then every second one of the
 * power above (Press, Smith, Lewis 2022, and the authors' code). The seed says whether later batches have others. */
static float *make_slopes(const fa_problem *problem, uint64_t seed)
{
    const int32_t heads = problem->heads;
    float *slopes = fa_alloc(((size_t)heads * (size_t)problem->batch + 1) * sizeof *slopes);
    int32_t below = 1;
    while (2 * below <= heads)
        below *= 2;
    for (int32_t head = 0; head < heads; head++)
        slopes[head] = (float)(head < below ? exp2(-8.0 * (head + 1) / below)
                                            : exp2(-8.0 * (2 * (head - below) + 1) / (2 * below)));
    for (int64_t i = heads; i < (int64_t)heads * problem->batch; i++)
        slopes[i] = slopes[i % heads] * (seed % 3 == 1 && i / heads % 2 == 1 ? 0.5f : 1.0f);
    return slopes;
}

size_t fa_score_tensors_bias_most(const fa_problem *problem)
{
    const size_t plane = (size_t)problem->seq_q * (size_t)problem->seq_kv;
    const size_t heads = plane * (size_t)problem->heads, all = heads * (size_t)problem->batch;
    return all <= BIAS_MOST ? all : heads <= BIAS_MOST ? heads : plane;
}

/* N(0,1). The seed says what is broadcast: nothing, batches, or batches and heads. */
static void make_bias(const fa_problem *problem, uint64_t stream, uint64_t seed, fa_score_tensors *tensors)
{
    const size_t most = fa_score_tensors_bias_most(problem), plane = (size_t)problem->seq_q * (size_t)problem->seq_kv;
    const size_t planes = most / (plane > 0 ? plane : 1);
    tensors->bias_heads = planes >= (size_t)problem->heads && seed % 3 != 1 ? problem->heads : 1;
    tensors->bias_batch =
        planes >= (size_t)problem->heads * (size_t)problem->batch && seed % 3 == 0 ? problem->batch : 1;
    const int64_t rows = (int64_t)tensors->bias_batch * tensors->bias_heads * problem->seq_q;
    tensors->bias = fa_alloc(((size_t)rows * (size_t)problem->seq_kv + 1) * sizeof *tensors->bias);
#pragma omp parallel for schedule(static) if (rows * problem->seq_kv > 1 << 16)
    for (int64_t flat = 0; flat < rows; flat++) {
        const int32_t batch = (int32_t)(flat / problem->seq_q / tensors->bias_heads);
        const bool shared = tensors->bias_batch == 1;
        const bool used = shared || flat % problem->seq_q < fa_problem_seq_q(problem, batch);
        const int32_t keys = shared ? problem->seq_kv : used ? fa_problem_seq_kv(problem, batch) : 0;
        uint16_t *row = tensors->bias + flat * problem->seq_kv;
        for (int32_t j = 0; j < problem->seq_kv; j++) {
            const float value = fa_draw_normal(fa_draw_bits(stream, (uint64_t)(flat * problem->seq_kv + j)));
            row[j] = j >= keys ? FA_POISON : fa_element_of_float(fa_problem_dtype_o(problem), value);
        }
    }
}

fa_score_tensors fa_score_tensors_make(const fa_problem *problem, uint64_t seed)
{
    fa_score_tensors tensors = {
        .sinks = problem->sinks ? make_sinks(problem, fa_draw_stream(seed, SINKS)) : NULL,
        .slopes = problem->alibi ? make_slopes(problem, seed) : NULL,
        .one_row_of_slopes = seed % 3 != 1,
    };
    if (problem->bias)
        make_bias(problem, fa_draw_stream(seed, BIAS), seed, &tensors);
    return tensors;
}

void fa_score_tensors_free(fa_score_tensors *tensors)
{
    free(tensors->sinks);
    free(tensors->slopes);
    free(tensors->bias);
    free(tensors->q_descale);
    free(tensors->k_descale);
    free(tensors->v_descale);
}
