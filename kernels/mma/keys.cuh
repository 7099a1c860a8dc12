/* Which keys the rows of a warp of `mma` see, and what becomes of their scores: masks, features, and guesses of the row
 * references where the warp's first keys say too little. */
#pragma once

#include "mma/block.cuh"
#include "mma/warp.cuh"

/* The keys that the warp's rows see, and the rounds of the block that have them. */
struct warp_keys {
    int first_row, first_key; /* of the warp; its first key of a round */
    int whole_first;          /* every row of the warp sees the keys from whole_first ... */
    int whole_keys;           /* ... to before this one */
    int begin, end;           /* the rounds that have keys that some row sees */
};

/* The first key that the bits of a mask are for. */
__device__ __forceinline__ int first_of_mask(const fa_params &p)
{
    return p.mask_keys == 0 ? 0 : max(p.seq_kv - p.mask_keys, 0);
}

__device__ __forceinline__ warp_keys keys_of_warp(const block_state &block, int warp_row, int group, const fa_params &p)
{
    warp_keys keys;
    keys.first_row = block.first_row + warp_row, keys.first_key = group * N;
    if constexpr (HAS_FIRST_KEY) {
        const int last_row = min(keys.first_row + ROWS, p.seq_q) - 1;
        const key_range some = keys_seen_by_any(p, own_sequence(p, block.batch), keys.first_row, last_row);
        const key_range all = keys_seen_by_all(p, own_sequence(p, block.batch), keys.first_row, last_row);
        const bool sees = keys.first_row <= last_row && some.first < some.end;
        keys.whole_first = uniform_by_reduction(all.first);
        keys.whole_keys = uniform_by_reduction(HAS_MASK ? min(all.end, first_of_mask(p)) : all.end);
        keys.begin =
            max(block.begin, (some.first - keys.first_key - N) / ROUND_KEYS + (some.first >= keys.first_key + N));
        keys.end = sees ? min(block.end, (some.end - keys.first_key + ROUND_KEYS - 1) / ROUND_KEYS) : block.begin;
        return keys;
    }
    const int seq_kv = p.seq_kv;
    const int some_keys = min(keys.first_row + ROWS + block.ahead, seq_kv) - keys.first_key;
    keys.whole_first = 0;
    keys.whole_keys = uniform_by_reduction(min(keys.first_row + 1 + block.ahead, HAS_MASK ? first_of_mask(p) : seq_kv));
    keys.begin = block.begin;
    keys.end = min(block.end, some_keys > 0 ? (some_keys + ROUND_KEYS - 1) / ROUND_KEYS : 0);
    return keys;
}

/* Hides what the bits of a mask hide in tiles first .. end of w.s, the scores of the keys from `key` on. */
__device__ __forceinline__ void hide_by_bits(warp_state &w, const block_state &block, int row, int key, int first,
                                             int end, const fa_params &p)
{
    const head_scores scores = scores_of_head(p, own_sequence(p, block.batch), block.head);
    const int column = key + reload_thread_index() % 4 * 2;
#pragma unroll
    for (int i = 0; i < BANDS * 2; ++i) {
        const int query = min(row + i * 8, p.seq_q - 1);
#pragma unroll
        for (int t = first; t < end; ++t)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int at = min(column + (t - first) * 8 + e, p.seq_kv - 1);
                if (!mask_shows(scores, query, at))
                    w.s[t][i / 2][i % 2 * 2 + e] = -INF;
            }
    }
}

/* Masks tiles first .. end of w.s: the scores of the keys from `key` on. */
__device__ __forceinline__ void mask_keys(warp_state &w, const warp_keys &keys, const block_state &block, int key,
                                          int first, int end, const fa_params &p)
{
    if (key + (end - first) * 8 <= keys.whole_keys && (!HAS_FIRST_KEY || key >= keys.whole_first))
        return;
    const int row = keys.first_row + reload_thread_index() % 32 / 4, last = p.seq_kv - 1;
    int first_key[BANDS][2] = {}, last_key[BANDS][2];
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if constexpr (HAS_FIRST_KEY) {
                const key_range seen = keys_seen(p, own_sequence(p, block.batch), row + b * 16 + h * 8);
                first_key[b][h] = seen.first - key, last_key[b][h] = seen.end - 1 - key;
            } else
                last_key[b][h] = min(row + b * 16 + h * 8 + block.ahead, last) - key;
        }
    mask_scores(w, first_key, last_key, first, end);
    if constexpr (HAS_MASK)
        hide_by_bits(w, block, row, key, first, end, p);
}

