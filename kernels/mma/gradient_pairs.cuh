/* P^T and dS^T of S^T and dP^T, in the registers of mma.sync: of one thread, pair by pair. */
#pragma once

#include "mma/gradients.cuh"

/* P^T of S^T: BANDS times 16 keys from `key` of the block on, TILES8 times 8 queries from row row0 + query on.
 * s(b, t, i) is accumulator i of mma.sync in band b and tile t. put(b, t, i, weight, product, delta) takes its element
 * of P^T, of S^T, and its row's delta. lse2_s: the log-sum-exp of the FA_M rows from row0 on, then delta. MASKED: some
 * rows do not see some of the keys. */
template <bool MASKED, int BANDS, int TILES8, class S, class PUT>
__device__ __forceinline__ void make_weights_of(const fa_params &p, const key_block &block, const head_scores &scores,
                                                int key, int row0, int query, const float *lse2_s, const S &s,
                                                const PUT &put)
{
    const sequence &seq = block.seq;
    const int lane = threadIdx.x % WARP_SIZE, first_key = block.key0 + key + lane / 4;
    /* With the causal mask alone, one number: the last key that the first row sees, counted from first_key. */
    constexpr bool BY_DIAGONAL = FA_CAUSAL && !HAS_FIRST_KEY;
    const int diagonal = position_of(seq, row0 + query + lane % 4 * 2) - first_key;
#pragma unroll
    for (int t = 0; t < TILES8; ++t) {
        const int at = query + t * 8 + lane % 4 * 2;
        const float2 lse2 = *reinterpret_cast<const float2 *>(lse2_s + at);
        const float2 delta = *reinterpret_cast<const float2 *>(lse2_s + FA_M + at);
        [[maybe_unused]] const key_range seen[2] = {keys_seen(p, seq, row0 + at), keys_seen(p, seq, row0 + at + 1)};
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int key_here = first_key + b * 16 + h * 8;
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float product = s(b, t, 2 * h + e);
                    const float score = modified_score(p, seq, scores, product, row0 + at + e, key_here);
                    const float weight = exp2_approx(fmaf(score, scores.scale_log2, -(e == 0 ? lse2.x : lse2.y)));
                    const bool hidden = BY_DIAGONAL ? b * 16 + h * 8 - t * 8 - e > diagonal
                                                    : key_here < seen[e].first || key_here >= seen[e].end;
                    put(b, t, 2 * h + e, MASKED && hidden ? 0.0f : weight, product, e == 0 ? delta.x : delta.y);
                }
            }
    }
}

template <int BANDS, int TILES8, bool ALWAYS_MASKED = false, class S, class PUT>
__device__ __forceinline__ void make_weights(const fa_params &p, const key_block &block, const head_scores &scores,
                                             int key, int row0, int query, const float *lse2_s, const S &s,
                                             const PUT &put)
{
    const key_range seen = keys_seen_by_all(p, block.seq, row0, min(row0 + FA_M, block.seq.seq_q) - 1);
    if (ALWAYS_MASKED || seen.first > block.key0 || seen.end < block.key0 + FA_N)
        make_weights_of<true, BANDS, TILES8>(p, block, scores, key, row0, query, lse2_s, s, put);
    else
        make_weights_of<false, BANDS, TILES8>(p, block, scores, key, row0, query, lse2_s, s, put);
}

/* With dP^T, of which dp(b, t, i) is a register, dS^T too: put(b, t, h, p, ds) takes the two queries packed. */
template <int BANDS, int TILES8, class S, class DP, class PUT>
__device__ __forceinline__ void make_pairs(const fa_params &p, const key_block &block, const head_scores &scores,
                                           int key, int row0, int query, const float *lse2_s, const S &s, const DP &dp,
                                           const PUT &put)
{
    float pair_p[2], pair_ds[2];
    const auto take = [&](int b, int t, int i, float weight, float product, float delta) {
        pair_p[i % 2] = weight;
        pair_ds[i % 2] = weight * (dp(b, t, i) - delta) * score_slope(scores, product);
        if (i % 2 == 1)
            put(b, t, i / 2, pack_elements(pair_p[0], pair_p[1]), pack_elements(pair_ds[0], pair_ds[1]));
    };
    make_weights<BANDS, TILES8>(p, block, scores, key, row0, query, lse2_s, s, take);
}
