/* mma: attention on mma.sync m16n8k16 with FP32 accumulators; scores and probabilities never leave registers.
 * Predecessor: wmma. Idea: beside the tensor cores every other instruction costs, so there are few: an exponent is one FFMA of a score, row
 *   sums are an mma with ones. Packed in place the probabilities are the A operand of P V. Scores of later keys and exponentials run in the gaps of
 *   P V. A base is the largest of the row's first scores, and nobody asks whether later ones are larger: a sum that has grown moves it, an
 *   infinite one starts the tile again, with bases from all keys.
 * Knobs: m query rows and n keys of a tile; m / warps rows per warp, 16 or 32; warps beyond m / 16 form groups that share out the keys;
 *   stages K/V buffers; swizzle XOR or padded rows; splits blocks share out the keys, the last to arrive combines.
 * Shared memory: Q [m] rows, then [stages] slots of V and of K some keys ahead, [groups * n] rows each; partial results reuse it all.
 * Limits: m a multiple of 16, n of 16. */
#include "mma_tile.cuh"

constexpr int M = FA_M, N = FA_N, WARPS = FA_WARPS, STAGES = FA_STAGES, SPLITS = FA_SPLITS;
static_assert(M % 16 == 0, "m must be a multiple of 16: one mma takes 16 query rows");
static_assert(N % 16 == 0, "n must be a multiple of 16: one mma of P V takes 16 keys");
static_assert(WARPS * 16 <= M ? M % (WARPS * 16) == 0 : WARPS * 16 % M == 0,
              "warps must divide m / 16, or be a multiple of it (the extra warps share out the keys)");
static_assert(SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not inside it");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(!FA_ACC_FP16, "mma accumulates in FP32 only");

constexpr int GROUPS =
    WARPS * 16 > M ? WARPS * 16 / M : 1; /* warp groups, each with every query row and its share of the keys */
constexpr int ROWS = M * GROUPS / WARPS; /* query rows of a warp */
constexpr int BANDS = ROWS / 16;         /* 16-row bands of a warp: each fragment of K or V serves all of them */
constexpr int STEPS = DIM16 / 16, TILES8 = N / 8, CHUNKS16 = N / 16;
static_assert(BANDS <= 4 && BANDS * DIM16 <= 256, "m / warps gives a warp more output than its registers hold");

/* k16 steps of Q kept in registers, beside a band's output; the others are read again for every tile. ROOM is what nothing spills with. */
constexpr int ROOM = FA_DIM == 256 || DIM16 <= 192 ? 168 : 148;
constexpr int Q_ROOM = (ROOM - DIM16 / 2) / 4;
constexpr int Q_STEPS = BANDS * DIM16 <= 128 ? STEPS : BANDS > 1 ? 0 : STEPS < Q_ROOM ? STEPS : Q_ROOM;
constexpr bool Q_IN_REGISTERS = Q_STEPS == STEPS;
constexpr int ROUND_KEYS = GROUPS * N;
/* With Q in registers a warp goes through its keys in chunks of 16: P V of one beside the exponentials of the next and the scores of the one
 * after. Otherwise tile by tile, as every tile reads all of Q. */
constexpr bool BY_CHUNKS = Q_IN_REGISTERS && N % 32 == 0 && (GROUPS == 1 || N == 32);
constexpr int AHEAD_KEYS = BY_CHUNKS && GROUPS == 1 ? 32 : ROUND_KEYS; /* a slot's K lies that many keys after its V */
constexpr int S_TILES8 = BY_CHUNKS ? 4 : TILES8; /* scores a warp holds, and chunks of probabilities */
constexpr int P_CHUNKS = BY_CHUNKS ? 2 : CHUNKS16;
constexpr int Q_BYTES = M * ROW_BYTES, TILE_BYTES = ROUND_KEYS * ROW_BYTES, SLOT_BYTES = 2 * TILE_BYTES;
constexpr int ROUND_BYTES = ROUND_KEYS * FA_DIM * 2; /* of global memory; TILE_BYTES is its image */
constexpr int CENTRE =
    2048; /* share.global_offset is so much more than a thread's first copy: immediate offsets reach as far down as up */
constexpr int PIPELINE_BYTES = Q_BYTES + STAGES * SLOT_BYTES;
constexpr bool PARTIAL = GROUPS > 1 || SPLITS > 1;
constexpr int PARTIAL_STRIDE = DIM16 + 8; /* floats; 4 rows of a store's half warp fall in different banks */
constexpr int PARTIAL_BYTES = PARTIAL ? GROUPS * M * (PARTIAL_STRIDE + 2) * 4 : 0;
constexpr int MAIN_BYTES = PIPELINE_BYTES > PARTIAL_BYTES ? PIPELINE_BYTES : PARTIAL_BYTES;
constexpr int SMEM_BYTES = MAIN_BYTES + SMEM_ALIGN - 16;

/* Workspace of a split block: a counter, then M rows of output, and their maxima and sums. */
constexpr int WORKSPACE_FLOATS = M * (DIM16 + 2);

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES,
               .workspace_bytes_per_block = SPLITS > 1 ? 16 + WORKSPACE_FLOATS * 4 : 0);
