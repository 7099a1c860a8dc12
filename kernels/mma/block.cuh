/* What a block of `mma` works on, and how its tiles of Q, K and V travel: the plan, and loads of whole and partial
 * rounds. A round covers GROUPS tiles of N keys, one per group of warps. */
#pragma once

#include "mma/config.cuh"

using k_layout = copy_layout<ROUND_KEYS, FA_DIM>;
using v_layout = copy_layout<ROUND_KEYS, FA_DIM_V>;

__device__ __forceinline__ head_rows head_of(const void *data, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s,
                                             int batch, int head)
{
    return {static_cast<fa_element *>(const_cast<void *>(data)) + batch * stride_b + head * stride_h, stride_s};
}

/* The stride of batches; with lengths it is unused. Of K and V it is that of pages, where there are some. */
__device__ __forceinline__ fa_i64 of_batch(fa_i64 stride) { return HAS_VARLEN ? 0 : stride; }
__device__ __forceinline__ fa_i64 of_kv_batch(fa_i64 stride) { return HAS_PAGES ? stride : of_batch(stride); }

/* Whether every row that is read, or written, starts at a multiple of 16 bytes, as 16-byte copies need. */
__device__ __forceinline__ bool reads_are_aligned(const fa_params &p)
{
    const fa_i64 pointers =
        reinterpret_cast<fa_i64>(p.q) | reinterpret_cast<fa_i64>(p.k) | reinterpret_cast<fa_i64>(p.v);
    const fa_i64 strides = of_batch(p.q_stride_b) | p.q_stride_h | p.q_stride_s | of_kv_batch(p.k_stride_b) |
                           p.k_stride_h | p.k_stride_s | of_kv_batch(p.v_stride_b) | p.v_stride_h | p.v_stride_s;
    return (pointers | strides * 2) % 16 == 0;
}

__device__ __forceinline__ bool writes_are_aligned(const fa_params &p)
{
    return (reinterpret_cast<fa_i64>(p.o) | (of_batch(p.o_stride_b) | p.o_stride_h | p.o_stride_s) * 2) % 16 == 0;
}

/* What a block works on. Without windows and chunks row i sees keys 0 .. i + ahead, no further than the last. */
struct block_state {
    kv_rows k, v;
    int first_row, head, batch, split;
    int ahead;
    int begin, end;   /* rounds */
    int whole_end;    /* the rounds before it can be loaded by load_whole_round */
    unsigned k_limit; /* at global offsets from it on, the keys AHEAD_KEYS later are past the end */
    bool aligned;
    bool packed; /* rows of Q, K and V follow each other without a gap, or have ANY_STRIDE that suits */
};

/* Which tile the block works on, and which share of its keys. */
__device__ __forceinline__ void find_work(block_state &block, const fa_params &p)
{
    unsigned tile, index; /* index: head + batch * heads */
    tile_in_sections<DIM16>(tile, index, p, reload_block_index() / SPLITS);
    block.first_row = tile * M;
    block.batch = divide(index, p.heads);
    block.head = index - block.batch * p.heads;
    block.split = blockIdx.x % SPLITS;
}

/* find_work with lengths: the parameters become those of the block's sequence, a batch of one. False: no work. */
__device__ __forceinline__ bool find_work_of_sequence(block_state &block, fa_params &p)
{
    unsigned tile, head;
    tile_in_sections<DIM16>(tile, head, p, reload_block_index() / SPLITS);
    sequence seq;
    int tile_of_sequence = tile;
    if (!find_sequence<M>(seq, tile_of_sequence, p))
        return false;
    become_sequence(p, seq);
    block.first_row = tile_of_sequence * M;
    block.batch = 0, block.head = head;
    block.split = blockIdx.x % SPLITS;
    return true;
}

/* The row strides of K and V in the fast loads, in elements. Where K and V are equally wide these loads ask for equal
 * strides. Macros: a call would change the order of the dense kernel's instructions. */
#define K_STRIDE(block) (ANY_STRIDE ? static_cast<int>((block).k.stride) : FA_DIM)
#define V_STRIDE(block) (ANY_STRIDE ? static_cast<int>((ONE_DIM ? (block).k : (block).v).stride) : FA_DIM_V)

