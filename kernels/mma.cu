/* mma: attention on mma.sync m16n8k16 with FP32 accumulators, for sm_80 and later.
 *
 * Idea: scores and probabilities never leave registers. A warp owns 16 or 32 query rows; keys and values arrive through
 *   a cp.async ring. Packed in place, the probabilities are the A operand of P V. Other instructions delay the tensor
 *   cores, so the loop minimises them: an exponent is one FFMA of a score, row sums are an mma with ones, and the
 *   exponentials of some keys run in the gaps between the products of others.
 * Softmax: a row's reference is the maximum of its first keys; later maxima are not compared. Probabilities are of
 *   the type of the tensors. When a row's sum grows past 4096 the reference moves by a power of two. A sum that
 *   overflows restarts the tile with references from all keys.
 * Builds on: wmma (examples/mma_plain.cu is a simpler step between the two).
 * Knobs: M query rows and N keys of a tile; WARPS (those beyond M / 16 form groups that share out the keys); STAGES of
 *   K and V; SWIZZLE (XOR, or padded rows); SPLITS (blocks that share out the keys; the last one combines); maxreg.
 * Pages: rows are looked up in the page table, by every thread those that it copies. Pages may have any size.
 * Shared memory: Q [M] rows, then STAGES slots of V and of K some keys ahead, [GROUPS * N] rows each; partial results
 *   reuse all of it.
 * Limits: M and N multiples of 16; dim a multiple of 8 from 16 to 256. */
#include "mma/keys.cuh"
#include "mma/store.cuh"

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .workspace_bytes_per_block = WORKSPACE_BYTES,
               .writes_lse = FA_LSE, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK |
                         FA_FEATURE_SOFTCAP | FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_MASK | FA_FEATURE_DIM_V);

/* Row references from all of Q K^T: the largest score of each of the warp's rows in this block. Rare, so simple. */
template <class FINISH>
__device__ __forceinline__ void find_row_refs(warp_state &w, smem_addr slot_s, const lane_fragments<qk_row> &k_lane,
                                              const block_state &block, const warp_keys &warp, const FINISH &finish,
                                              const fa_params &p)
{
    float row_max[BANDS][2];
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        row_max[b][0] = row_max[b][1] = NO_MAX;
    constexpr int KEYS = S_TILES8 * 8;
#pragma unroll 1
    for (int round = block.begin; round < block.end; ++round) {
        load_tile<ROUND_KEYS, FA_DIM>(slot_s + V_BYTES, block.k, round * ROUND_KEYS, p.seq_kv, block.aligned,
                                      reload_thread_index());
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
#pragma unroll 1
        for (int keys = 0; (!HAS_FIRST_KEY || round >= warp.begin) && round < warp.end && keys < N; keys += KEYS) {
            score_tile(w, k_lane, keys * ROW_BYTES, no_load());
            finish(round * ROUND_KEYS + warp.first_key + keys, 0, S_TILES8);
            raise_row_max(row_max, w);
        }
        __syncthreads();
    }
    set_row_refs(w, row_max);
}

/* Scores of the warp's first keys, and their probabilities; the row references come from them unless they are `known`.
 * slot: the one before the first round that the warp has keys in. */
template <class CHANGE, class MASK>
__device__ __forceinline__ void first_keys(warp_state &w, const lane_fragments<qk_row> &k_lane, int slot, int first_key,
                                           bool known, const warp_keys &keys, const block_state &block,
                                           const CHANGE &change, const MASK &mask, const fa_params &p)
{
    constexpr bool CHANGES_AGAIN = BY_CHUNKS && CHANGES_SCORES; /* the second chunk's scores, in their own turn */
    float products[CHANGES_AGAIN ? 2 : 1][BANDS][4], guess[BANDS][2];
    score_tile(w, k_lane, slot + (BY_CHUNKS && GROUPS == 1 ? (N - 32) * ROW_BYTES : 0), no_load());
#pragma unroll
    for (int i = 0; CHANGES_AGAIN && i < BANDS * 8; ++i)
        products[i / 4 % 2][i / 8][i % 4] = w.s[2 + i / 4 % 2][i / 8][i % 4];
    change(first_key, 0, S_TILES8);
    if constexpr (GUESSES)
        guess_row_max(guess, w, keys, block, first_key, p);
    mask(first_key, 0, S_TILES8);
    if (!known) {
        float row_max[BANDS][2];
#pragma unroll
        for (int i = 0; i < BANDS * 2; ++i)
            row_max[i / 2][i % 2] = NO_MAX;
        raise_row_max(row_max, w);
        if constexpr (GUESSES)
#pragma unroll
            for (int i = 0; i < BANDS * 2; ++i) {
                float &largest = row_max[i / 2][i % 2];
                largest = HAS_ALIBI          ? fmaxf(largest, guess[i / 2][i % 2])
                          : largest > NO_MAX ? largest
                                             : guess[i / 2][i % 2];
            }
        set_row_refs(w, row_max);
    }
#pragma unroll
    for (int chunk = 0; chunk < (BY_CHUNKS ? 1 : P_CHUNKS); ++chunk)
        probabilities(w, chunk);
#pragma unroll
    for (int i = 0; CHANGES_AGAIN && i < BANDS * 8; ++i)
        w.s[2 + i / 4 % 2][i / 8][i % 4] = products[i / 4 % 2][i / 8][i % 4];
}

