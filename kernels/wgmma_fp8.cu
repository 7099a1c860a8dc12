/* wgmma_fp8: attention on e4m3 tensors by wgmma, for Hopper.
 *
 * Idea: wgmma takes bytes K-major only, so V must lie transposed. A producer warpgroup streams Q, K and V by TMA and
 *   transposes V in shared memory: ldmatrix transposes pairs of bytes, a byte permute parts them, stmatrix stores rows
 *   of keys. The keys of such a row stand in the order in which a thread holds the probabilities. Two or three
 *   consumer warpgroups own 64 query rows each. Registers for three suffice up to 128 columns of V. Without a
 *   log-sum-exp P's bytes are made without exponentials, their sums are columns more of P V, and blocks are persistent
 *   (wgmma/fp8_tickets.cuh) unless lengths, windows or chunks are given. With one consumers take turns at [P V of a
 *   tile, Q K^T of the next], so that one's exponentials run under another's products.
 * Softmax and sums: as mma_fp8. P V of a tile starts from zero and is added to O in FP32.
 * Builds on: mma_fp8, wgmma.   Knobs: M, N, STAGES.
 * Shared memory: Q, STAGES slots of K, two of V as it comes, STAGES of V transposed, barriers.
 * Limits: --dtype e4m3; rows on 16 bytes; dim a multiple of 16 from 16 to 256. */
#include "wgmma/fp8_tickets.cuh"

FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = WORDS_AT + 4 * WORDS + SLACK,
               .grid = TICKETS ? FA_GRID_PERSISTENT : FA_GRID_TILES, .blocks_per_sm = TICKETS,
               .workspace_bytes_fixed = TICKETS ? 8 : 0, .tma_q_rows = 64, .tma_k_rows = N, .tma_v_rows = N,
               .tma_cols = ROW_BYTES / 2, .writes_lse = FA_LSE,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_FP8);

__device__ __forceinline__ void produce(const shared_layout &at, const fa_params &p, const query_tile &tile,
                                        const key_tiles &keys, int thread)
{
    const int warp = uniform_by_reduction(thread / 32), lane = thread % 32;
    if (thread == 0) {
        load_queries(at, p, tile);
        for (int i = 0; i < STAGES && i < keys.count; ++i)
            load_keys<BOXES>(at.k(i), at.k_full(i), &p.k_map, p, tile, keys, i);
        for (int i = 0; i < RAW_STAGES && i < keys.count; ++i)
            load_keys<BOXES_V>(at.raw(i), at.raw_full(i), &p.v_map, p, tile, keys, i);
    }
    __syncwarp();
    int stage = 0, phase = 0;
    for (int i = 0; i < keys.count; ++i) {
        mbarrier_wait(at.raw_full(i % RAW_STAGES), i / RAW_STAGES % 2);
        mbarrier_wait(at.v_empty(stage), phase ^ 1);
        transpose_values(at.raw(i % RAW_STAGES), at.v(stage), warp, lane);
        fence_async_proxy();
        mbarrier_arrive(at.v_full(stage));
        bar_sync(BAR_PRODUCER, 128); /* all have read V as it came */
        if (thread == 0 && i + RAW_STAGES < keys.count)
            load_keys<BOXES_V>(at.raw(i % RAW_STAGES), at.raw_full(i % RAW_STAGES), &p.v_map, p, tile, keys,
                               i + RAW_STAGES);
        if (thread == 0 && i + STAGES < keys.count) {
            mbarrier_wait(at.k_empty(stage), phase);
            load_keys<BOXES>(at.k(stage), at.k_full(stage), &p.k_map, p, tile, keys, i + STAGES);
        }
        __syncwarp();
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
}

__device__ __forceinline__ void consume(const shared_layout &at, const fa_params &p, const query_tile &tile,
                                        const key_tiles &keys, int consumer, int thread)
{
    const int lane = thread % 32, warp = thread / 32 % 4;
    /* Uniform, or it would spill under the causal mask; with windows and chunks more would spill so. */
    const int warp_row = consumer * 64 + (HAS_FIRST_KEY ? warp : uniform_by_reduction(warp)) * 16;
    const head_scores scores = scores_of_head(p, tile.seq, tile.head);
    const unsigned q = uniform_by_shuffle(descriptor_start(at.q(consumer)));
    consumer_state c;
#pragma unroll
    for (int i = 0; i < DIM_N / 2; ++i)
        c.o[i / 8][i / 4 % 2][i % 4] = 0.0f;
    c.m[0] = c.m[1] = NO_MAX, c.l[0] = c.l[1] = 0.0f;
    if (keys.count > 0)
        mbarrier_wait(at.q_full(0), 0);
    if (keys.count > 0 && consumer > 0) /* the first turn is consumer 0's */
        take_turn(consumer);
    int stage = 0, phase = 0;
#pragma unroll 1
    for (int i = 0; i < keys.count; ++i) {
        const int key0 = keys.first_key + i * N;
        float s[N / 8][4];
        const unsigned k = uniform_by_shuffle(descriptor_start(at.k(stage)));
        mbarrier_wait(at.k_full(stage), phase);
        score_tile(s, q, k, consumer);
        if (lane == 0)
            mbarrier_arrive(at.k_empty(stage));
        const bool masked = is_masked(p, tile, tile.row0 + warp_row, 16, key0, N);
        if (masked || CHANGES_SCORES)
            finish_scores(s, p, tile, scores, tile.row0 + warp_row + lane / 4, key0 + lane % 4 * 2, masked);
        finish_tile(c, s, at, scores, stage, phase, consumer, lane);
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
    if (keys.count > 0 && consumer + 1 < CONSUMERS) /* nobody takes the turn after the last one */
        pass_turn(consumer);
    /* The row again from the thread's index: kept over the loop, it would spill. */
    store_band(c.o, c.m, c.l, p, tile, consumer * 64 + reload_thread_index() / 32 % 4 * 16 + lane / 4);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, 1024);
    const shared_layout at = {smem_address(smem)};
    const query_tile tile = TICKETS ? query_tile() : tile_of_block<M>(p);
    if (HAS_VARLEN && tile.rows == 0)
        return;
    const key_tiles keys = TICKETS ? key_tiles() : keys_of_tile(p, tile);
    const int thread = threadIdx.x, warpgroup = uniform_by_reduction(thread / 128);
    if (thread == 0)
        init_barriers(at);
    if (BY_BITS)
        init_sums(at, thread);
    __syncthreads();
    if (warpgroup == 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        const int warp = TICKETS ? uniform_by_reduction(thread / 32) : 0;
        if (TICKETS && warp < TRANSPOSERS)
            transpose_tiles(at, warp, thread % 32);
        else if (TICKETS && elect_one())
            load_tiles(at, p);
        else if (!TICKETS && keys.count > 0)
            produce(at, p, tile, keys, thread);
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        if (TICKETS)
            consume_tiles(at, p, warpgroup - 1, thread);
        else
            consume(at, p, tile, keys, warpgroup - 1, thread);
    }
}
