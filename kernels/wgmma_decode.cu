/* wgmma_decode: few query rows over many keys, bound by the reading of K and V.
 *
 * Idea: the query heads that share a K/V head are packed into the rows of one tile, so K and V are read from memory
 *   once for all of them, and from shared memory once for 64 rows. One thread streams K and V by TMA; each of the other
 *   warpgroups multiplies its 64 rows with all keys of the block. The keys are split over blocks; the last to arrive
 *   combines.
 * Softmax: as wgmma.   Builds on: wgmma, mma_decode.
 * Knobs: m = 16 * warps, packed rows; n, keys per tile; warps, 4 or 8 that compute (beside 4 for loads); stages of K
 *   and of V; splits.
 * Shared memory: Q [warps / 4][boxes][64][64], K [stages][boxes][n][64], V likewise, ones, barriers, a flag; bytes of
 *   an FP8 cache [stages][4 warps][boxes][n / 2][128].
 * Features: lengths, windows, chunks, sinks, pages of a multiple of 16 rows (wgmma/pages.cuh), an FP8 cache in pages of
 *   any size (wgmma/decode_loads.cuh).   Limits: as wgmma. */
#include "wgmma/decode_loads.cuh"
#include "wgmma/decode_parts.cuh"

constexpr int CONSUMERS = FA_WARPS / 4;
constexpr int BLOCK_THREADS = 128 * (CONSUMERS + 1);
constexpr int Q_BYTES = CONSUMERS * Q_TILE_BYTES;
constexpr int RING_BYTES = FA_STAGES * K_TILE_BYTES; /* of K, and of V */
constexpr int BARS_OFFSET = Q_BYTES + 2 * RING_BYTES + ONES_BYTES;
constexpr int LAST_OFFSET = BARS_OFFSET + 4 * FA_STAGES * 8; /* is this block the last of its tile to end? */
constexpr int RAW_BARS_OFFSET = LAST_OFFSET + 16;
constexpr int RAW_OFFSET =
    FA_FP8_KV ? ceil_div(RAW_BARS_OFFSET + 32 * FA_STAGES, 8 * RAW_ROW) * 8 * RAW_ROW : RAW_BARS_OFFSET;
constexpr int SMEM_BYTES = RAW_OFFSET + RAW_BYTES;
constexpr int BLOCKS_PER_SM = CONSUMERS == 1 && FA_DIM <= 192 && SMEM_BYTES <= 112 * 1024 + 512 ? 2 : 1;