/* With two slots the steady loop takes two rounds at a time where the code stays small: then slots are constants. */
constexpr int AT_ONCE = STAGES == 2 && (FA_DIM == 128 || (BY_CHUNKS && DIM16 <= 64)) ? 2 : 1;

/* The rounds whose loads are of whole tiles and whose scores need no mask, from `round` on. Returns the first round
 * that is left. */
template <class CHANGE>
__device__ __forceinline__ int steady_rounds(warp_state &w, const lane_fragments<qk_row> &k_lane, smem_addr slots_at,
                                             int &slot, int begin, const block_state &block, const warp_keys &keys,
                                             round_share &share, const CHANGE &change)
{
    const int scored_ahead = BY_CHUNKS ? 16 : N;
    const int end =
        uniform_by_reduction(STAGES == 1 ? 0
                                         : min(min(keys.end - 1, block.whole_end - (STAGES - 1)),
                                               (keys.whole_keys - keys.first_key - scored_ahead) / ROUND_KEYS));
    int round = begin;
#pragma unroll 1
    for (; round + AT_ONCE <= end; round += AT_ONCE) {
        unrolled<0, AT_ONCE>([&](int i) {
            start_round();
            value_round<true>(w, k_lane, slot, (round + i) * ROUND_KEYS + keys.first_key, i + 1 == AT_ONCE, change,
                              [&](int point, int points) {
                                  load_whole_round(slot_to_fill(slots_at, slot), block, share, point, points);
                              });
            advance(slot);
        });
        if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
            move_row_refs(w);
    }
    return round;
}

/* Rounds `round` .. end. Every warp goes through every round of the block, for its share of the loads. Where rows may
 * not see the first keys, the warp's scores begin beside the round before its first one. */
template <class FINISH, class FIRST>
__device__ __forceinline__ void masked_rounds(warp_state &w, const lane_fragments<qk_row> &k_lane, smem_addr slots_at,
                                              int slot, int round, int end, const block_state &block,
                                              const warp_keys &keys, round_share &share, const FINISH &finish,
                                              const FIRST &first, const fa_params &p)
{
#pragma unroll 1
    for (; round < end; ++round, advance(slot)) {
        if constexpr (HAS_FIRST_KEY) {
            if (round >= block.begin) {
                start_round();
                load_ahead(slots_at, slot, round, block, share, p);
            }
            if (round + 1 == keys.begin && keys.begin < keys.end)
                first(slot);
            if (round < keys.begin)
                continue;
        } else {
            start_round();
            load_ahead(slots_at, slot, round, block, share, p);
        }
        if (round + 1 < keys.end) {
            value_round<true>(w, k_lane, slot, round * ROUND_KEYS + keys.first_key, true, finish, no_load());
            if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
                move_row_refs(w);
        } else if (round < keys.end)
            value_round<false>(w, k_lane, slot, round * ROUND_KEYS + keys.first_key, true, finish, no_load());
    }
}

/* All rounds where rows may not see the first keys: masked ones, from the one before the block's first, beside which
 * first keys may be scored; then those that need no mask; then masked ones. */
template <class FIRST, class CHANGE, class FINISH>
__device__ __forceinline__ void rounds_of_ranges(warp_state &w, const lane_fragments<qk_row> &k_lane,
                                                 smem_addr slots_at, const block_state &block, const warp_keys &keys,
                                                 round_share &share, const FIRST &first, const CHANGE &change,
                                                 const FINISH &finish, const fa_params &p)
{
    const int unseen = keys.whole_first - keys.first_key - (BY_CHUNKS ? 16 : ROUND_KEYS);
    int round = block.begin - 1, slot = (STAGES - 1) * SLOT_BYTES;
    int masked_end = max(keys.begin, unseen > 0 ? (unseen + ROUND_KEYS - 1) / ROUND_KEYS : 0);
    if (AT_ONCE == 2)
        masked_end += (masked_end - block.begin) % 2; /* steady rounds then start with slot 0 */
    masked_end = min(masked_end, block.end);
#pragma unroll 1
    for (;;) {
        masked_rounds(w, k_lane, slots_at, slot, round, masked_end, block, keys, share, finish, first, p);
        if (masked_end >= block.end)
            break;
        slot = AT_ONCE == 2 ? 0 : (masked_end - block.begin) % STAGES * SLOT_BYTES;
        round = steady_rounds(w, k_lane, slots_at, slot, masked_end, block, keys, share, change);
        masked_end = block.end;
    }
}