/* What the features make of tiles first .. end of w.s, the products of the keys from `key` on. */
__device__ __forceinline__ void change_keys(warp_state &w, const warp_keys &keys, const block_state &block, int key,
                                            int first, int end, const fa_params &p)
{
    if constexpr (HAS_SOFTCAP)
        cap_scores(w, first, end);
    if constexpr (HAS_ALIBI)
        add_distances(w,
                      position_of(own_sequence(p, block.batch), keys.first_row + reload_thread_index() % 32 / 4) - key,
                      first, end);
}

/* A row that may not see the warp's first keys (a mask may hide them, too), or sees better ones later, has a guess for
 * its reference: the largest score that these keys would have nearby. If the guess was too high, the row's sum is too
 * small: has_wrong_sum. */
constexpr bool GUESSES = HAS_FIRST_KEY || HAS_ALIBI || HAS_MASK;

__device__ __forceinline__ void guess_row_max(float (&row_max)[BANDS][2], const warp_state &w, const warp_keys &keys,
                                              const block_state &block, int first_key, const fa_params &p)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            row_max[b][h] = NO_MAX;
    if constexpr (!HAS_ALIBI) {
        raise_row_max(row_max, w);
        return;
    }
    const int lane = reload_thread_index() % 32;
    const sequence seq = own_sequence(p, block.batch);
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = keys.first_row + lane / 4 + b * 16 + h * 8, pos = position_of(seq, row);
            const key_range seen = keys_seen(p, seq, row);
            const int nearest = max(max(seen.first - pos, pos - (seen.end - 1)), 0);
#pragma unroll
            for (int t = 0; t < S_TILES8; ++t)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int distance = abs(pos - (first_key + t * 8 + lane % 4 * 2 + i));
                    row_max[b][h] = fmaxf(row_max[b][h],
                                          fmaf(w.slope, static_cast<float>(distance - nearest), w.s[t][b][2 * h + i]));
                }
            row_max[b][h] = quad_max(row_max[b][h]);
        }
}

/* Keys before `key` that are the warp's. */
__device__ __forceinline__ int count_keys(const warp_keys &keys, int key)
{
    const int rounds = key / ROUND_KEYS;
    return rounds * N + min(max(key - rounds * ROUND_KEYS - keys.first_key, 0), N);
}

/* Whether a row's reference was wrong. Far too low: the sum has overflowed. A guess may also be too high: then the row
 * sees keys of the warp, but their sum is small, and probabilities of 16 bits have lost digits. FP16 rounds to
 * multiples of 2^-24 down there, which may add up over many keys. */
__device__ __forceinline__ bool has_wrong_sum(const warp_state &w, const warp_keys &keys, const block_state &block,
                                              const fa_params &p)
{
    if constexpr (!GUESSES)
        return has_sum_above(w, LARGEST_SUM);
    bool lost = false;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = keys.first_row + static_cast<int>(reload_thread_index() % 32 / 4) + b * 16 + h * 8;
            const key_range seen = keys_seen(p, own_sequence(p, block.batch), row);
            const int some = count_keys(keys, min(seen.end, block.end * ROUND_KEYS)) -
                             count_keys(keys, max(seen.first, block.begin * ROUND_KEYS));
            const float least = FA_BF16 ? 0x1p-60f : 0x1p-10f + 0x1p-20f * static_cast<float>(some);
            lost |= row < p.seq_q && some > 0 && w.sum[b][2 * h] < least;
        }
    return has_sum_above(w, LARGEST_SUM) || __any_sync(ALL_LANES, lost);
}