#include "mma_warp.cuh"
#include "mma_store.cuh"

__device__ __forceinline__ head_rows head_of(const void *data, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s,
                                             int batch, int head)
{
    return {static_cast<__half *>(const_cast<void *>(data)) + batch * stride_b + head * stride_h, stride_s};
}

/* Every row at a multiple of 16 bytes: what 16-byte copies need. Of what is read, of what is written. */
__device__ __forceinline__ bool reads_are_aligned(const fa_params &p)
{
    const fa_i64 pointers =
        reinterpret_cast<fa_i64>(p.q) | reinterpret_cast<fa_i64>(p.k) | reinterpret_cast<fa_i64>(p.v);
    const fa_i64 strides = p.q_stride_b | p.q_stride_h | p.q_stride_s | p.k_stride_b | p.k_stride_h | p.k_stride_s |
                           p.v_stride_b | p.v_stride_h | p.v_stride_s;
    return (pointers | strides * 2) % 16 == 0;
}

__device__ __forceinline__ bool writes_are_aligned(const fa_params &p)
{
    return (reinterpret_cast<fa_i64>(p.o) | (p.o_stride_b | p.o_stride_h | p.o_stride_s) * 2) % 16 == 0;
}

/* Row i sees keys 0 .. i + ahead, no further than the last. Round r of the block covers GROUPS tiles of N keys, one per group. */
struct block_state {
    head_rows k, v;
    int first_row, head, batch, split;
    int ahead;
    int begin, end;   /* rounds */
    int whole_end;    /* rounds before it are such as load_whole_round can load */
    unsigned k_limit; /* and offsets from it on lack their keys AHEAD_KEYS on */
    bool aligned;
    bool packed; /* rows of Q, K and V follow each other without a gap */
};

/* Most problems come in powers of two, which need no division. */
__device__ __forceinline__ unsigned divide(unsigned a, unsigned b)
{
    if ((b & (b - 1)) == 0) [[likely]]
        return a >> (31 - __clz(b));
    return to_uniform(static_cast<int>(a / b));
}

/* Where a block works. Full: the tiles of a head are neighbours, so that its K and V stay in L2. Causal: in sections of heads whose K and V
 * fit there together, the longest tiles (the last rows) of all heads come first. */
__device__ __forceinline__ void find_work(block_state &block, const fa_params &p)
{
    constexpr float SECTION_BYTES = 24 << 20;
    const unsigned unit = reload_block_index() / SPLITS, heads = p.heads, tiles_m = p.tiles_m;
    unsigned tile, index; /* index: head + batch * heads */
    if (FA_CAUSAL) {
        const unsigned all = p.batch * heads;
        /* heads whose K and V are that large, and a power of two of them */
        const float fit =
            __fdividef(SECTION_BYTES / (4.0f * DIM16) * p.heads, static_cast<float>(p.kv_heads) * p.seq_kv);
        const unsigned section = fit < 1.0f ? 1 : fit < all ? 1u << (31 - __clz(static_cast<int>(fit))) : all;
        const unsigned first = divide(unit, section * tiles_m) * section;
        const unsigned width = min(section, all - first), rest = unit - first * tiles_m, turn = divide(rest, width);
        tile = tiles_m - 1 - turn;
        index = first + rest - turn * width;
    } else {
        index = divide(unit, tiles_m);
        tile = unit - index * tiles_m;
    }
    block.first_row = tile * M;
    block.batch = divide(index, heads);
    block.head = index - block.batch * heads;
    block.split = blockIdx.x % SPLITS;
}

