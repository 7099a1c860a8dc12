/* wgmma: Hopper attention, one producer warpgroup that feeds TMA loads to warpgroups that compute.
 *
 * Idea: K and V tiles stream through a ring of mbarrier-guarded buffers. Each consumer warpgroup keeps S, P and O of
 *   its 64 rows in registers. It issues the next Q K^T together with the P V of before, also over the border of two
 *   tiles of queries, and computes a softmax while they run; the warpgroups take turns at issuing, so that one's
 *   exponentials run under the other's products. Blocks are persistent and take tiles from a counter, longest first
 *   when causal.
 * Predecessor: mma.
 * Knobs: m = 64 * warps / 4; n keys per tile; warps 4, 8, 12, 16 compute (4 more load); stages of the ring.
 * Shared memory: Q [1 or 2][warps / 4][boxes][64][64], K [stages][boxes][n][64], V likewise, ones, O [warps][boxes or
 *   fewer][16][64], barriers.
 * Limits: sm_90a; bases 16-byte aligned (TMA); dim up to 256, padded to a multiple of 64. */
#include "wgmma_softmax.cuh"

constexpr int CONSUMERS = FA_WARPS / 4;
constexpr int threads = 128 * (CONSUMERS + 1);
constexpr int BLOCKS_PER_SM = CONSUMERS == 1 ? 2 : 1;
constexpr int Q_BYTES = CONSUMERS * Q_TILE_BYTES;
constexpr int RING_BYTES = FA_STAGES * KV_TILE_BYTES;
constexpr int FIXED_BYTES = 1024 + 2 * RING_BYTES + ONES_BYTES;
/* A block may have 227 KiB, some of it is static. The next tile's Q is loaded early where there is room for two; O is
 * stored through shared memory where there is room for its columns, 64 at least. */
constexpr int ROOM = 226 * 1024 / BLOCKS_PER_SM - FIXED_BYTES;
constexpr int Q_STAGES = 2 * Q_BYTES <= ROOM ? 2 : 1;
constexpr int O_ROOM = (ROOM - Q_STAGES * Q_BYTES) / (CONSUMERS * 64 * 2) / 64 * 64;
constexpr int O_BUFFER_COLS = O_ROOM < 0 ? 0 : O_ROOM < DIM_PAD ? O_ROOM : DIM_PAD;
constexpr int O_BUFFER_BYTES = CONSUMERS * 64 * 2 * O_BUFFER_COLS;
constexpr int SMEM_BYTES = FIXED_BYTES + Q_STAGES * Q_BYTES + O_BUFFER_BYTES;

static_assert(FA_MAXREG == 0, "wgmma: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && CONSUMERS >= 1 && CONSUMERS <= 4, "warps: 4, 8, 12 or 16 (warpgroups that compute)");
static_assert(FA_M == 64 * CONSUMERS, "m must be 16 * warps: 64 rows per warpgroup");
static_assert(FA_STAGES >= 1, "stages: at least 1");
static_assert(FA_SPLITS <= 1, "wgmma does not split keys over blocks");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_PERSISTENT,
               .blocks_per_sm = BLOCKS_PER_SM, .workspace_bytes_fixed = 8, .tma_q_rows = 64, .tma_k_rows = FA_N,
               .tma_v_rows = FA_N, .tma_o_rows = O_BUFFER_COLS > 0 ? 16 : 0, .tma_cols = 64);

/* Per thread after setmaxnreg; the block's total stays what it had at launch. */
constexpr int PRODUCER_REGISTERS = CONSUMERS <= 2 ? 40 : 32;
constexpr int CONSUMER_REGISTERS = CONSUMERS == 1 ? 216 : CONSUMERS == 2 ? 232 : CONSUMERS == 3 ? 160 : 112;

/* Q is read from shared memory once per tile, not with every product, where S, O, P and it fit the registers. */
constexpr bool Q_IN_REGISTERS = CONSUMERS <= 2 && FA_N / 2 + O_REGS + FA_N / 4 + Q_REGS <= 192;

