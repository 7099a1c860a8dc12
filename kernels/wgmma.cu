/* wgmma: Hopper attention, one producer warpgroup that feeds TMA loads to warpgroups that compute.
 *
 * Idea: K and V stream through pipelines of mbarrier-guarded stages. A consumer warpgroup keeps S, P and O of its 64
 *   rows in registers. It issues the next Q K^T together with the previous P V, also across the border of two query
 *   tiles, and computes a softmax while both run. Warpgroups take turns at issuing, so that one's exponentials run
 *   under another's products. Blocks are persistent and take query tiles from a counter, longest first when causal.
 * Softmax: the reference is the exact maximum of a row's first key tile; it is raised when some P exceeds 2^8.
 * Builds on: mma.
 * Knobs: m = 16 * warps; n keys per tile; warps 4, 8, 12, 16 compute (4 more load); stages of K and of V.
 * Shared memory: Q [1 or 2][warps / 4][boxes][64][cols], K [stages][boxes][n][cols], V likewise, ones, O [warps][boxes
 *   or fewer][16][cols], with --lse a float per row, barriers; cols 64 or 32.
 * Features: lengths, windows, chunks (wgmma/tile.cuh: only key tiles that some row sees are loaded), softcap and ALiBi
 *   (wgmma/score.cuh), sinks, a head dimension of V.
 * Limits: sm_90a; bases 16-byte aligned (TMA); dim and dim_v up to 256, of the products padded to a multiple of 16. */
#include "wgmma/steps.cuh"

/* O has a map where it is stored without one, too: an O off 16 bytes is then refused before the launch. */
FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_PERSISTENT,
               .blocks_per_sm = BLOCKS_PER_SM, .workspace_bytes_per_block = FA_SPLITS > 1 ? UNIT_BYTES : 0,
               .workspace_bytes_fixed = FA_SPLITS > 1 ? 16 : 8, .tma_q_rows = PACKED ? 16 : 64, .tma_k_rows = BOX_KEYS,
               .tma_v_rows = BOX_KEYS, .tma_o_rows = 16, .tma_cols = BOX_COLS, .pack_heads = PACKED,
               .writes_lse = FA_LSE, .serves_bf16 = 1, .serves = SERVES, .page_rows = PAGE_BOX);

/* The ones that sum the rows of P, after V. With the fill_ones of wgmma/parts.cuh tiles of 192 rows would spill. */
__device__ __forceinline__ void fill_ones(unsigned char *ones_s, int thread)
{
    for (int i = thread; i < ONES_BYTES / 4; i += BLOCK_THREADS)
        reinterpret_cast<unsigned *>(ones_s)[i] = TWO_ONES;
}

/* A consumer warpgroup: for every query tile the first key tile, then the others, over borders too, then the end. */
__device__ __forceinline__ void consume(const fa_params &p, const shared_layout &at, const announced_tile *tiles_s,
                                        int warpgroup, int thread)
{
    float s_r[FA_N / 2], o_r[O_REGS], rescale_r[2];
    unsigned p_r[FA_N / 4], q_r[Q_REGS];
    softmax_rows rows;
    row_scale done_scale;
    announced_tile done_tile;
    consumer c(p, at, tiles_s, warpgroup, thread, s_r, o_r, rescale_r, p_r, q_r, rows, done_scale, done_tile);
    if (CONSUMERS > 1 && warpgroup == CONSUMERS - 1)
        bar_arrive(1, 256); /* the first turn is warpgroup 0's */
    for (c.tile = take_tile(c); c.tile.row >= 0; c.tile = c.next_tile) {
        if (skip_unseen(c))
            continue;
        first_key_tile(c);                   /* S = Q K^T on its own, exact row maxima, P = exp2(S - max) */
        while (masked_or_border_key_tile(c)) /* over the border of two query tiles: O += P V beside the next Q K^T */
            while (c.accumulate && c.tile.key_tile > c.tile.first_key_tile && next_is_unmasked(c))
                steady_key_tile(c); /* S = Q K^T and O += P V issued together, softmax of S under them */
        drain(c);                   /* O += P V on its own, store O */
    }
    wait_for_store(c.lane);
}

/* An empty barrier of Q waits for every lane. */
__device__ __forceinline__ void init_barriers(const shared_layout &at, barriers &bars)
{
    for (int i = 0; i < CONSUMERS * Q_STAGES; ++i) {
        mbarrier_init(at.q_full + 8 * i, 1);
        mbarrier_init(at.q_empty + 8 * i, 128);
    }
    init_kv_barriers(at, 4 * CONSUMERS, HAS_PAGES ? PAGE_WARPS : 1);
#if ASKS_FOR_Q
    mbarrier_init(smem_address(&bars.next_full), 1);
    mbarrier_init(smem_address(&bars.next_empty), 1);
#endif
    mbarrier_init_fence();
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_PER_SM)
    fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, dynamic_s);
    __shared__ barriers bars;
    /* One base address, made uniform once: ptxas would ask a special register for every address. */
    const unsigned bars_s = uniform_by_shuffle(smem_address(&bars));
    auto address_of = [&](const void *member) {
        return bars_s + static_cast<unsigned>(static_cast<const unsigned char *>(member) -
                                              reinterpret_cast<const unsigned char *>(&bars));
    };
    const unsigned q_s = uniform_by_shuffle((smem_address(dynamic_s) + 1023) & ~1023u);
    const shared_layout at = {q_s,
                              q_s + Q_STAGES * Q_BYTES,
                              q_s + Q_STAGES * Q_BYTES + K_RING_BYTES,
                              q_s + Q_STAGES * Q_BYTES + RING_BYTES,
                              q_s + Q_STAGES * Q_BYTES + RING_BYTES + ONES_BYTES,
                              address_of(bars.q_full),
                              address_of(bars.q_empty),
                              address_of(bars.k_full),
                              address_of(bars.k_empty),
                              address_of(bars.v_full),
                              address_of(bars.v_empty)};
    fill_ones(dynamic_s + (at.ones_s - smem_address(dynamic_s)), threadIdx.x);
#if VARLEN
    sort_sequences(p, bars.order, BLOCK_THREADS);
#endif
    fence_async_proxy();
    if (threadIdx.x == 0) {
        tma_prefetch_map(&p.q_map);
        tma_prefetch_map(&p.k_map);
        tma_prefetch_map(&p.v_map);
        init_barriers(at, bars);
    }
    __syncthreads();
    const int warp = uniform_by_shuffle(threadIdx.x / 32), warpgroup = warp / 4;
    if (warpgroup == 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
#if FA_FEATURES & FA_FEATURE_PAGED
        produce_from_pages(p, at, &bars.tile[0][0], bars.tickets, scheduler_of(p, bars), warp);
#else
        if (warp == 0 && elect_one())
            produce(p, at, bars, scheduler_of(p, bars));
#if ASKS_FOR_Q
        if (warp == 1)
            ask_for_q(p, bars, threadIdx.x % 32);
#endif
#endif
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        consume(p, at, &bars.tile[0][0], warpgroup - 1, threadIdx.x % 128);
    }
}
