/* What one warp of `mma` computes: scores, softmax and output of its query rows over one tile of keys, in registers.
 * K, V and Q lie in shared memory as mma/tile.cuh says. */
#pragma once

#include "mma/config.cuh"

/* A row's reference row_ref is the largest score of the warp's first keys, plus HEADROOM as an exponent. Later scores
 * may be 2^(16 + HEADROOM) times as probable before FP16 overflows; probabilities down to 2^-10 of the largest keep
 * all their bits. */
constexpr float HEADROOM = 4.0f;
/* When a row's sum is larger than this, its reference moves. */
constexpr float LARGE_SUM = 4096.0f;
/* A sum that has overflowed restarts the tile. In FP16 a probability becomes infinite long before. BF16 has the range
 * of FP32, so a limit far below its end keeps O finite, too. */
constexpr float OVERFLOWED_SUM = FA_BF16 ? 0x1p64f : INF;
constexpr float LARGEST_SUM = FA_BF16 ? OVERFLOWED_SUM : 3.402823466e38f;

/* f(I) .. f(END - 1) without a loop. The compiler leaves long loops rolled in spite of the pragma, which puts register
 * arrays in local memory. */
template <int I, int END, class F>
__device__ __forceinline__ void unrolled(const F &f)
{
    if constexpr (I < END) {
        f(I);
        unrolled<I + 1, END>(f);
    }
}

/* The state of a warp, in fragments of mma.sync: of a 16x8 accumulator, element 2 h + e is row lane / 4 + 8 h, column
 * lane % 4 * 2 + e. score * scale_log2 + minus_row_ref is the exponent of two: one FFMA. */
struct warp_state {
    float o[BANDS][V_STEPS * 2][4];
    float sum[BANDS][4]; /* of the probabilities, by an mma with ones: every column the same */
    float s[S_TILES8][BANDS][4];
    unsigned p[P_CHUNKS][BANDS][4];
    float minus_row_ref[BANDS][2];
    unsigned q[Q_STEPS > 0 ? Q_STEPS : 1][BANDS][4];
    lane_fragments<v_row> v_lane; /* in the warp's keys of V */
#if FA_DIM_V != FA_DIM
    lane_fragments<qk_row> q_lane; /* in its rows of Q */
#else
    int q_offset; /* from v_lane to the warp's rows of Q */
#endif
    float scale_log2;    /* scale * log2 e; with a softcap, softcap * log2 e */
    float to_cap, slope; /* of head_scores */
};

__device__ __forceinline__ void clear_output(warp_state &w)
{
    clear(w.sum);
    clear(w.o);
}

__device__ __forceinline__ void load_q_fragments(unsigned (&q)[BANDS][4], const warp_state &w, int step)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#if FA_DIM_V != FA_DIM
        ldmatrix_x4_at(q[b], fragment_at(w.q_lane, 0, step, b));
#else
        ldmatrix_x4_at(q[b], fragment_at(w.v_lane, w.q_offset, step, b));
#endif
}

/* Scores of 16 keys, one k16 step; k: fragment of the keys. */
__device__ __forceinline__ void score_mma(warp_state &w, const unsigned (&q)[BANDS][4], const unsigned (&k)[4],
                                          int chunk, bool first)
{
    const unsigned keys_lo[2] = {k[0], k[1]}, keys_hi[2] = {k[2], k[3]};
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        if (first) {
            const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            mma_m16n8k16_from(w.s[2 * chunk][b], zero, q[b], keys_lo);
            mma_m16n8k16_from(w.s[2 * chunk + 1][b], zero, q[b], keys_hi);
        } else {
            mma_m16n8k16(w.s[2 * chunk][b], q[b], keys_lo);
            mma_m16n8k16(w.s[2 * chunk + 1][b], q[b], keys_hi);
        }
    }
}

/* Output of 16 keys' probabilities, 16 columns; v: fragment of the values. */
__device__ __forceinline__ void value_mma(warp_state &w, const unsigned (&p)[BANDS][4], const unsigned (&v)[4],
                                          int step)
{
    const unsigned columns_lo[2] = {v[0], v[1]}, columns_hi[2] = {v[2], v[3]};
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        mma_m16n8k16(w.o[b][2 * step], p[b], columns_lo);
        mma_m16n8k16(w.o[b][2 * step + 1], p[b], columns_hi);
    }
}