/* With one buffer of Q the next Q comes late: then a tile's last P V goes before it, on its own. */
constexpr bool PV_FIRST = Q_STAGES == 1;

#include "wgmma_ring.cuh"
#include "wgmma_store.cuh"

/* Named barriers 1..consumers: a warpgroup waits for its turn to issue products and passes it on. */
__device__ __forceinline__ void warpgroup_sync(int warpgroup)
{
    if (CONSUMERS > 1)
        bar_sync(1 + warpgroup, 256);
}

__device__ __forceinline__ void warpgroup_arrive(int warpgroup)
{
    if (CONSUMERS > 1)
        bar_arrive(1 + (warpgroup + 1) % CONSUMERS, 256);
}

/* A warp is done with the buffer under `bar`: the producer may fill it again. */
template <int STAGES>
__device__ __forceinline__ void consumer_release(unsigned empty, pipeline_state &at, int lane)
{
    if (lane == 0)
        mbarrier_arrive(empty + 8 * at.slot);
    advance_warp<STAGES>(at);
}

/* Where a warpgroup is in the rings. q counts the tiles of queries. */
typedef struct places {
    pipeline_state q, k, v;
    int count; /* tiles of queries taken */
} places;

/* K and V tiles of which no row of the warpgroup sees a key. Every warpgroup takes one turn per tile, these too. */
__device__ __forceinline__ void pass_over_k(const layout &at, places &now, int warpgroup, int lane, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        warpgroup_sync(warpgroup);
        warpgroup_arrive(warpgroup);
        mbarrier_wait(at.k_full + 8 * now.k.slot, now.k.phase);
        consumer_release<FA_STAGES>(at.k_empty, now.k, lane);
    }
}

__device__ __forceinline__ void pass_over_v(const layout &at, places &now, int lane, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        mbarrier_wait(at.v_full + 8 * now.v.slot, now.v.phase);
        consumer_release<FA_STAGES>(at.v_empty, now.v, lane);
    }
}

/* Both but for the last V, in the order in which the producer loads them: the turn for a K comes before the wait for the
 * V before it, whose buffer another warpgroup may free only after that turn. */
__device__ __forceinline__ void pass_over(const layout &at, places &now, int warpgroup, int lane, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        pass_over_k(at, now, warpgroup, lane, 1);
        if (i > 0)
            pass_over_v(at, now, lane, 1);
    }
}

/* A warpgroup's part of a block's tile: 64 rows from `row` on, which see the key tiles n, n - 1, ..., 0; the `hidden`
 * above those no row sees. row < 0: no more tiles. */
typedef struct work_tile {
    int row, n, masked_tiles;
} work_tile;

/* Waits for the next Q. */
__device__ __forceinline__ work_tile take_part(const fa_params &p, const layout &at, const int4 *tile_s, places &now,
                                               int warpgroup)
{
    const int slot = warpgroup * Q_STAGES + now.q.slot;
    mbarrier_wait(at.q_full + 8 * slot, now.q.phase);
    const int4 tile = tile_s[tile_slot(warpgroup, now.count++)];
    work_tile next = {static_cast<int>(warp_uniform(tile.x)), 0, 0};
    if (next.row >= 0) {
        next.row += 64 * warpgroup;
        next.n = count_key_tiles(p, next.row, 64) - 1;
        next.masked_tiles = static_cast<int>(warp_uniform(tile.y)) - 1 - next.n;
    }
    return next;
}

/* The tile with this count: read again, for its coordinates would hold registers through the loop. */
__device__ __forceinline__ int4 known_tile(const int4 *tile_s, int warpgroup, int count)
{
    const int4 tile = tile_s[tile_slot(warpgroup, count)];
    return make_int4(warp_uniform(tile.x), 0, warp_uniform(tile.z), warp_uniform(tile.w));
}

__device__ __forceinline__ void clear(float (&o)[O_REGS])
{
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        o[i] = 0.0f;
}

