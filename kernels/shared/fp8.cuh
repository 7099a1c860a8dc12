/* What the FP8 kernels share: softmax and probabilities of a band of 16 query rows, and its output. In fragments of
 * mma.sync and wgmma: element 2 h + e of s[t] is row lane / 4 + 8 h, key 8 t + lane % 4 * 2 + e. V's columns are taken
 * 16 at a time, the even ones before the odd ones: element 2 h + e of o[chunk][parity] is column 16 chunk +
 * lane % 4 * 4 + 2 e + parity. Four bytes of P are keys 2 x, 2 x + 1, 2 x + 8, 2 x + 9, as a lane holds the scores. */
#ifndef FA_FP8_CUH
#define FA_FP8_CUH

#include "shared/load.cuh"
#include "shared/schedule.cuh"
#include "shared/score.cuh"

constexpr float P_EXPONENT = 8.0f; /* probabilities are at most 2^8; e4m3 ends at 448 */

/* What features make of the scores of a band, and -inf for keys that a row does not see. row: the lane's first; key:
 * its first of the tile. */
template <int TILES>
__device__ __forceinline__ void finish_scores(float (&s)[TILES][4], const fa_params &p, const query_tile &tile,
                                              const head_scores &scores, int row, int key, bool masked)
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const key_range seen = keys_seen(p, tile.seq, row + 8 * h);
        const bool is_row = row + 8 * h < tile.seq.seq_q || !(HAS_BIAS || HAS_MASK);
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float &score = s[t][2 * h + e];
                const int at = key + t * 8 + e;
                if (masked && !(is_row && seen.first <= at && at < seen.end))
                    score = -INF;
                else if (CHANGES_SCORES)
                    score = modified_score(p, tile.seq, scores, score, row + 8 * h, at);
            }
    }
}

/* Whether some of the rows row0 .. row0 + rows - 1 see only some of the `keys` keys from key0 on, or may read a bias or
 * a mask there. */
__device__ __forceinline__ bool is_masked(const fa_params &p, const query_tile &tile, int row0, int rows, int key0,
                                          int keys)
{
    const key_range all = keys_seen_by_all(p, tile.seq, row0, row0 + rows - 1);
    return key0 < all.first || key0 + keys > all.end || HAS_BIAS || HAS_MASK;
}

/* m: the largest score of a row so far, in log2 units. most: the largest of a tile. alpha: the factor that rescales the
 * sums so far. */
__device__ __forceinline__ void raise_maximum(float most, float &m, float &alpha, float scale_log2)
{
    const float next = fmaxf(m, most * scale_log2);
    alpha = exp2_approx(m - next);
    m = next;
}

/* raise_maximum of two rows by a tile of scores. Four maxima a row: dependent instructions would wait. */
template <int TILES>
__device__ __forceinline__ void raise_maxima(const float (&s)[TILES][4], float (&m)[2], float (&alpha)[2],
                                             float scale_log2)
{
    constexpr int CHAINS = 4;
    float largest[2][CHAINS];
#pragma unroll
    for (int t = 0; t < TILES; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float &most = largest[i / 2][(2 * t + i % 2) % CHAINS];
            most = 2 * t < CHAINS ? s[t][i] : fmaxf(most, s[t][i]);
        }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float most = fmaxf(fmaxf(largest[h][0], largest[h][1]), fmaxf(largest[h][2], largest[h][3]));
        raise_maximum(quad_max(most), m[h], alpha[h], scale_log2);
    }
}

/* P = exp2(S - maximum + P_EXPONENT), in place. m, alpha: raise_maxima; l: a lane's part of the sum, of four a row. */
template <int TILES>
__device__ __forceinline__ void online_softmax(float (&s)[TILES][4], float (&m)[2], float (&l)[2], float (&alpha)[2],
                                               float scale_log2)
{
    constexpr int CHAINS = 4;
    raise_maxima(s, m, alpha, scale_log2);
    const float minus_ref[2] = {P_EXPONENT - m[0], P_EXPONENT - m[1]};
    float sum[2][CHAINS];
#pragma unroll
    for (int t = 0; t < TILES; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float &part = sum[i / 2][(2 * t + i % 2) % CHAINS];
            s[t][i] = exp2_approx(fmaf(s[t][i], scale_log2, minus_ref[i / 2]));
            part = 2 * t < CHAINS ? s[t][i] : part + s[t][i];
        }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 1; i < CHAINS; ++i)
            sum[h][0] += sum[h][i];
        l[h] = fmaf(l[h], alpha[h], sum[h][0]);
    }
}

/* Register r of the A operand of P V, for the 32 keys from tile t on. */
template <int TILES>
__device__ __forceinline__ unsigned probabilities(const float (&s)[TILES][4], int t, int r)
{
    const int at = t + r / 2 * 2, h = r % 2 * 2;
    return pack_e4m3(s[at][h], s[at][h + 1], s[at + 1][h], s[at + 1][h + 1]);
}

/* Normalises and stores a band; row: the lane's first, of the tile. */
template <int CHUNKS>
__device__ __forceinline__ void store_band(const float (&o)[CHUNKS][2][4], const float (&m)[2], const float (&l)[2],
                                           const fa_params &p, const query_tile &tile, int row)
{
    const int lane = reload_thread_index() % 32;
    const bool aligned = rows_aligned<4>(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s);
    const float value_scale = value_scale_of_head(p, tile.seq.batch, tile.head);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float sum = quad_sum(l[h]), ref = m[h] - P_EXPONENT;
        const float weight = add_sink(p, tile.head, ref, sum), inverse = inverse_of_sum(sum) * weight * value_scale;
        if (row + 8 * h >= tile.rows)
            continue;
#if FA_LSE
        if (lane % 4 == 0)
            store_lse(p, tile, row + 8 * h, log_sum_exp(ref, sum));
#endif
        fa_element *row_g = tile.o_g + (row + 8 * h) * p.o_stride_s + lane % 4 * 4;
#pragma unroll
        for (int chunk = 0; chunk < (FA_DIM_V + 15) / 16; ++chunk) {
            const float out[4] = {o[chunk][0][2 * h] * inverse, o[chunk][1][2 * h] * inverse,
                                  o[chunk][0][2 * h + 1] * inverse, o[chunk][1][2 * h + 1] * inverse};
            write_elements(row_g + chunk * 16, out, aligned);
        }
    }
}

#endif
