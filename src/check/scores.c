#include "check/scores.h"

#include <math.h>

/* What is added to the score of a key after softcap; -inf: a tree hides it. */
static double added(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, int32_t key)
{
    double sum = 0.0;
    if (problem->tree && !fa_problem_sees(problem, at->batch, at->row, key))
        return -INFINITY;
    if (problem->bias)
        sum +=
            (double)fa_element_to_float(fa_problem_dtype_o(problem), fa_score_tensors_bias(tensors, problem, at, key));
    if (problem->alibi)
        sum -= fa_slope(tensors, problem, at->batch, at->head) * fabs((double)at->row + at->seq_kv - at->seq_q - key);
    return sum;
}

static bool adds(const fa_problem *problem) { return problem->tree || problem->bias || problem->alibi; }

/* The logit of a row that belongs to no key. */
static double sink_of(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at)
{
    return problem->sinks ? (double)tensors->sinks[at->head] : -INFINITY;
}

double fa_scores_softmax(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, fa_keys keys,
                         double *restrict x)
{
    const double scale = (double)problem->scale, cap = (double)problem->softcap;
    const double sink = sink_of(problem, tensors, at);
    double max = sink, sum = 0.0;
    for (int32_t j = keys.first; j < keys.end; j++)
        x[j] *= scale;
    for (int32_t j = keys.first; cap > 0.0 && j < keys.end; j++)
        x[j] = cap * tanh(x[j] / cap);
    for (int32_t j = keys.first; adds(problem) && j < keys.end; j++)
        x[j] += added(problem, tensors, at, j);
    for (int32_t j = keys.first; j < keys.end; j++)
        max = x[j] > max ? x[j] : max;
    const double reference = max > -INFINITY ? max : 0.0; /* a row that sees nothing has weights of 0 */
    for (int32_t j = keys.first; j < keys.end; j++) {
        x[j] = exp(x[j] - reference);
        sum += x[j];
    }
    sum += exp(sink - reference);
    for (int32_t j = keys.first; j < keys.end; j++)
        x[j] = sum > 0.0 ? x[j] / sum : 0.0;
    return reference + log(sum); /* -inf without keys */
}

static float largest_of(const float *restrict x, int32_t keys)
{
    float max = -INFINITY;
    for (int32_t j = 0; j < keys; j++)
        max = x[j] > max ? x[j] : max;
    return max;
}

/* Scaled scores in the type; FP32 where one is beyond the type's largest number, or with E4M3, which returns false. */
static bool round_scores(fa_dtype dtype, float *restrict x, int32_t keys, float scale, float *largest)
{
    float most = 0.0f;
    for (int32_t j = 0; j < keys; j++) {
        x[j] *= scale;
        most = fabsf(x[j]) > most ? fabsf(x[j]) : most;
    }
    *largest = most;
    if (most > fa_element_largest(dtype) || dtype == FA_DTYPE_E4M3)
        return false;
    for (int32_t j = 0; j < keys; j++)
        x[j] = fa_element_round(dtype, x[j]);
    return true;
}

/* The features' part of a score, each step rounded to the type where `fits`. *largest: what a score's rounding is a
 * part of; a softcap shrinks what was rounded before it by its slope. */
static void modify(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, fa_keys keys,
                   bool fits, float *x, float *largest)
{
    const float cap = problem->softcap;
    float most = cap > 0.0f ? 0.0f : *largest;
    for (int32_t j = keys.first; j < keys.end; j++) {
        if (cap > 0.0f) {
            const float bent = tanhf(x[j] / cap), before = fabsf(x[j]) * (1.0f - bent * bent);
            x[j] = fits ? fa_element_round(problem->dtype, cap * bent) : cap * bent;
            most = fmaxf(most, fmaxf(before, fabsf(x[j])));
        }
        const float more = adds(problem) ? (float)added(problem, tensors, at, j) : 0.0f;
        if (more == 0.0f)
            continue;
        x[j] += more;
        if (!isfinite(more))
            continue;
        x[j] = fits && fabsf(x[j]) < fa_element_largest(problem->dtype) ? fa_element_round(problem->dtype, x[j]) : x[j];
        most = fmaxf(most, fabsf(x[j]));
    }
    *largest = most;
}