/* Row sums of 16 keys' probabilities. */
__device__ __forceinline__ void sum_mma(warp_state &w, const unsigned (&p)[BANDS][4])
{
    const unsigned ones[2] = {TWO_ONES, TWO_ONES};
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        mma_m16n8k16(w.sum[b], p[b], ones);
}

struct no_load {
    __device__ __forceinline__ void operator()(int, int) const {}
};

/* S = Q K^T of the keys at `offset`. Calls meanwhile(i, points) at each of so many points, for loads. */
template <class MEANWHILE>
__device__ __forceinline__ void score_tile(warp_state &w, const lane_fragments<qk_row> &k_lane, int offset,
                                           const MEANWHILE &meanwhile)
{
    constexpr int CHUNKS16 = S_TILES8 / 2;
    unsigned k[2][4], q[2][BANDS][4];
    auto load = [&](int i) {
        const int step = i / CHUNKS16, chunk = i % CHUNKS16;
        if (i >= STEPS * CHUNKS16)
            return;
        if (chunk == 0 && step >= Q_STEPS)
            load_q_fragments(q[step % 2], w, step);
        ldmatrix_x4_at(k[i % 2], fragment_at(k_lane, offset, step, chunk));
    };
    load(0);
    unrolled<0, STEPS * CHUNKS16>([&](int i) {
        const int step = i / CHUNKS16, chunk = i % CHUNKS16;
        load(i + 1);
        meanwhile(i, STEPS * CHUNKS16);
        score_mma(w, step < Q_STEPS ? w.q[step] : q[step % 2], k[i % 2], chunk, step == 0);
    });
}

/* Scores of keys that a row does not see become -inf. first_key, last_key: the first and the last key each row sees,
 * counted from the first key of the tiles. */
__device__ __forceinline__ void mask_scores(warp_state &w, const int (&first_key)[BANDS][2],
                                            const int (&last_key)[BANDS][2], int first, int end)
{
    const int column = reload_thread_index() % 4 * 2;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int t = first; t < end; ++t)
                if ((t - first) * 8 + r % 2 > last_key[b][r / 2] - column ||
                    (HAS_FIRST_KEY && (t - first) * 8 + r % 2 < first_key[b][r / 2] - column))
                    w.s[t][b][r] = -INF;
}

/* softcap: scores become tanh(score); the factor of the exponent is softcap * log2 e. Most scores are small against the
 * cap: then the polynomial of tanh is enough. */
__device__ __forceinline__ void cap_scores(warp_state &w, int first, int end)
{
    float largest = 0.0f;
#pragma unroll
    for (int t = first; t < end; ++t)
#pragma unroll
        for (int i = 0; i < BANDS * 4; ++i) {
            float &score = w.s[t][i / 4][i % 4];
            score *= w.to_cap;
            largest = fmaxf(largest, fabsf(score));
        }
    const bool small = __all_sync(ALL_LANES, largest < SMALL_TANH);
#pragma unroll
    for (int t = first; t < end; ++t)
#pragma unroll
        for (int i = 0; i < BANDS * 4; ++i) {
            float &score = w.s[t][i / 4][i % 4];
            score = small ? small_tanh(score) : accurate_tanh(score);
        }
}

/* ALiBi. distance: from the lane's first row to the first key of the tiles. */
__device__ __forceinline__ void add_distances(warp_state &w, int distance, int first, int end)
{
    const float from = static_cast<float>(distance - static_cast<int>(reload_thread_index() % 4 * 2));
#pragma unroll
    for (int t = first; t < end; ++t)
#pragma unroll
        for (int i = 0; i < BANDS * 4; ++i)
            w.s[t][i / 4][i % 4] = fmaf(-w.slope, fabsf(from + static_cast<float>(i / 2 * 8 - (t - first) * 8 - i % 2)),
                                        w.s[t][i / 4][i % 4]);
}

/* Probabilities of two neighbouring keys, packed: register `r` of the A operand of `chunk`, band b. */
__device__ __forceinline__ unsigned probability_pair(const warp_state &w, int chunk, int b, int r)
{
    const int t = 2 * chunk + r / 2, h = r % 2;
    return pack_elements(exp2_approx(fmaf(w.s[t][b][2 * h], w.scale_log2, w.minus_row_ref[b][h])),
                         exp2_approx(fmaf(w.s[t][b][2 * h + 1], w.scale_log2, w.minus_row_ref[b][h])));
}

