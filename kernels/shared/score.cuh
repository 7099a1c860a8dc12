/* What becomes of a score beside its scale (FA_FEATURE_SOFTCAP, ALIBI, BIAS, MASK), the sink of a row's sum, and the
 * descales of FP8.
 *
 *     s = q.k;  s = modified_score(scores, s, row, key);  probability = exp2(s * scores.scale_log2 - reference)
 *
 * One factor after the changes keeps an exponent a single FFMA: what is added to a score is divided by it before. */
#pragma once

#include "shared/sequence.cuh"

constexpr bool HAS_SOFTCAP = (FA_FEATURES & FA_FEATURE_SOFTCAP) != 0;
constexpr bool HAS_ALIBI = (FA_FEATURES & FA_FEATURE_ALIBI) != 0;
constexpr bool HAS_BIAS = (FA_FEATURES & FA_FEATURE_BIAS) != 0;
constexpr bool HAS_MASK = (FA_FEATURES & FA_FEATURE_MASK) != 0;
constexpr bool HAS_SINK = (FA_FEATURES & FA_FEATURE_SINK) != 0;
constexpr bool CHANGES_SCORES = HAS_SOFTCAP || HAS_ALIBI || HAS_BIAS || HAS_MASK;

/* The factor of q.k, and that of the output: descales are folded in. */
__device__ __forceinline__ float scale_of_head(const fa_params &p, int batch, int head)
{
    float scale = p.scale;
    if constexpr (FA_FP8)
        scale *= p.q_descale[batch * p.q_descale_stride_b + head * p.q_descale_stride_h];
    if constexpr (FA_FP8 || FA_FP8_KV)
        scale *= p.k_descale[batch * p.kv_descale_stride_b + head / (p.heads / p.kv_heads) * p.kv_descale_stride_h];
    return scale;
}

__device__ __forceinline__ float value_scale_of_head(const fa_params &p, int batch, int head)
{
    if constexpr (FA_FP8 || FA_FP8_KV)
        return p.v_descale[batch * p.kv_descale_stride_b + head / (p.heads / p.kv_heads) * p.kv_descale_stride_h];
    return 1.0f;
}

/* The same by the K/V head, for kernels that know it. */
__device__ __forceinline__ float value_scale_of_kv_head(const fa_params &p, int batch, int kv_head)
{
    return FA_FP8_KV ? p.v_descale[batch * p.kv_descale_stride_b + kv_head * p.kv_descale_stride_h] : 1.0f;
}

/* The scores of one sequence and query head. */
struct head_scores {
    float scale_log2;         /* a changed score times this is an exponent of two */
    float to_cap;             /* softcap: q.k times this is the argument of tanh */
    float slope;              /* ALiBi, for a key's distance */
    float of_bias;            /* a bias times this is added */
    const fa_element *bias_g; /* of query row 0 */
    const unsigned char *mask_g;
    int mask_first, mask_keys; /* bits are for mask_keys keys from this one on */
};

__device__ __forceinline__ head_scores scores_of_head(const fa_params &p, const sequence &seq, int head)
{
    head_scores scores = {};
    const float scale = scale_of_head(p, seq.batch, head);
    scores.scale_log2 = (HAS_SOFTCAP ? p.softcap : scale) * LOG2_E;
    const float of_natural = 1.0f / (HAS_SOFTCAP ? p.softcap : scale);
    if constexpr (HAS_SOFTCAP)
        scores.to_cap = scale / p.softcap;
    if constexpr (HAS_ALIBI)
        scores.slope = p.slopes[seq.batch * p.slopes_stride_b + head] * of_natural;
    if constexpr (HAS_BIAS) {
        scores.of_bias = of_natural;
        scores.bias_g = static_cast<const fa_element *>(p.bias) + seq.batch * p.bias_stride_b + head * p.bias_stride_h;
    }
    if constexpr (HAS_MASK) {
        scores.mask_g = p.mask + p.mask_start[seq.batch];
        scores.mask_keys = p.mask_keys == 0 ? seq.seq_kv : min(p.mask_keys, seq.seq_kv);
        scores.mask_first = seq.seq_kv - scores.mask_keys;
    }
    return scores;
}

/* tanh with a relative error of 2e-7, as exact as a score in FP32 is. tanh.approx is 2^-11 off: at a softcap of 50
 * that changes a probability by 2 percent. Near 0, where the quotient would cancel, a polynomial. */
constexpr float SMALL_TANH = 0.55f;
__device__ __forceinline__ float small_tanh(float x)
{
    const float square = x * x;
    float small = fmaf(square, 0.0172957517f, -0.0531467460f);
    small = fmaf(square, small, 0.1332846433f);
    small = fmaf(square, small, -0.3333328664f);
    return fmaf(square * x, small, x);
}

__device__ __forceinline__ float accurate_tanh(float x)
{
    const float magnitude = fabsf(x);
    const float large = fmaf(-2.0f, reciprocal_approx(1.0f + exp2_approx(2.0f * LOG2_E * magnitude)), 1.0f);
    return magnitude < SMALL_TANH ? small_tanh(x) : copysignf(large, x);
}

/* Do the bits of a mask show the row this key? Both are of the sequence. */
__device__ __forceinline__ bool mask_shows(const head_scores &scores, int row, int key)
{
    const fa_i64 bit = static_cast<fa_i64>(row) * scores.mask_keys + (key - scores.mask_first);
    return key < scores.mask_first || (scores.mask_g[bit / 8] >> bit % 8 & 1) != 0;
}

/* The score of a key that the row sees by its range; the bits of a mask may still hide it. */
__device__ __forceinline__ float modified_score(const fa_params &p, const sequence &seq, const head_scores &scores,
                                                float score, int row, int key)
{
    if constexpr (HAS_SOFTCAP)
        score = accurate_tanh(score * scores.to_cap);
    if constexpr (HAS_ALIBI)
        score = fmaf(-scores.slope, fabsf(static_cast<float>(position_of(seq, row) - key)), score);
    if constexpr (HAS_BIAS)
        score = fmaf(static_cast<float>(scores.bias_g[row * p.bias_stride_q + key]), scores.of_bias, score);
    if constexpr (HAS_MASK)
        score = mask_shows(scores, row, key) ? score : -INF;
    return score;
}

/* The derivative of the score by scale q.k: the softcap's. `score` is q.k. */
__device__ __forceinline__ float score_slope(const head_scores &scores, float score)
{
    if constexpr (!HAS_SOFTCAP)
        return 1.0f;
    const float bent = accurate_tanh(score * scores.to_cap);
    return fmaf(-bent, bent, 1.0f);
}

/* Adds a head's sink to a row's sum, whose exponentials were reduced by `ref` (in log2 units): once a row, where all
 * parts of the sum are together. The larger of the two is the new reference. Returns the factor for the output. */
__device__ __forceinline__ float add_sink(const fa_params &p, int head, float &ref, float &sum)
{
    if constexpr (!HAS_SINK)
        return 1.0f;
    const float sink = p.sinks[head] * LOG2_E, new_ref = fmaxf(ref, sink), factor = exp2_approx(ref - new_ref);
    sum = fmaf(sum, factor, exp2_approx(sink - new_ref));
    ref = new_ref;
    return factor;
}