/* FP8: an exponential is rounded as about 2^7 of it. The reference of a right kernel need not be the row's maximum, so
 * that a weight of 1 may fall between two numbers: here it is 3.1 % off, half of what it can be. */
#define P_SCALE 132.0f
/* What the sums of q.k may lose of the largest: an FP8 product has 13 fraction bits, FP32 sums more. */
#define FP8_SCORE_LOSS 0x1p-12
#define FP32_SCORE_LOSS 0x1p-18

/* Each score is off, up or down by the key's draw. */
static void move_scores(float *x, int32_t keys, float off)
{
    for (int32_t j = 0; j < keys; j++)
        x[j] += ((uint32_t)j * 0x9e3779b9u) >> 31 ? off : -off;
}

/* Like separate operations on tensors of the type: S in the type, softmax in FP32 (its sum in FP16 in the lower class),
 * P in the type. Scores beyond the type stay FP32. The row's largest is then too small by what FP32 sums may lose: a
 * right kernel may be as wrong. With FP8 every score is off: where all are large, all of them lose. */
double fa_scores_baseline(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, fa_keys seen,
                          bool acc_fp16, float *restrict all, double *sway)
{
    float largest, *x = all + seen.first;
    const fa_dtype dtype = problem->dtype;
    const int32_t keys = seen.end - seen.first;
    const float sink = (float)sink_of(problem, tensors, at);
    const bool fits = round_scores(dtype, x, keys, problem->scale, &largest);
    if (problem->softcap > 0.0f || adds(problem))
        modify(problem, tensors, at, seen, fits, all, &largest);
    const double roundoff = ldexp(1.0, -fa_dtype_bits(dtype));
    const bool fp8 = dtype == FA_DTYPE_E4M3;
    const double loss = fits || acc_fp16 ? 2.0 * roundoff : fp8 ? FP8_SCORE_LOSS : FP32_SCORE_LOSS;
    const double off = loss * (double)largest;
    if (fp8)
        move_scores(x, keys, (float)off);
    const float top_score = largest_of(x, keys);
    int32_t top = 0;
    *sway = 0.0;
    if (top_score == -INFINITY) { /* no key is seen */
        for (int32_t j = 0; j < keys; j++)
            x[j] = 0.0f;
        return (double)sink;
    }
    while (top + 1 < keys && x[top] < top_score)
        top++;
    x[top] = -INFINITY;
    const float second = fmaxf(largest_of(x, keys), sink);
    x[top] = fits ? top_score : (float)((double)top_score - off);
    const float max = x[top] > second ? x[top] : second;
    double sum = 0.0;
    for (int32_t j = 0; j < keys; j++) {
        x[j] = expf(x[j] - max);
        sum = acc_fp16 ? (double)fa_round_half((float)sum + x[j]) : sum + (double)x[j];
    }
    sum += (double)expf(sink - max);
    /* The weight of the others over the top key's, as a logarithm: small ones are the second's alone. */
    const double others = log(fmax(sum - (double)x[top], 0.0)) + (double)max;
    const double odds = fmax(others, (double)second) - (double)top_score;
    const double weight = 1.0 / (1.0 + exp(odds));
    *sway = acc_fp16 ? INFINITY : weight - 1.0 / (1.0 + exp(odds + off)) + roundoff * (1.0 - weight);
    const float total = (float)sum;
    for (int32_t j = 0; j < keys; j++)
        x[j] = fp8 ? fa_round_e4m3(P_SCALE * x[j]) / (P_SCALE * total) : fa_element_round(dtype, x[j] / total);
    return (double)max + log(sum);
}