/* s = Q K^T, issued and committed. q_s: address of the part's Q, which q_r holds too, or does not. */
__device__ __forceinline__ void run_qk(float (&s)[FA_N / 2], const unsigned (&q_r)[Q_REGS], unsigned q_s,
                                       unsigned k_word)
{
    const unsigned q_word = warp_uniform(descriptor_start(q_s));
    fence_operand(s);
    wgmma_fence();
    if constexpr (Q_IN_REGISTERS)
        issue_qk(s, q_r, k_word);
    else
        issue_qk(s, q_word, k_word);
    wgmma_commit();
}

/* Softmax of a part's first key tile, with its exact maxima. */
__device__ __forceinline__ void first_softmax(const fa_params &p, float (&s)[FA_N / 2], softmax_rows &rows,
                                              const work_tile &now, int thread, float scale_log2)
{
    rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    mask_tile(p, s, now.n, now.row, thread);
    first_row_ref(s, rows, scale_log2);
    exponentials(s, rows, scale_log2);
}

__device__ __forceinline__ void consume(const fa_params &p, const layout &at, const int4 *tile_s, int warpgroup,
                                        int thread)
{
    const int lane = thread % 32;
    const float scale_log2 = p.scale * 1.44269504f;
    const unsigned q_s = at.q + warpgroup * Q_STAGES * Q_TILE_BYTES, q_empty = at.q_empty + warpgroup * Q_STAGES * 8;
    places now = {};
    float s[FA_N / 2], o[O_REGS], by[2];
    unsigned p_r[FA_N / 4], q_r[Q_REGS];
    softmax_rows rows;
    if (CONSUMERS > 1 && warpgroup == CONSUMERS - 1)
        bar_arrive(1, 256);
    work_tile mine = take_part(p, at, tile_s, now, warpgroup);
    while (mine.row >= 0) {
        /* Nothing runs: the first products of a part on their own. */
        const bool empty = mine.row >= p.seq_q;
        pass_over(at, now, warpgroup, lane, empty ? mine.masked_tiles + mine.n + 1 : mine.masked_tiles);
        if (empty) {
            pass_over_v(at, now, lane, 1);
            consumer_release<Q_STAGES>(q_empty, now.q, lane);
            mine = take_part(p, at, tile_s, now, warpgroup);
            continue;
        }
        clear(o);
        const unsigned q_first = q_s + now.q.slot * Q_TILE_BYTES;
        if (Q_IN_REGISTERS)
            load_q_operand(q_r, q_first, thread);
        const unsigned k_first = warp_uniform(descriptor_start(at.k + now.k.slot * KV_TILE_BYTES));
        mbarrier_wait(at.k_full + 8 * now.k.slot, now.k.phase);
        warpgroup_sync(warpgroup);
        run_qk(s, q_r, q_first, k_first);
        warpgroup_arrive(warpgroup);
        if (mine.masked_tiles > 0)
            pass_over_v(at, now, lane, 1);
        wgmma_wait<0>();
        fence_operand(s);
        consumer_release<FA_STAGES>(at.k_empty, now.k, lane);
        first_softmax(p, s, rows, mine, thread, scale_log2);
        if (PV_FIRST && mine.n == 0)
            consumer_release<Q_STAGES>(q_empty, now.q, lane);
        pack_p(s, p_r);

        work_tile next = mine;
        bool stored =
            true; /* o is this part's; else P V starts it anew, and it may hold the output of the part before */
        int4 done_tile = {};
        row_scale done = {};
        /* The next key tile; plain: of the same part, unmasked, o in use. False: the tile after the last is no tile of ours. */
        auto go_on = [&](bool plain) __attribute__((always_inline))
        {
            /* P of (mine, n) waits for its V; the next Q K^T is of this part or the first of the next one. */
            const bool first_tile = !plain && mine.n == 0;
            if (first_tile &&
                PV_FIRST) { /* the next Q is on its way: P V goes first, its output is stored under Q K^T */
                const unsigned v_last = warp_uniform(v_descriptor(at.v + now.v.slot * KV_TILE_BYTES, at.ones));
                mbarrier_wait(at.v_full + 8 * now.v.slot, now.v.phase);
                fence_operand(o);
                wgmma_fence();
                issue_pv(o, p_r, v_last, stored);
                wgmma_commit();
                done = scale_of(rows);
                done_tile = known_tile(tile_s, warpgroup, now.count - 1);
                next = take_part(p, at, tile_s, now, warpgroup);
                if (next.row < 0 || next.row >= p.seq_q || next.masked_tiles > FA_STAGES)
                    return false;
                pass_over_k(at, now, warpgroup, lane, next.masked_tiles);
                const unsigned q_next = q_s + now.q.slot * Q_TILE_BYTES;
                if (Q_IN_REGISTERS)
                    load_q_operand(q_r, q_next, thread);
                const unsigned k_next = warp_uniform(descriptor_start(at.k + now.k.slot * KV_TILE_BYTES));
                mbarrier_wait(at.k_full + 8 * now.k.slot, now.k.phase);
                wgmma_wait<0>();
                fence_operand(o);
                consumer_release<FA_STAGES>(at.v_empty, now.v, lane);
                warpgroup_sync(warpgroup);
                run_qk(s, q_r, q_next, k_next);
                warpgroup_arrive(warpgroup);
                store(p, o, done, done_tile, at.o, warpgroup, thread);
                pass_over_v(at, now, lane, next.masked_tiles);
                wgmma_wait<0>();
                fence_operand(s);
                consumer_release<FA_STAGES>(at.k_empty, now.k, lane);
                first_softmax(p, s, rows, next, thread, scale_log2);
                if (next.n == 0)
                    consumer_release<Q_STAGES>(q_empty, now.q, lane);
                pack_p(s, p_r);
                stored = false;
                mine = next;
                return true;
            }
            if (first_tile) {
                consumer_release<Q_STAGES>(q_empty, now.q, lane);
                next = take_part(p, at, tile_s, now, warpgroup);
                if (next.row < 0 || next.row >= p.seq_q || next.masked_tiles > FA_STAGES)
                    return false;
                pass_over_k(at, now, warpgroup, lane, next.masked_tiles);
                if (Q_IN_REGISTERS)
                    load_q_operand(q_r, q_s + now.q.slot * Q_TILE_BYTES, thread);
            } else {
                --next.n;
            }
            const unsigned q_now = q_s + now.q.slot * Q_TILE_BYTES, k_now = at.k + now.k.slot * KV_TILE_BYTES;
            const unsigned k_word = warp_uniform(descriptor_start(k_now));
            const unsigned v_word = warp_uniform(v_descriptor(at.v + now.v.slot * KV_TILE_BYTES, at.ones));
            mbarrier_wait(at.k_full + 8 * now.k.slot, now.k.phase);
            warpgroup_sync(warpgroup);
            fence_operand(o);
            run_qk(s, q_r, q_now, k_word);
            const bool storing = !plain && !PV_FIRST && !stored;
            if (storing) { /* the output of the tile before, while this product runs */
                warpgroup_arrive(warpgroup);
                store(p, o, done, done_tile, at.o, warpgroup, thread);
            }
            mbarrier_wait(at.v_full + 8 * now.v.slot, now.v.phase);
            wgmma_fence();
            issue_pv(o, p_r, v_word, plain || stored);
            wgmma_commit();
            if (!storing)
                warpgroup_arrive(warpgroup);
            if (first_tile) {
                done = scale_of(rows);
                done_tile = known_tile(tile_s, warpgroup, now.count - 2);
            }
            wgmma_wait<1>();
            fence_operand(s);
            consumer_release<FA_STAGES>(at.k_empty, now.k, lane);
            bool raised = false;
            if (first_tile)
                first_softmax(p, s, rows, next, thread, scale_log2);
            else
                raised = online_softmax(
                    p, s, rows, by, next.n, next.row, thread, scale_log2, !plain, [&](float(&anew)[FA_N / 2]) {
                        recompute_s_from_global(p, anew, q_now, known_tile(tile_s, warpgroup, now.count - 1),
                                                next.n * FA_N, thread);
                    });
            fence_operand(s);
            if (!SUM_BY_MMA)
                compute_before(__float_as_int(rows.sum[0] + rows.sum[1]));
            else if (!FA_CAUSAL)
                compute_before(__float_as_int(s[0]));
            if (PV_FIRST && next.n == 0)
                consumer_release<Q_STAGES>(q_empty, now.q, lane);
            wgmma_wait<0>();
            fence_operand(o);
            consumer_release<FA_STAGES>(at.v_empty, now.v, lane);
            if (!plain)
                stored = !first_tile;
            if (first_tile) {
                pass_over_v(at, now, lane, next.masked_tiles);
            } else if (raised) {
                rescale_o(o, by);
            }
            pack_p(s, p_r);
            mine = next;
            return true;
        };
        while (go_on(false))
            while (stored && mine.n > 0 && mine.n * FA_N <= unmasked_keys(p, mine.row))
                go_on(true);
        if (!PV_FIRST) {
            const unsigned v_word = warp_uniform(v_descriptor(at.v + now.v.slot * KV_TILE_BYTES, at.ones));
            if (!stored)
                store(p, o, done, done_tile, at.o, warpgroup, thread);
            mbarrier_wait(at.v_full + 8 * now.v.slot, now.v.phase);
            fence_operand(o);
            wgmma_fence();
            issue_pv(o, p_r, v_word, stored);
            wgmma_commit();
        }
        wgmma_wait<0>();
        fence_operand(o);
        consumer_release<FA_STAGES>(at.v_empty, now.v, lane);
        store(p, o, scale_of(rows), known_tile(tile_s, warpgroup, now.count - 2), at.o, warpgroup, thread);
        mine = next;
    }
    wait_for_store(lane);
}

