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
 * Shared memory: Q [M] rows, then STAGES slots of V and of K some keys ahead, [GROUPS * N] rows each; partial results
 *   reuse all of it.
 * Limits: M and N multiples of 16; dim a multiple of 8 from 16 to 256. */
#include "mma/store.cuh"

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .workspace_bytes_per_block = WORKSPACE_BYTES,
               .writes_lse = FA_LSE, .serves_bf16 = 1);

/* The keys that the warp's rows see, and the rounds of the block that have them. */
struct warp_keys {
    int first_row, first_key; /* of the warp; its first key of a round */
    int whole_keys;           /* every row of the warp sees the keys before this one */
    int end;                  /* the rounds before this one have keys that some row sees */
};

__device__ __forceinline__ warp_keys keys_of_warp(const block_state &block, int warp_row, int group, const fa_params &p)
{
    warp_keys keys;
    keys.first_row = block.first_row + warp_row, keys.first_key = group * N;
    const int some_keys = min(keys.first_row + ROWS + block.ahead, p.seq_kv) - keys.first_key;
    keys.whole_keys = uniform_by_reduction(min(keys.first_row + 1 + block.ahead, p.seq_kv));
    keys.end = min(block.end, some_keys > 0 ? (some_keys + ROUND_KEYS - 1) / ROUND_KEYS : 0);
    return keys;
}

/* Masks tiles first .. end of w.s: the scores of the keys from `key` on. */
__device__ __forceinline__ void mask_keys(warp_state &w, const warp_keys &keys, const block_state &block, int key,
                                          int first, int end, const fa_params &p)
{
    if (key + (end - first) * 8 <= keys.whole_keys)
        return;
    const int row = keys.first_row + reload_thread_index() % 32 / 4, last = p.seq_kv - 1;
    int last_key[BANDS][2];
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            last_key[b][h] = min(row + b * 16 + h * 8 + block.ahead, last) - key;
    mask_scores(w, last_key, first, end);
}

/* Row references from all of Q K^T: the largest score of each of the warp's rows in this block. Rare, so simple. */
template <class MASK>
__device__ __forceinline__ void find_row_refs(warp_state &w, smem_addr slot_s, const lane_fragments &k_lane,
                                              const block_state &block, int warp_end, int group_keys, const MASK &mask,
                                              const fa_params &p)
{
    float row_max[BANDS][2];
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        row_max[b][0] = row_max[b][1] = NO_MAX;
    constexpr int KEYS = S_TILES8 * 8;
#pragma unroll 1
    for (int round = block.begin; round < block.end; ++round) {
        load_tile<ROUND_KEYS>(slot_s + TILE_BYTES, block.k, round * ROUND_KEYS, p.seq_kv, block.aligned,
                              reload_thread_index());
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
#pragma unroll 1
        for (int keys = 0; round < warp_end && keys < N; keys += KEYS) {
            score_tile(w, k_lane, keys * ROW_BYTES, no_load());
            mask(round * ROUND_KEYS + group_keys + keys, 0, S_TILES8);
            raise_row_max(row_max, w);
        }
        __syncthreads();
    }
    set_row_refs(w, row_max);
}

/* The rounds whose loads are of whole tiles and whose scores need no mask. With two slots the loop takes two rounds at
 * a time where the code stays small: then slots are constants. Returns the first round that is left. */
__device__ __forceinline__ int steady_rounds(warp_state &w, const lane_fragments &k_lane, smem_addr slots_at, int &slot,
                                             const block_state &block, const warp_keys &keys, thread_share &share)
{
    constexpr int AT_ONCE = STAGES == 2 && (FA_DIM == 128 || (BY_CHUNKS && DIM16 <= 64)) ? 2 : 1;
    const int scored_ahead = BY_CHUNKS ? 16 : N;
    const int end =
        uniform_by_reduction(STAGES == 1 ? 0
                                         : min(min(keys.end - 1, block.whole_end - (STAGES - 1)),
                                               (keys.whole_keys - keys.first_key - scored_ahead) / ROUND_KEYS));
    int round = block.begin;
#pragma unroll 1
    for (; round + AT_ONCE <= end; round += AT_ONCE) {
        unrolled<0, AT_ONCE>([&](int i) {
            start_round();
            const auto no_mask = [](int, int, int) {};
            value_round<true>(w, k_lane, slot, 0, i + 1 == AT_ONCE, no_mask, [&](int point, int points) {
                load_whole_round(slot_to_fill(slots_at, slot), block, share, point, points);
            });
            advance(slot);
        });
        if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
            move_row_refs(w);
    }
    return round;
}