__device__ __forceinline__ block_state plan_block(const fa_params &p)
{
    block_state block;
    find_work(block, p);
    block.aligned = reads_are_aligned(p);
    block.ahead = FA_CAUSAL ? p.seq_kv - p.seq_q : p.seq_kv;
    const int keys = min(block.first_row + M + block.ahead, p.seq_kv);
    const int rounds = keys > 0 ? static_cast<int>((keys + ROUND_KEYS - 1u) / ROUND_KEYS) : 0;
    const int share = SPLITS == 1 ? rounds : static_cast<int>((rounds + SPLITS - 1u) / SPLITS);
    block.begin = SPLITS == 1 ? 0 : block.split * share;
    block.end = min(block.begin + share, rounds);
    const int kv_head = p.heads == p.kv_heads ? block.head : divide(block.head, divide(p.heads, p.kv_heads));
    block.k = head_of(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, block.batch, kv_head);
    block.v = head_of(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, block.batch, kv_head);
    block.packed = block.aligned && p.q_stride_s == FA_DIM && p.k_stride_s == FA_DIM && p.v_stride_s == FA_DIM;
    const int rest = p.seq_kv - AHEAD_KEYS;
    block.whole_end = block.packed && rest >= 0
                          ? min(block.end, (rest % copy_layout<ROUND_KEYS>::SPAN == 0 ? p.seq_kv : rest) / ROUND_KEYS)
                          : 0;
    block.k_limit = to_uniform(max(min(p.seq_kv, block.end * ROUND_KEYS) - AHEAD_KEYS, 0) * (FA_DIM * 2) + CENTRE);
    return block;
}

/* Load `round` fills a slot with V of that round and the K AHEAD_KEYS on; one commit each, also when nothing is left to load. */
__device__ __forceinline__ void load_round(smem_addr slot_s, int round, const block_state &block, unsigned thread,
                                           const fa_params &p)
{
    if (round < block.end) {
        if (AHEAD_KEYS < ROUND_KEYS || round + 1 < block.end)
            load_tile<ROUND_KEYS>(slot_s + TILE_BYTES, block.k, round * ROUND_KEYS + AHEAD_KEYS, p.seq_kv,
                                  block.aligned, thread);
        load_tile<ROUND_KEYS>(slot_s, block.v, round * ROUND_KEYS, p.seq_kv, block.aligned, thread);
    }
    cp_async_commit();
}

/* The same for a round before whole_end, from share.global_offset on; chunk by chunk it is spread over the first of `points` points of time. */
__device__ __forceinline__ void load_whole_round(smem_addr slot_s, const block_state &block, thread_share &share,
                                                 int point, int points)
{
    constexpr int PASSES = copy_layout<ROUND_KEYS>::PASSES;
    const int each = BY_CHUNKS ? (PASSES + points - 1) / points * (XORS == 8 ? 2 : 1) : PASSES,
              end = min((point + 1) * each, PASSES);
    if (point == 0)
        make_opaque(share.global_offset);
    const unsigned char *k_g =
        reinterpret_cast<const unsigned char *>(block.k.data_g) + (share.global_offset + AHEAD_KEYS * FA_DIM * 2);
    const unsigned char *v_g = reinterpret_cast<const unsigned char *>(block.v.data_g) + share.global_offset;
#pragma unroll
    for (int pass = point * each; pass < end; ++pass) {
        const bool has_k = share.global_offset + copy_layout<ROUND_KEYS>::span_row(pass) * FA_DIM * 2 < block.k_limit;
        load_pass<ROUND_KEYS, true>(slot_s + TILE_BYTES, k_g, share.smem_offset, pass, has_k, reload_thread_index(), CENTRE);
        load_pass<ROUND_KEYS, true>(slot_s, v_g, share.smem_offset, pass, true, reload_thread_index(), CENTRE);
    }
    if (end == PASSES && point * each < PASSES) {
        share.global_offset += ROUND_BYTES;
        cp_async_commit();
    }
}