extern "C" __global__ void __launch_bounds__(threads, BLOCKS_PER_SM) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, dynamic_s);
    __shared__ barriers bars;
    const unsigned bars_s =
        warp_uniform(smem_address(&bars)); /* once: ptxas would ask a special register for every address */
    auto place_of = [&](const void *of) {
        return bars_s + static_cast<unsigned>(static_cast<const unsigned char *>(of) -
                                              reinterpret_cast<const unsigned char *>(&bars));
    };
    const unsigned base = warp_uniform((smem_address(dynamic_s) + 1023) & ~1023u);
    const layout at = {base,
                       base + Q_STAGES * Q_BYTES,
                       base + Q_STAGES * Q_BYTES + RING_BYTES,
                       base + Q_STAGES * Q_BYTES + 2 * RING_BYTES,
                       base + Q_STAGES * Q_BYTES + 2 * RING_BYTES + ONES_BYTES,
                       place_of(bars.q_full),
                       place_of(bars.q_empty),
                       place_of(bars.k_full),
                       place_of(bars.k_empty),
                       place_of(bars.v_full),
                       place_of(bars.v_empty)};
    fill_ones(dynamic_s + (at.ones - smem_address(dynamic_s)), threadIdx.x, threads);
    fence_async_proxy();
    if (threadIdx.x == 0) {
        tma_prefetch_map(&p.q_map);
        tma_prefetch_map(&p.k_map);
        tma_prefetch_map(&p.v_map);
        for (int i = 0; i < CONSUMERS * Q_STAGES; ++i) {
            mbarrier_init(at.q_full + 8 * i, 1);
            mbarrier_init(at.q_empty + 8 * i, 4);
        }
        for (int i = 0; i < FA_STAGES; ++i) {
            mbarrier_init(at.k_full + 8 * i, 1);
            mbarrier_init(at.v_full + 8 * i, 1);
            mbarrier_init(at.k_empty + 8 * i, 4 * CONSUMERS);
            mbarrier_init(at.v_empty + 8 * i, 4 * CONSUMERS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    const int warp = warp_uniform(threadIdx.x / 32), warpgroup = warp / 4;
    if (warpgroup == 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (warp == 0 && elect_one())
            produce(p, at, &bars.tile[0][0]);
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        consume(p, at, &bars.tile[0][0], warpgroup - 1, threadIdx.x % 128);
    }
}