/* The other rounds. Every warp goes through every round of the block, for its share of the loads. */
template <class MASK>
__device__ __forceinline__ void last_rounds(warp_state &w, const lane_fragments &k_lane, smem_addr slots_at, int slot,
                                            int round, const block_state &block, const warp_keys &keys,
                                            thread_share &share, const MASK &mask, const fa_params &p)
{
#pragma unroll 1
    for (; round < block.end; ++round, advance(slot)) {
        start_round();
        load_ahead(slots_at, slot, round, block, share, p);
        if (round + 1 < keys.end) {
            value_round<true>(w, k_lane, slot, round * ROUND_KEYS + keys.first_key, true, mask, no_load());
            if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
                move_row_refs(w);
        } else if (round < keys.end)
            value_round<false>(w, k_lane, slot, round * ROUND_KEYS + keys.first_key, true, mask, no_load());
    }
}

/* Scores of the first keys, and their probabilities; the row references are their maxima unless they are `known`. */
template <class MASK>
__device__ __forceinline__ void first_keys(warp_state &w, const lane_fragments &k_lane, int first_key, bool known,
                                           const MASK &mask)
{
    score_tile(w, k_lane, (STAGES - 1) * SLOT_BYTES + (BY_CHUNKS && GROUPS == 1 ? (N - 32) * ROW_BYTES : 0), no_load());
    mask(first_key, 0, S_TILES8);
    if (!known) {
        float row_max[BANDS][2];
#pragma unroll
        for (int i = 0; i < BANDS * 2; ++i)
            row_max[i / 2][i % 2] = NO_MAX;
        raise_row_max(row_max, w);
        set_row_refs(w, row_max);
    }
#pragma unroll
    for (int chunk = 0; chunk < (BY_CHUNKS ? 1 : P_CHUNKS); ++chunk)
        probabilities(w, chunk);
}

__device__ __forceinline__ void store_output(const warp_state &w, unsigned char *smem, block_state &block, int group,
                                             int warp_row, const fa_params &p)
{
    if (DIM16 > 128)
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
        store_rows(w, smem + warp_row * ROW_BYTES, out, warp_row);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, SMEM_ALIGN);
    const smem_addr q_at = smem_address(smem), slots_at = q_at + Q_BYTES;
    const unsigned thread = reload_thread_index(), lane = thread % 32;
    const int warp = uniform_by_reduction(thread / 32);
    const int group = warp / (WARPS / GROUPS), warp_row = warp % (WARPS / GROUPS) * ROWS;

    block_state block = plan_block(p);
    const head_rows q = head_of(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s, block.batch, block.head);
    /* Whether the first loads, of Q and of STAGES - 1 rounds, are of whole tiles. */
    const bool whole = block.begin + (STAGES > 1 ? STAGES - 1 : 1) <= block.whole_end && block.first_row + M <= p.seq_q;
    load_q(q_at, q, block, whole, thread, p);

    const warp_keys keys = keys_of_warp(block, warp_row, group, p);
    warp_state w;
    w.scale_log2 = __int_as_float(uniform_by_reduction(__float_as_int(p.scale * LOG2_E)));
    w.v_lane = find_fragments(slots_at + keys.first_key * ROW_BYTES + v_lane_offset(lane));
    w.q_offset = uniform_by_reduction((warp_row - keys.first_key) * ROW_BYTES - Q_BYTES);
    const lane_fragments k_lane =
        find_fragments(slots_at + TILE_BYTES + keys.first_key * ROW_BYTES + k_lane_offset(lane));
    const auto mask = [&](int key, int first, int end) { mask_keys(w, keys, block, key, first, end, p); };

    /* Row references come from the first keys. A sum that overflows restarts the tile with references from all keys. */
    for (bool known = false;;) {
        clear_output(w);
        thread_share share = start_loads(slots_at, block, whole, p); /* cp.async: Q, the first keys, then slots ahead */
#pragma unroll
        for (int step = 0; step < Q_STEPS; ++step)
            load_q_fragments(w.q[step], w, step);
        if (block.begin < keys.end) /* S = Q K^T, P = exp2(S - row_ref) of the first keys */
            first_keys(w, k_lane, block.begin * ROUND_KEYS + keys.first_key, known, mask);

        int slot = 0; /* per round: loads; O += P V beside S = Q K^T and the probabilities of the keys that follow */
        const int round = steady_rounds(w, k_lane, slots_at, slot, block, keys, share);
        last_rounds(w, k_lane, slots_at, slot, round, block, keys, share, mask, p);

        if (known || !__syncthreads_or(has_sum_above(w, LARGEST_SUM)))
            break;
        known = true;
        find_row_refs(w, slots_at, k_lane, block, keys.end, keys.first_key, mask, p);
    }
    store_output(w, smem, block, group, warp_row, p);
}