/* Bases from the largest scores the warp's rows have in this block: all of Q K^T, without haste. */
template <class MASK>
__device__ __forceinline__ void find_row_refs(warp_state &w, smem_addr slot_s, const lane_fragments &k_lane,
                                           const block_state &block, int warp_end, int group_keys, const MASK &mask,
                                           const fa_params &p)
{
    float row_max[BANDS][2];
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        row_max[b][0] = row_max[b][1] = -INF;
    constexpr int KEYS = S_TILES8 * 8;
#pragma unroll 1
    for (int round = block.begin; round < block.end; ++round) {
        load_tile<ROUND_KEYS>(slot_s + TILE_BYTES, block.k, round * ROUND_KEYS, p.seq_kv, block.aligned, reload_thread_index());
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

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, SMEM_ALIGN);
    const smem_addr q_at = smem_address(smem), slots_at = q_at + Q_BYTES;
    const unsigned thread = reload_thread_index(), lane = thread % 32;
    const int warp = to_uniform(thread / 32);
    const int group = warp / (WARPS / GROUPS), warp_row = warp % (WARPS / GROUPS) * ROWS;

    block_state block = plan_block(p);
    const head_rows q = head_of(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s, block.batch, block.head);
    const bool whole = block.begin + (STAGES > 1 ? STAGES - 1 : 1) <= block.whole_end && block.first_row + M <= p.seq_q;
    if (whole) [[likely]]
        load_whole_tile<M>(q_at, q, block.first_row, thread);
    else if (block.begin < block.end)
        load_tile<M>(q_at, q, block.first_row, p.seq_q, block.aligned, thread);

    /* Of the block's rounds the warp's rows need those before warp_end; every one of them sees the keys before whole_keys. */
    const int first_row = block.first_row + warp_row, group_keys = group * N;
    const int some_keys = min(first_row + ROWS + block.ahead, p.seq_kv) - group_keys;
    const int whole_keys = to_uniform(min(first_row + 1 + block.ahead, p.seq_kv));
    const int warp_end = min(block.end, some_keys > 0 ? (some_keys + ROUND_KEYS - 1) / ROUND_KEYS : 0);

    warp_state w;
    w.scale_log2 = __int_as_float(to_uniform(__float_as_int(p.scale * 1.44269504088896341f)));
    w.v_lane = find_fragments(slots_at + group_keys * ROW_BYTES + v_lane_offset(lane));
    w.q_offset = to_uniform((warp_row - group_keys) * ROW_BYTES - Q_BYTES);
    /* Of the keys from `key` on, whose scores are tiles first .. end of w.s. */
    auto mask = [&](int key, int first, int end) {
        if (key + (end - first) * 8 <= whole_keys)
            return;
        const int row = first_row + reload_thread_index() % 32 / 4, last = p.seq_kv - 1;
        int last_key[BANDS][2];
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                last_key[b][h] = min(row + b * 16 + h * 8 + block.ahead, last) - key;
        mask_scores(w, last_key, first, end);
    };
    const lane_fragments k_lane = find_fragments(slots_at + TILE_BYTES + group_keys * ROW_BYTES + k_lane_offset(lane));
    /* With bases from the first keys; if a later one was so much more probable that a half could not hold it, again with bases from all keys. */
    for (bool known = false;;) {
#pragma unroll
        for (int b = 0; b < BANDS; ++b) {
            for (int r = 0; r < 4; ++r)
                w.sum[b][r] = 0.0f;
#pragma unroll
            for (int t = 0; t < STEPS * 2; ++t)
                w.o[b][t][0] = w.o[b][t][1] = w.o[b][t][2] = w.o[b][t][3] = 0.0f;
        }
        thread_share share = find_share<ROUND_KEYS>(reload_thread_index());
        prevent_recompute(share.smem_offset);
        share.global_offset += block.begin * ROUND_BYTES + CENTRE;
        const smem_addr head_at =
            slots_at + ((STAGES - 1) * SLOT_BYTES + TILE_BYTES + (ROUND_KEYS - AHEAD_KEYS) * ROW_BYTES);
        if (whole) [[likely]] {
            load_whole_tile<AHEAD_KEYS>(head_at, block.k, block.begin * ROUND_KEYS, reload_thread_index());
            cp_async_commit();
            for (int i = 0; i < STAGES - 1; ++i)
                load_whole_round(slots_at + i * SLOT_BYTES, block, share, 0, 1);
        } else {
            if (block.begin < block.end)
                load_tile<AHEAD_KEYS>(head_at, block.k, block.begin * ROUND_KEYS, p.seq_kv, block.aligned,
                                      reload_thread_index());
            cp_async_commit();
            for (int i = 0; i < STAGES - 1; ++i)
                load_round(slots_at + i * SLOT_BYTES, block.begin + i, block, reload_thread_index(), p);
            share.global_offset += (STAGES - 1) * ROUND_BYTES;
        }
        cp_async_wait<STAGES - 1>();
        __syncthreads();
#pragma unroll
        for (int step = 0; step < Q_STEPS; ++step)
            load_q(w.q[step], w, step);
        if (block.begin < warp_end) {
            score_tile(w, k_lane, (STAGES - 1) * SLOT_BYTES + (BY_CHUNKS && GROUPS == 1 ? (N - 32) * ROW_BYTES : 0),
                       no_load());
            mask(block.begin * ROUND_KEYS + group_keys, 0, S_TILES8);
            if (!known) {
                float row_max[BANDS][2];
#pragma unroll
                for (int i = 0; i < BANDS * 2; ++i)
                    row_max[i / 2][i % 2] = -INF;
                raise_row_max(row_max, w);
                set_row_refs(w, row_max);
            }
#pragma unroll
            for (int chunk = 0; chunk < (BY_CHUNKS ? 1 : P_CHUNKS); ++chunk)
                probabilities(w, chunk);
        }
        /* Every warp goes through every round of the block, for its share of the loads, also after its own last. */
        int slot = 0;
        auto load_slot = [&] {
            return slots_at + (STAGES == 1 ? 0 : slot == 0 ? (STAGES - 1) * SLOT_BYTES : slot - SLOT_BYTES);
        };
        auto start_round = [&] {
            if (STAGES > 1)
                cp_async_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
            bar_sync_apart(1, THREADS); /* warps come here from different places */
        };
        auto next_slot = [&] { slot = slot == (STAGES - 1) * SLOT_BYTES ? 0 : slot + SLOT_BYTES; };
        int round = block.begin;
        auto no_mask = [](int, int, int) {};
        /* First the rounds whose loads are of whole tiles and whose scores, up to where they are worked out, need no mask, two a turn with two slots,
         * so that slots are constants; then the others. */
        constexpr int TURN = STAGES == 2 && (FA_DIM == 128 || (BY_CHUNKS && DIM16 <= 64)) ? 2 : 1;
        const int scored_ahead = BY_CHUNKS ? 16 : N;
        const int plain_end = to_uniform(STAGES == 1 ? 0
                                                  : min(min(warp_end - 1, block.whole_end - (STAGES - 1)),
                                                        (whole_keys - group_keys - scored_ahead) / ROUND_KEYS));
#pragma unroll 1
        for (; round + TURN <= plain_end; round += TURN) {
            unrolled<0, TURN>([&](int i) {
                start_round();
                value_round<true>(w, k_lane, slot, 0, i + 1 == TURN, no_mask, [&](int point, int points) {
                    load_whole_round(load_slot(), block, share, point, points);
                });
                next_slot();
            });
            if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
                move_row_refs(w);
        }
#pragma unroll 1
        for (; round < block.end; ++round, next_slot()) {
            start_round();
            if (round + (STAGES - 1) < block.whole_end)
                load_whole_round(load_slot(), block, share, 0, 1);
            else
                load_round(load_slot(), round + (STAGES - 1), block, reload_thread_index(), p);
            if (STAGES == 1) {
                cp_async_wait<0>();
                bar_sync_apart(1, THREADS);
            }
            if (round + 1 < warp_end) {
                value_round<true>(w, k_lane, slot, round * ROUND_KEYS + group_keys, true, mask, no_load());
                if (BY_CHUNKS && has_sum_above(w, LARGE_SUM)) [[unlikely]]
                    move_row_refs(w);
            } else if (round < warp_end)
                value_round<false>(w, k_lane, slot, round * ROUND_KEYS + group_keys, true, mask, no_load());
        }

        if (known || !__syncthreads_or(has_sum_above(w, LARGEST_FLOAT)))
            break;
        known = true;
        find_row_refs(w, slots_at, k_lane, block, warp_end, group_keys, mask, p);
    }
    if (DIM16 > 128)
        find_work(block, p); /* again: in between its registers are needed */
    const output out = {head_of(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s, block.batch, block.head),
                        block.first_row, p.seq_q, writes_are_aligned(p)};
    if (PARTIAL)
        store_combined(w, smem, out, group, warp_row, p);
    else
        store_rows(w, smem + warp_row * ROW_BYTES, out, warp_row);
}
