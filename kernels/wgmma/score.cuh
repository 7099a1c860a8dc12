/* What wgmma's consumers do to scores before the mask: softcap and ALiBi, on the accumulator of S. */
#pragma once

#include "shared/score.cuh"
#include "wgmma/schedule.cuh"

/* tanh where x^2 <= TANH_SQUARE: x (1 + x^2 c(x^2)) with a relative error of 3.2e-7, on the FMA units. */
constexpr float TANH_SQUARE = 0.49f;

__device__ __forceinline__ float tanh_near_zero(float x)
{
    const float square = x * x;
    float c = fmaf(square, 0.013981967f, -0.05105771f);
    c = fmaf(square, c, 0.13288839f);
    c = fmaf(square, c, -0.33331181f);
    return fmaf(x * square, c, x);
}

/* tanh of four x in place, 1 - 2 / (e^2x + 1), with one reciprocal for all. The error is 2e-7, absolute; 2^30 is
 * infinity enough. */
__device__ __forceinline__ void tanh_of_four(float *x)
{
    float d[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        d[i] = exp2_approx(fminf(x[i] * (2.0f * LOG2_E), 30.0f)) + 1.0f;
    const float d01 = d[0] * d[1], d23 = d[2] * d[3], inverse = -2.0f * reciprocal_approx(d01 * d23);
    const float inverse01 = inverse * d23, inverse23 = inverse * d01;
    x[0] = fmaf(inverse01, d[1], 1.0f);
    x[1] = fmaf(inverse01, d[0], 1.0f);
    x[2] = fmaf(inverse23, d[3], 1.0f);
    x[3] = fmaf(inverse23, d[2], 1.0f);
}

/* S = tanh(S to_cap). Scores of a tile are mostly far below the cap: then no exponential is needed, which the softmax
 * has use for. tanh.approx is 2^-11 off, at a cap of 50 two percent of a probability. */
__device__ __forceinline__ void cap_scores(float (&s_r)[FA_N / 2], float to_cap)
{
    float squares[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i) {
        s_r[i] *= to_cap;
        squares[i % 2] = fmaf(s_r[i], s_r[i], squares[i % 2]);
    }
    if (__any_sync(ALL_LANES, !(squares[0] + squares[1] <= TANH_SQUARE))) {
#pragma unroll
        for (int i = 0; i < FA_N / 2; i += 4)
            tanh_of_four(&s_r[i]);
    } else {
#pragma unroll
        for (int i = 0; i < FA_N / 2; ++i)
            s_r[i] = tanh_near_zero(s_r[i]);
    }
}

#if ALIBI
/* S -= slope |pos - j|; the slope is in units of S. */
__device__ __forceinline__ void add_alibi(float (&s_r)[FA_N / 2], const work_tile &tile, int thread)
{
    const int row = tile.row + thread / 32 * 16 + thread % 32 / 4;
    const float distance =
        static_cast<float>(position_of(tile.seq, row) - tile.first_key - tile.key_tile * FA_N - 2 * (thread % 4));
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i) {
        const float further = static_cast<float>(i / 2 % 2 * 8 - (i / 4 * 8 + i % 2));
        s_r[i] = fmaf(-tile.slope, fabsf(distance + further), s_r[i]);
    }
}
#endif

/* Softcap and ALiBi. The result times the scale of the exponents is the score in log2 units. */
__device__ __forceinline__ void change_scores(float (&s_r)[FA_N / 2], const work_tile &tile, float to_cap, int thread)
{
    if constexpr (HAS_SOFTCAP)
        cap_scores(s_r, to_cap);
#if ALIBI
    add_alibi(s_r, tile, thread);
#endif
}