/* The rest of the plan, after find_work. */
__device__ __forceinline__ void plan_block(block_state &block, const fa_params &p)
{
    block.aligned = reads_are_aligned(p);
    block.ahead = FA_CAUSAL ? p.seq_kv - p.seq_q : p.seq_kv;
#if FA_FEATURES & (FA_FEATURE_WINDOW | FA_FEATURE_CHUNK)
    const key_range keys =
        keys_seen_by_any(p, own_sequence(p, block.batch), block.first_row, min(block.first_row + M, p.seq_q) - 1);
    const int first = keys.first / ROUND_KEYS, end = keys.first < keys.end ? (keys.end - 1) / ROUND_KEYS + 1 : first;
    const int share = (end - first + SPLITS - 1) / SPLITS;
    block.begin = first + block.split * share;
    block.end = min(block.begin + share, end);
#else
    const int keys = min(block.first_row + M + block.ahead, p.seq_kv);
    const int rounds = keys > 0 ? static_cast<int>((keys + ROUND_KEYS - 1u) / ROUND_KEYS) : 0;
    const int share = SPLITS == 1 ? rounds : static_cast<int>((rounds + SPLITS - 1u) / SPLITS);
    block.begin = SPLITS == 1 ? 0 : block.split * share;
    block.end = min(block.begin + share, rounds);
#endif
    const int kv_head = p.heads == p.kv_heads ? block.head : divide(block.head, divide(p.heads, p.kv_heads));
    block.k = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, block.batch, kv_head);
    block.v = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, block.batch, kv_head);
#if FA_FEATURES != 0 /* offsets have 32 bits */
    block.packed = ANY_STRIDE && block.aligned && (!ONE_DIM || p.k_stride_s == p.v_stride_s) &&
                   p.seq_kv * max(p.k_stride_s, p.v_stride_s) < 1 << 30 && p.q_stride_s < 1 << 20;
#else
    block.packed = block.aligned && p.q_stride_s == FA_DIM && p.k_stride_s == FA_DIM && p.v_stride_s == FA_DIM_V;
#endif
    const int rest = p.seq_kv - AHEAD_KEYS;
    block.whole_end =
        block.packed && rest >= 0 ? min(block.end, (rest % k_layout::SPAN == 0 ? p.seq_kv : rest) / ROUND_KEYS) : 0;
    block.k_limit = uniform_by_reduction(
        max(min(p.seq_kv, block.end * ROUND_KEYS) - AHEAD_KEYS, 0) * (K_STRIDE(block) * 2) + CENTRE);
}

/* A thread's share of the rounds, of K and of V: one and the same where their rows have one length. */
#if FA_DIM_V == FA_DIM
union round_share {
    thread_share k, v;
};
#else
struct round_share {
    thread_share k, v;
};
#endif

__device__ __forceinline__ round_share find_round_share(const block_state &block)
{
    round_share share;
    share.k = find_share<ROUND_KEYS, FA_DIM>(reload_thread_index(), K_STRIDE(block));
    prevent_recompute(share.k.smem_offset);
    share.k.global_offset += block.begin * (ROUND_KEYS * K_STRIDE(block) * 2) + CENTRE;
#if FA_DIM_V != FA_DIM
    share.v = find_share<ROUND_KEYS, FA_DIM_V>(reload_thread_index(), V_STRIDE(block));
    share.v.global_offset += block.begin * (ROUND_KEYS * V_STRIDE(block) * 2) + CENTRE;
#endif
    return share;
}

__device__ __forceinline__ void advance_share(round_share &share, const block_state &block, int rounds)
{
    share.k.global_offset += rounds * (ROUND_KEYS * K_STRIDE(block) * 2);
    if (!ONE_DIM)
        share.v.global_offset += rounds * (ROUND_KEYS * V_STRIDE(block) * 2);
}

/* Fills a slot with V of a round and K of AHEAD_KEYS later. Commits once, also when nothing is left to load. */
__device__ __forceinline__ void load_round(smem_addr slot_s, int round, const block_state &block, unsigned thread,
                                           const fa_params &p)
{
    if (round < block.end) {
        if (AHEAD_KEYS < ROUND_KEYS || round + 1 < block.end)
            load_tile<ROUND_KEYS, FA_DIM, ANY_STRIDE>(slot_s + V_BYTES, block.k, round * ROUND_KEYS + AHEAD_KEYS,
                                                      p.seq_kv, block.aligned, thread);
        load_tile<ROUND_KEYS, FA_DIM_V, ANY_STRIDE>(slot_s, block.v, round * ROUND_KEYS, p.seq_kv, block.aligned,
                                                    thread);
    }
    cp_async_commit();
}

/* load_round for a round before whole_end, from the share's global_offset on. Called at each of `points` points of the
 * round's work; by chunks, the loads are spread over the first of them. */