/* Raises each row's row_max to the largest of its scores in w.s; all lanes of a row get it. */
__device__ __forceinline__ void raise_row_max(float (&row_max)[BANDS][2], const warp_state &w)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int t = 0; t < S_TILES8; ++t)
                row_max[b][h] = fmaxf(row_max[b][h], fmaxf(w.s[t][b][2 * h], w.s[t][b][2 * h + 1]));
            row_max[b][h] = quad_max(row_max[b][h]);
        }
}

/* Row references from row maxima. A row sees the first keys up to some key: where it sees none of the warp's first
 * keys, it sees none of the later ones. Its maximum is then NO_MAX: any reference will do. */
__device__ __forceinline__ void set_row_refs(warp_state &w, const float (&row_max)[BANDS][2])
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            w.minus_row_ref[b][h] = -fmaxf(row_max[b][h] * w.scale_log2, NO_MAX) - HEADROOM;
}

/* Rows whose sum is large but finite continue with a reference that brings the sum to 1 .. 2. The factor is a power of
 * two, so nothing is lost. */
__device__ __forceinline__ void move_row_refs(warp_state &w)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float sum = w.sum[b][2 * h];
            const int exponent = sum > LARGE_SUM && sum < OVERFLOWED_SUM ? (__float_as_int(sum) >> 23) - 127 : 0;
            const float shrink = __int_as_float((127 - exponent) << 23);
            w.minus_row_ref[b][h] -= static_cast<float>(exponent);
            w.sum[b][2 * h] *= shrink;
            w.sum[b][2 * h + 1] *= shrink;
#pragma unroll
            for (int chunk = 0; chunk < P_CHUNKS; ++chunk) {
                w.p[chunk][b][h] = scale_pair(w.p[chunk][b][h], shrink);
                w.p[chunk][b][h + 2] = scale_pair(w.p[chunk][b][h + 2], shrink);
            }
#pragma unroll
            for (int t = 0; t < V_STEPS * 2; ++t) {
                w.o[b][t][2 * h] *= shrink;
                w.o[b][t][2 * h + 1] *= shrink;
            }
        }
}

/* Whether a sum is above `limit`. Sums are positive, so their bits order them; NaN compares as larger. All lanes of a
 * row hold the same sum. */
__device__ __forceinline__ bool has_sum_above(const warp_state &w, float limit)
{
    int largest = __float_as_int(w.sum[0][0]);
#pragma unroll
    for (int i = 1; i < BANDS * 2; ++i)
        largest = max(largest, __float_as_int(w.sum[i / 2][i % 2 * 2]));
    return __any_sync(ALL_LANES, largest > __float_as_int(limit));
}

/* Probabilities of the 16 keys whose scores are in buffer `chunk`. */
__device__ __forceinline__ void probabilities(warp_state &w, int chunk)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int r = 0; r < 4; ++r)
            w.p[chunk][b][r] = probability_pair(w, chunk, b, r);
}

/* O += P V of a round by chunks of 16 keys: each beside the probabilities of the next chunk and the scores of the one
 * after. key: the round's first. */
template <bool NEXT, class MASK, class MEANWHILE>
__device__ __forceinline__ void value_by_chunks(warp_state &w, const lane_fragments<qk_row> &k_lane, int slot, int key,
                                                const MASK &mask, const MEANWHILE &meanwhile)
{
    constexpr int PAIRS = BANDS * 4, POINTS = larger(STEPS, V_STEPS);
    unsigned v[2][4], k[2][4];
    auto load = [&](int i) {
        const int step = i % POINTS, c = i / POINTS;
        if (c >= CHUNKS16)
            return;
        if (step < V_STEPS)
            ldmatrix_x4_trans_at(v[i % 2], fragment_at(w.v_lane, slot, step, c));
        if (step < STEPS && (NEXT || c + 2 < CHUNKS16))
            ldmatrix_x4_at(k[i % 2], fragment_at(k_lane, slot, step, c));
    };
    load(0);
#pragma unroll
    for (int c = 0; c < CHUNKS16; ++c) {
        const int now = c % 2, then = 1 - now;
        const bool soon = NEXT || c + 1 < CHUNKS16, later = NEXT || c + 2 < CHUNKS16;
        if (soon)
            mask(key + 16 * (c + 1) + (c + 1 == CHUNKS16 ? ROUND_KEYS - N : 0), 2 * then, 2 * then + 2);
        sum_mma(w, w.p[now]);
#pragma unroll
        for (int step = 0; step < POINTS; ++step) {
            const int i = c * POINTS + step;
            load(i + 1);
            meanwhile(i, CHUNKS16 * POINTS);
            if (step < V_STEPS)
                value_mma(w, w.p[now], v[i % 2], step);
            if (later && step < STEPS)
                score_mma(w, w.q[step], k[i % 2], now, step == 0);
            if (soon)
#pragma unroll
                for (int j = step * PAIRS / POINTS; j < (step + 1) * PAIRS / POINTS; ++j)
                    w.p[then][j / 4][j % 4] = probability_pair(w, then, j / 4, j % 4);
        }
    }
}