static_assert(FA_MAXREG == 0, "wgmma_decode: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS == 4 || FA_WARPS == 8, "warps: 4 or 8 (warpgroups that compute)");
static_assert(FA_M == 16 * FA_WARPS, "m must be 16 * warps: 64 rows per warpgroup");
static_assert(FA_STAGES >= 1, "stages: at least 1");
static_assert(!FA_FP8_KV || FA_N % 32 == 0, "n: a multiple of 32 with an FP8 cache (a warp's boxes have 16 rows)");
static_assert(FA_SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not in it");

/* Q and O are read and written 16 bytes at a time, without maps: with maps those off 16 bytes are refused before the
 * launch. */
FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_TILES,
               .workspace_bytes_per_block = FA_SPLITS > 1 ? UNIT_BYTES : 0,
               .workspace_bytes_fixed = FA_SPLITS > 1 ? 16 : 0, .tma_q_rows = 64, .tma_k_rows = BOX_KEYS,
               .tma_v_rows = BOX_KEYS, .tma_o_rows = 64, .tma_cols = FA_FP8_KV ? RAW_ROW / 2 : 64, .pack_heads = 1,
               .writes_lse = FA_LSE, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SINK |
                         FA_FEATURE_FP8_KV,
               .page_rows = FA_FP8_KV ? 1 : PAGE_BOX);

/* Per thread after setmaxnreg; the block's total stays what it had at launch. */
constexpr int GIVEN_REGISTERS = FA_FP8_KV && CONSUMERS == 1 && BLOCKS_PER_SM == 2 && FA_DIM <= 96 ? 8 : 0;
constexpr int PRODUCER_REGISTERS = FA_FP8_KV && CONSUMERS == 1 && BLOCKS_PER_SM == 1
                                       ? 96 /* a small block alone leaves many */
                                       : (CONSUMERS == 1 || LOADING_WARPS > 1 ? 40 : 24) + GIVEN_REGISTERS;
constexpr int CONSUMER_REGISTERS = BLOCKS_PER_SM == 2                          ? 216 - GIVEN_REGISTERS
                                   : FA_FP8_KV || (HAS_PAGES && CONSUMERS > 1) ? 232
                                                                               : 240;
/* With an FP8 cache shared memory is read and written much: Q is read from there once. */
constexpr bool Q_IN_REGISTERS = FA_FP8_KV && PRODUCT_REGISTERS + Q_REGS + SPARE_REGISTERS <= CONSUMER_REGISTERS;
static_assert(PRODUCT_REGISTERS + SPARE_REGISTERS <= CONSUMER_REGISTERS,
              "n: S, O and P of this n and dim do not fit the registers of a thread");

/* The rows of Q of a warpgroup to q_s, as TMA would lay them; zero past the last row and past dim. */
__device__ __forceinline__ void load_q(const fa_params &p, const packed_tile &tile, const sequence &seq, unsigned q_s,
                                       int row0, int thread)
{
    const fa_element *q_g = query_rows(p.q, seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, 0);
#pragma unroll 2
    for (int item = thread; item < 64 * DIM_PAD / 8; item += 128) {
        const int at = item / (DIM_PAD / 8), chunk = item % (DIM_PAD / 8);
        const packed_row row = find_packed_row(tile, row0 + at);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (row.exists && chunk * 8 < FA_DIM)
            words =
                *reinterpret_cast<const uint4 *>(q_g + row.head * p.q_stride_h + row.query * p.q_stride_s + chunk * 8);
        st_shared_16_at(q_s + (chunk / 8 * 64 + at) * BOX_ROW_BYTES + ((chunk ^ at) % 8) * 16, words);
    }
}

/* S = Q K^T, issued but not committed. */
__device__ __forceinline__ void issue_scores(float (&s_r)[FA_N / 2], const unsigned (&q_r)[Q_REGS], unsigned q_word,
                                             unsigned k_word)
{
    if constexpr (Q_IN_REGISTERS)
        issue_qk(s_r, q_r, k_word);
    else
        issue_qk(s_r, q_word, k_word);
}

/* S = Q K^T of the first key tile. */
__device__ __forceinline__ void first_product(float (&s_r)[FA_N / 2], const unsigned (&q_r)[Q_REGS], unsigned q_word,
                                              unsigned k_word)
{
    fence_operand(s_r);
    wgmma_fence();
    issue_scores(s_r, q_r, q_word, k_word);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(s_r);
}

/* O += P V of the last key tile. */
__device__ __forceinline__ void last_product(float (&o_r)[O_REGS], const unsigned (&p_r)[FA_N / 4], unsigned v_word,
                                             bool accumulate)
{
    fence_operand(o_r);
    wgmma_fence();
    issue_pv(o_r, p_r, v_word, accumulate);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(o_r);
}

/* Attention of a warpgroup's 64 rows from row0 on to the block's keys. Sets o_r and rows; sums as in softmax_rows. The
 * softmax of a key tile runs under P V of the one before. */
__device__ __forceinline__ void attend(const fa_params &p, const shared_layout &at, const packed_tile &tile,
                                       const sequence &seq, const tile_range &keys, float (&o_r)[O_REGS],
                                       softmax_rows &rows, unsigned q_s, int row0, int thread)
{
    const int lane = thread % 32;
    const unsigned q_word = uniform_by_shuffle(descriptor_start(q_s));
    const float scale_log2 = scale_of_head(p, seq.batch, tile.kv_head * tile.group) * LOG2_E;
#if FA_FEATURES
    const row_limits limits = find_limits(p, tile, seq, row0, thread);
    auto mask = [&](float(&s_r)[FA_N / 2], int n) { mask_by_limits(s_r, limits, n * FA_N, lane); };
#else
    const int seen_by_all = unmasked_keys(p, find_packed_row(tile, row0).query);
    int limit[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
        limit[h] = unmasked_keys(p, find_packed_row(tile, row0 + thread / 32 * 16 + lane / 4 + 8 * h).query);
    auto mask = [&](float(&s_r)[FA_N / 2], int n) {
        const int key0 = n * FA_N, limit_here[2] = {limit[0] - key0, limit[1] - key0};
        if (key0 + FA_N > seen_by_all)
            mask_columns(s_r, limit_here, lane);
    };
#endif
    /* Warps without rows, and threads without a second one, leave their issue slots to the warps that convert. */
    const bool idle = FA_FP8_KV && row0 + static_cast<int>(uniform_by_shuffle(thread / 32)) * 16 >= tile.rows;
    const bool one_row = FA_FP8_KV && tile.rows - row0 <= 8;
    float s_r[FA_N / 2], rescale_r[2];
    unsigned p_r[FA_N / 4], q_r[Q_REGS];
    if (Q_IN_REGISTERS)
        load_q_operand(q_r, q_s, thread);
    pipeline_state k = {0, 0}, v = {0, 0};
    auto k_address = [&] { return uniform_by_shuffle(at.k_s + k.stage * K_TILE_BYTES); };
    auto v_word = [&] { return uniform_by_shuffle(v_descriptor(at.v_s + v.stage * V_TILE_BYTES, at.ones_s)); };

    consumer_wait(at.k_full, k);
    first_product(s_r, q_r, q_word, descriptor_start(k_address()));
    consumer_release<FA_STAGES>(at.k_empty, k, lane);
    mask(s_r, keys.first);
    first_softmax(s_r, rows, scale_log2);
    pack_p(s_r, p_r);
#pragma unroll 1
    for (int n = keys.first + 1; n < keys.end; ++n) {
        const unsigned k_s = k_address();
        consumer_wait(at.k_full, k);
        fence_operand(s_r);
        fence_operand(o_r);
        wgmma_fence();
        issue_scores(s_r, q_r, q_word, descriptor_start(k_s));
        wgmma_commit();
        consumer_wait(at.v_full, v);
        wgmma_fence();
        issue_pv(o_r, p_r, v_word(), n - 1 != keys.first); /* O += P V of the tile before */
        wgmma_commit();
        wgmma_wait<1>(); /* S is complete; its softmax runs under P V */
        fence_operand(s_r);
        auto recompute = [&](float(&again)[FA_N / 2]) {
            recompute_s(again, q_s, k_s, thread);
            __syncwarp(); /* all lanes have read K before one frees it */
            mask(again, n);
        };
        bool raised = false;
        if (!idle) {
            mask(s_r, n);
            if (HAS_FIRST_KEY)
                first_ref_of_late_rows(s_r, rows, scale_log2);
            raised = one_row ? online_softmax<true>(s_r, rows, rescale_r, scale_log2, recompute)
                             : online_softmax(s_r, rows, rescale_r, scale_log2, recompute);
        }
        fence_operand(s_r);
        if (!SUM_BY_MMA)
            compute_before(__float_as_int(rows.sum[0] + rows.sum[1]));
        wgmma_wait<0>();
        fence_operand(o_r);
        consumer_release<FA_STAGES>(at.k_empty, k, lane);
        consumer_release<FA_STAGES>(at.v_empty, v, lane);
        if (raised)
            rescale_o(o_r, rescale_r);
        if (!idle)
            pack_p(s_r, p_r);
    }
    consumer_wait(at.v_full, v);
    last_product(o_r, p_r, v_word(), keys.end - 1 != keys.first);
}

/* Stores O = o_r / sums of a thread's two rows. */
__device__ __forceinline__ void store_output(const fa_params &p, const float (&o_r)[O_REGS], const row_sums &sums)
{
    packed_tile tile = find_packed_tile(p, reload_block_index());
    sequence seq = own_sequence(p, tile.batch);
    if constexpr (HAS_VARLEN)
        find_in_sequences(p, tile, seq);
    const int thread = reload_thread_index() - 128, lane = thread % 32;
    const int row0 = tile.row0 + thread / 32 * 16 + lane / 4;
    const packed_row row[2] = {find_packed_row(tile, row0), find_packed_row(tile, row0 + 8)};
    const float scale[2] = {finish_row(p, seq, tile, row[0], sums.ref[0], sums.sum[0], lane % 4 == 0),
                            finish_row(p, seq, tile, row[1], sums.ref[1], sums.sum[1], lane % 4 == 0)};
    auto place = [&](int h) {
        return row[h].exists
                   ? place_of_row(p, HAS_VARLEN ? seq : own_sequence(p, tile.batch), row[h].head, row[h].query)
                   : nullptr;
    };
    store_o_direct(o_r, scale, place, lane);
}

/* Stores O of a warp's 16 rows, or with splits this block's part. The last split to arrive combines them. */
__device__ __forceinline__ void finish(const fa_params &p, float (&o_r)[O_REGS], const softmax_rows &rows,
                                       unsigned base_s)
{
    row_sums sums;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        sums.ref[h] = rows.ref[h];
        sums.sum[h] = SUM_BY_MMA ? o_r[O_REGS - 4 + 2 * h] : quad_sum(rows.sum[h]);
    }
#if FA_SPLITS > 1
    packed_tile tile = find_packed_tile(p, reload_block_index());
    sequence seq = own_sequence(p, tile.batch);
    if constexpr (HAS_VARLEN)
        find_in_sequences(p, tile, seq);
    const int thread = threadIdx.x - 128, warp = uniform_by_shuffle(thread / 32), lane = thread % 32;
    if (FA_UNLIKE_SPLITS && splits_of(tile) == 1) {
        store_output(p, o_r, sums);
        return;
    }
    if (EIGHT_ROWS && tile.rows - tile.row0 <= 8) {
        finish_by_warpgroup<1>(p, o_r, sums, tile, seq, base_s + LAST_OFFSET, warp, lane);
        return;
    }
    if (tile.rows - tile.row0 <= 16) {
        finish_by_warpgroup<2>(p, o_r, sums, tile, seq, base_s + LAST_OFFSET, warp, lane);
        return;
    }
    const warp_parts parts = parts_of_tile(p, tile, warp, lane);
    if (tile.row0 + 16 * warp >= tile.rows || !write_part(parts, o_r, sums, tile.split, lane, splits_of(tile)))
        return;
    read_parts<FA_DIM <= 64 ? 4 : FA_DIM <= 128 ? 2 : 1>(parts, o_r, sums, splits_of(tile));
#endif
    store_output(p, o_r, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    const unsigned q_s = uniform_by_shuffle(smem_address(base_s)), bars = q_s + BARS_OFFSET;
    const unsigned k_s = q_s + Q_BYTES, v_s = k_s + RING_BYTES;
    const shared_layout at = {k_s,
                              v_s,
                              v_s + RING_BYTES,
                              bars,
                              bars + 8 * FA_STAGES,
                              bars + 16 * FA_STAGES,
                              bars + 24 * FA_STAGES,
                              q_s + RAW_OFFSET,
                              q_s + RAW_BARS_OFFSET};
    packed_tile tile = find_packed_tile(p, blockIdx.x);
    sequence seq = own_sequence(p, tile.batch);
    if constexpr (HAS_VARLEN)
        if (!find_in_sequences(p, tile, seq))
            return;
    const tile_range keys = find_tiles(p, tile, seq);
    const int warp = uniform_by_shuffle(threadIdx.x / 32), warpgroup = warp / 4 - 1, thread = threadIdx.x % 128;
    const int row0 = tile.row0 + 64 * warpgroup;
    const bool leads = warp == 0 && elect_one();
    auto init_barriers = [&] {
        init_kv_barriers(at, CONSUMERS > 1 && tile.row0 + 64 >= tile.rows ? 4 : FA_WARPS, LOADING_WARPS);
        mbarrier_init_fence();
    };
#if PAGES_BY_TMA
    if (warpgroup < 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        produce_from_pages(p, at, tile, seq, keys, warp, leads, init_barriers);
        return;
    }
#else
    const bool producer = FA_FP8_KV ? warp < 4 : leads;
    pipeline_state k_to = {0, 0}, v_to = {0, 0};
    const int filled = min(keys.first + FA_STAGES, keys.end);
    if (leads) { /* the first loads are on their way while Q is loaded */
        init_barriers();
        if (!FA_FP8_KV)
            produce<true>(p, at, tile, seq, keys.first, filled, k_to, v_to, leads);
    }
    if (FA_FP8_KV && producer) {
        __syncwarp();
        produce<true>(p, at, tile, seq, keys.first, filled, k_to, v_to, leads);
    }
#endif
    if (warpgroup >= 0) {
        load_q(p, tile, seq, q_s + warpgroup * Q_TILE_BYTES, row0, thread);
        fill_ones<128 * CONSUMERS>(at.ones_s, threadIdx.x - 128);
        fence_async_proxy();
    }
#if PAGES_BY_TMA
    bar_sync(BAR_READY, BLOCK_THREADS);
#else
    __syncthreads();
    if (warpgroup < 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (producer)
            produce<false>(p, at, tile, seq, FA_FP8_KV ? keys.first : filled, keys.end, k_to, v_to, leads);
        return;
    }
#endif
    setmaxnreg_inc<CONSUMER_REGISTERS>();
    if (row0 >= tile.rows)
        return;
    float o_r[O_REGS];
    softmax_rows rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    if (FA_FEATURES && keys.first == keys.end)
        clear(o_r);
    else
        attend(p, at, tile, seq, keys, o_r, rows, q_s + warpgroup * Q_TILE_BYTES, row0, thread);
    finish(p, o_r, rows, q_s);
}