__device__ __forceinline__ void load_whole_round(smem_addr slot_s, const block_state &block, round_share &share,
                                                 int point, int points)
{
    constexpr int K_PASSES = k_layout::PASSES, V_PASSES = v_layout::PASSES, PASSES = larger(K_PASSES, V_PASSES);
    const int each = BY_CHUNKS ? (PASSES + points - 1) / points * (qk_row::XORS == 8 ? 2 : 1) : PASSES,
              end = min((point + 1) * each, PASSES);
    if (point == 0)
        make_opaque(share.k.global_offset);
    if (point == 0 && !ONE_DIM)
        make_opaque(share.v.global_offset);
    const unsigned char *k_g = reinterpret_cast<const unsigned char *>(block.k.data_g) +
                               (share.k.global_offset + AHEAD_KEYS * K_STRIDE(block) * 2);
    const unsigned char *v_g = reinterpret_cast<const unsigned char *>(block.v.data_g) + share.v.global_offset;
#pragma unroll
    for (int pass = point * each; pass < end; ++pass) {
        const bool has_k = share.k.global_offset + k_layout::span_row(pass) * K_STRIDE(block) * 2 < block.k_limit;
        if (ONE_DIM || pass < K_PASSES)
            load_pass<ROUND_KEYS, FA_DIM, true>(slot_s + V_BYTES, k_g, share.k.smem_offset, pass, has_k,
                                                reload_thread_index(), CENTRE, K_STRIDE(block));
        if (ONE_DIM || pass < V_PASSES)
            load_pass<ROUND_KEYS, FA_DIM_V, true>(slot_s, v_g, share.v.smem_offset, pass, true, reload_thread_index(),
                                                  CENTRE, V_STRIDE(block));
    }
    if (end == PASSES && point * each < PASSES) {
        advance_share(share, block, 1);
        cp_async_commit();
    }
}

__device__ __forceinline__ void load_q(smem_addr q_at, const head_rows &q, const block_state &block, bool whole,
                                       unsigned thread, const fa_params &p)
{
    if (whole) [[likely]]
        load_whole_tile<M, FA_DIM, ANY_STRIDE>(q_at, q, block.first_row, thread);
    else if (block.begin < block.end)
        load_tile<M, FA_DIM, ANY_STRIDE>(q_at, q, block.first_row, p.seq_q, block.aligned, thread);
}

/* The first AHEAD_KEYS keys, then rounds for all slots but the last; waits for the keys and for Q. */
__device__ __forceinline__ round_share start_loads(smem_addr slots_at, const block_state &block, bool whole,
                                                   const fa_params &p)
{
    round_share share = find_round_share(block);
    const smem_addr head_at = slots_at + ((STAGES - 1) * SLOT_BYTES + V_BYTES + (ROUND_KEYS - AHEAD_KEYS) * ROW_BYTES);
    if (whole) [[likely]] {
        load_whole_tile<AHEAD_KEYS, FA_DIM, ANY_STRIDE>(head_at, block.k, block.begin * ROUND_KEYS,
                                                        reload_thread_index());
        cp_async_commit();
        for (int i = 0; i < STAGES - 1; ++i)
            load_whole_round(slots_at + i * SLOT_BYTES, block, share, 0, 1);
    } else {
        if (block.begin < block.end)
            load_tile<AHEAD_KEYS, FA_DIM, ANY_STRIDE>(head_at, block.k, block.begin * ROUND_KEYS, p.seq_kv,
                                                      block.aligned, reload_thread_index());
        cp_async_commit();
        for (int i = 0; i < STAGES - 1; ++i)
            load_round(slots_at + i * SLOT_BYTES, block.begin + i, block, reload_thread_index(), p);
        advance_share(share, block, STAGES - 1);
    }
    cp_async_wait<STAGES - 1>();
    __syncthreads();
    return share;
}

/* The next slot to fill: the one before `slot`, an offset in bytes. */
__device__ __forceinline__ smem_addr slot_to_fill(smem_addr slots_at, int slot)
{
    return slots_at + (STAGES == 1 ? 0 : slot == 0 ? (STAGES - 1) * SLOT_BYTES : slot - SLOT_BYTES);
}

__device__ __forceinline__ void advance(int &slot) { slot = slot == (STAGES - 1) * SLOT_BYTES ? 0 : slot + SLOT_BYTES; }

/* On return all warps are done with the slot that is filled next, and the data of this round has landed. */
__device__ __forceinline__ void start_round()
{
    if (STAGES > 1)
        cp_async_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
    bar_sync_apart(1, THREADS); /* warps come here from different places */
}

/* The loads of a round: STAGES - 1 rounds ahead, into the slot before `slot`. With one stage, waits for them. */
__device__ __forceinline__ void load_ahead(smem_addr slots_at, int slot, int round, const block_state &block,
                                           round_share &share, const fa_params &p)
{
    if (round + (STAGES - 1) < block.whole_end)
        load_whole_round(slot_to_fill(slots_at, slot), block, share, 0, 1);
    else
        load_round(slot_to_fill(slots_at, slot), round + (STAGES - 1), block, reload_thread_index(), p);
    if (STAGES == 1) {
        cp_async_wait<0>();
        bar_sync_apart(1, THREADS);
    }
}