__device__ __forceinline__ void store_output(const warp_state &w, unsigned char *smem, block_state &block, int group,
                                             int warp_row, const fa_params &p)
{
    if (DIM16 > 128 && !HAS_VARLEN)
        find_work(block, p); /* again: in between its registers are needed */
    const output out = {head_of(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s, block.batch, block.head),
                        block.first_row, p.seq_q, writes_are_aligned(p)};
#if FA_LSE
    if (!PARTIAL)
        store_lse_of_rows(w, block, warp_row, p);
#endif
    if (PARTIAL)
        store_combined(w, smem, out, block, group, warp_row, p);
    else
        store_rows(w, smem + warp_row * V_ROW_BYTES, out, warp_row, block.head, p);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params launch)
{
    FA_SHARED_ALIGNED(unsigned char, smem, SMEM_ALIGN);
    const smem_addr q_at = smem_address(smem), slots_at = q_at + Q_BYTES;
    const unsigned thread = reload_thread_index(), lane = thread % 32;
    const int warp = uniform_by_reduction(thread / 32);
    const int group = warp / (WARPS / GROUPS), warp_row = warp % (WARPS / GROUPS) * ROWS;

    block_state block;
#if FA_FEATURES & FA_FEATURE_VARLEN
    fa_params p = launch;
    if (!find_work_of_sequence(block, p))
        return;
#else
    const fa_params &p = launch;
    find_work(block, p);
#endif
    plan_block(block, p);
    const head_rows q = head_of(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s, block.batch, block.head);
    /* Whether the first loads, of Q and of STAGES - 1 rounds, are of whole tiles. */
    const bool whole = block.begin + (STAGES > 1 ? STAGES - 1 : 1) <= block.whole_end && block.first_row + M <= p.seq_q;
    load_q(q_at, q, block, whole, thread, p);

    const warp_keys keys = keys_of_warp(block, warp_row, group, p);
    warp_state w;
    const head_scores scores = scores_of_head(p, own_sequence(p, block.batch), block.head);
    w.scale_log2 = __int_as_float(uniform_by_reduction(__float_as_int(scores.scale_log2)));
    w.to_cap = scores.to_cap, w.slope = scores.slope;
    w.v_lane = find_fragments<v_row>(slots_at + keys.first_key * V_ROW_BYTES + v_lane_offset<v_row>(lane));
#if FA_DIM_V != FA_DIM
    w.q_lane = find_fragments<qk_row>(q_at + warp_row * ROW_BYTES + v_lane_offset<qk_row>(lane));
#else
    w.q_offset = uniform_by_reduction((warp_row - keys.first_key) * ROW_BYTES - Q_BYTES);
#endif
    const lane_fragments<qk_row> k_lane =
        find_fragments<qk_row>(slots_at + V_BYTES + keys.first_key * ROW_BYTES + k_lane_offset<qk_row>(lane));
    /* Scores of keys from `key` on, tiles first .. end: what features make of them, what a row sees, and both. */
    const auto change = [&](int key, int first, int end) { change_keys(w, keys, block, key, first, end, p); };
    const auto mask = [&](int key, int first, int end) { mask_keys(w, keys, block, key, first, end, p); };
    const auto finish = [&](int key, int first, int end) {
        change(key, first, end);
        mask(key, first, end);
    };

    /* Row references come from the first keys. A sum that overflows restarts the tile with references from all keys. */
    for (bool known = false;;) {
        clear_output(w);
        round_share share = start_loads(slots_at, block, whole, p); /* cp.async: Q, the first keys, then slots ahead */
#pragma unroll
        for (int step = 0; step < Q_STEPS; ++step)
            load_q_fragments(w.q[step], w, step);
        const auto first = [&](int slot_before) { /* S = Q K^T, P = exp2(S - row_ref) of the first keys */
                                                  first_keys(w, k_lane, slot_before,
                                                             keys.begin * ROUND_KEYS + keys.first_key, known, keys,
                                                             block, change, mask, p);
        };
        if constexpr (HAS_FIRST_KEY)
            rounds_of_ranges(w, k_lane, slots_at, block, keys, share, first, change, finish, p);
        else {
            if (block.begin < keys.end)
                first((STAGES - 1) * SLOT_BYTES);
            /* per round: loads; O += P V beside S = Q K^T and the probabilities of the keys that follow */
            int slot = 0;
            const int round = steady_rounds(w, k_lane, slots_at, slot, block.begin, block, keys, share, change);
            masked_rounds(w, k_lane, slots_at, slot, round, block.end, block, keys, share, finish, first, p);
        }

        if (known || !__syncthreads_or(has_wrong_sum(w, keys, block, p)))
            break;
        known = true;
        find_row_refs(w, slots_at, k_lane, block, keys, finish, p);
    }
    store_output(w, smem, block, group, warp_row, p);
}