/* O += P V of a tile, after the scores of the next tile; its products run while those scores become probabilities. */
template <bool NEXT, class MASK, class MEANWHILE>
__device__ __forceinline__ void value_by_tile(warp_state &w, const lane_fragments<qk_row> &k_lane, int slot, int key,
                                              bool ask, const MASK &mask, const MEANWHILE &meanwhile)
{
    constexpr int UNITS = CHUNKS16 * V_STEPS, PAIRS = CHUNKS16 * BANDS * 4;
    /* How many products of P V run beside the scores. With two bands the fragments of K and Q occupy shared memory, so
     * only every second point has one. */
    constexpr int EARLY = !NEXT ? 0 : BANDS > 1 ? smaller(UNITS, CHUNKS16 * STEPS / 2) : UNITS > 2 ? 2 : UNITS - 1;
    unsigned v[2][4], next[CHUNKS16][BANDS][4];
    auto load_v = [&](int i) {
        if (i < UNITS)
            ldmatrix_x4_trans_at(v[i % 2], fragment_at(w.v_lane, slot, i % V_STEPS, i / V_STEPS));
    };
    auto early = [&](int i) {
        load_v(i + 1);
        value_mma(w, w.p[i / V_STEPS], v[i % 2], i % V_STEPS);
    };
    if (BANDS > 1)
        load_v(0);
    if (NEXT)
        score_tile(w, k_lane, slot, [&](int point, int points) {
            meanwhile(point, points);
            if (BANDS > 1 && point % 2 == 1 && point / 2 < EARLY)
                early(point / 2);
        });
    if (BANDS == 1) {
        load_v(0);
#pragma unroll
        for (int i = 0; i < EARLY; ++i)
            early(i);
    }
    if (NEXT && ask && has_sum_above(w, LARGE_SUM)) [[unlikely]]
        move_row_refs(w);
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS16; ++chunk)
        sum_mma(w, w.p[chunk]);
    if (NEXT)
        mask(key + ROUND_KEYS, 0, TILES8);
    unrolled<EARLY, UNITS>([&](int i) {
        load_v(i + 1);
        value_mma(w, w.p[i / V_STEPS], v[i % 2], i % V_STEPS);
        if (NEXT)
#pragma unroll
            for (int j = (i - EARLY) * PAIRS / (UNITS - EARLY); j < (i + 1 - EARLY) * PAIRS / (UNITS - EARLY); ++j)
                next[j / (BANDS * 4)][j / 4 % BANDS][j % 4] =
                    probability_pair(w, j / (BANDS * 4), j / 4 % BANDS, j % 4);
    });
#pragma unroll
    for (int i = 0; NEXT && i < PAIRS; ++i)
        w.p[i / (BANDS * 4)][i / 4 % BANDS][i % 4] = next[i / (BANDS * 4)][i / 4 % BANDS][i % 4];
}

/* ask: whether to test for a large sum; by chunks it is tested between rounds. */
template <bool NEXT, class MASK, class MEANWHILE>
__device__ __forceinline__ void value_round(warp_state &w, const lane_fragments<qk_row> &k_lane, int slot, int key,
                                            bool ask, const MASK &mask, const MEANWHILE &meanwhile)
{
    if constexpr (BY_CHUNKS)
        value_by_chunks<NEXT>(w, k_lane, slot, key, mask, meanwhile);
    else
        value_by_tile<NEXT>(w, k_lane, slot, key, ask, mask, meanwhile);
}
