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

constexpr int consumers = FA_WARPS / 4;
constexpr int threads = 128 * (consumers + 1);
constexpr int resident = consumers == 1 ? 2 : 1;
constexpr int q_bytes = consumers * fa_q_part_bytes;
constexpr int ring_bytes = FA_STAGES * fa_kv_tile_bytes;
constexpr int fixed_bytes = 1024 + 2 * ring_bytes + fa_ones_bytes;
/* A block may have 227 KiB, some of it is static. The next tile's Q is loaded early where there is room for two; O is
 * stored through shared memory where there is room for its columns, 64 at least. */
constexpr int room = 226 * 1024 / resident - fixed_bytes;
constexpr int q_stages = 2 * q_bytes <= room ? 2 : 1;
constexpr int o_room = (room - q_stages * q_bytes) / (consumers * 64 * 2) / 64 * 64;
constexpr int o_columns = o_room < 0 ? 0 : o_room < fa_dim_pad ? o_room : fa_dim_pad;
constexpr int o_bytes = consumers * 64 * 2 * o_columns;
constexpr int smem_bytes = fixed_bytes + q_stages * q_bytes + o_bytes;

static_assert(FA_MAXREG == 0, "wgmma: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && consumers >= 1 && consumers <= 4, "warps: 4, 8, 12 or 16 (warpgroups that compute)");
static_assert(FA_M == 64 * consumers, "m must be 16 * warps: 64 rows per warpgroup");
static_assert(FA_STAGES >= 1, "stages: at least 1");
static_assert(FA_SPLITS <= 1, "wgmma does not split keys over blocks");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = smem_bytes, .grid = FA_GRID_PERSISTENT,
               .blocks_per_sm = resident, .workspace_bytes_fixed = 8, .tma_q_rows = 64, .tma_k_rows = FA_N,
               .tma_v_rows = FA_N, .tma_o_rows = o_columns > 0 ? 16 : 0, .tma_cols = 64);

/* Per thread after setmaxnreg; the block's total stays what it had at launch. */
constexpr int producer_registers = consumers <= 2 ? 40 : 32;
constexpr int consumer_registers = consumers == 1 ? 216 : consumers == 2 ? 232 : consumers == 3 ? 160 : 112;

/* Q is read from shared memory once per tile, not with every product, where S, O, P and it fit the registers. */
constexpr bool q_in_registers = consumers <= 2 && FA_N / 2 + fa_o_regs + FA_N / 4 + fa_q_regs <= 192;

/* With one buffer of Q the next Q comes late: then a tile's last P V goes before it, on its own. */
constexpr bool pv_first = q_stages == 1;

#include "wgmma_ring.cuh"
#include "wgmma_store.cuh"

/* Named barriers 1..consumers: a warpgroup waits for its turn to issue products and passes it on. */
__device__ __forceinline__ void take_turn(int warpgroup)
{
    if (consumers > 1)
        bar_sync(1 + warpgroup, 256);
}

__device__ __forceinline__ void pass_turn(int warpgroup)
{
    if (consumers > 1)
        bar_arrive(1 + (warpgroup + 1) % consumers, 256);
}

/* A warp is done with the buffer under `bar`: the producer may fill it again. */
template <int STAGES>
__device__ __forceinline__ void release(fa_u32 empty, place &at, int lane)
{
    if (lane == 0)
        fa_mbar_arrive(empty + 8 * at.slot);
    advance_warp<STAGES>(at);
}

/* Where a warpgroup is in the rings. q counts the tiles of queries. */
typedef struct places {
    place q, k, v;
    int count; /* tiles of queries taken */
} places;

/* K and V tiles of which no row of the warpgroup sees a key. Every warpgroup takes one turn per tile, these too. */
__device__ __forceinline__ void pass_over_k(const layout &at, places &now, int warpgroup, int lane, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        take_turn(warpgroup);
        pass_turn(warpgroup);
        fa_mbar_wait(at.k_full + 8 * now.k.slot, now.k.phase);
        release<FA_STAGES>(at.k_empty, now.k, lane);
    }
}

__device__ __forceinline__ void pass_over_v(const layout &at, places &now, int lane, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        fa_mbar_wait(at.v_full + 8 * now.v.slot, now.v.phase);
        release<FA_STAGES>(at.v_empty, now.v, lane);
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
typedef struct part {
    int row, n, hidden;
} part;

/* Waits for the next Q. */
__device__ __forceinline__ part take_part(const fa_params &p, const layout &at, const int4 *tile_s, places &now,
                                          int warpgroup)
{
    const int slot = warpgroup * q_stages + now.q.slot;
    fa_mbar_wait(at.q_full + 8 * slot, now.q.phase);
    const int4 tile = tile_s[tile_slot(warpgroup, now.count++)];
    part next = {static_cast<int>(fa_uniform(tile.x)), 0, 0};
    if (next.row >= 0) {
        next.row += 64 * warpgroup;
        next.n = fa_kv_tiles(p, next.row, 64) - 1;
        next.hidden = static_cast<int>(fa_uniform(tile.y)) - 1 - next.n;
    }
    return next;
}

/* The tile with this count: read again, for its coordinates would hold registers through the loop. */
__device__ __forceinline__ int4 known_tile(const int4 *tile_s, int warpgroup, int count)
{
    const int4 tile = tile_s[tile_slot(warpgroup, count)];
    return make_int4(fa_uniform(tile.x), 0, fa_uniform(tile.z), fa_uniform(tile.w));
}

__device__ __forceinline__ void clear(float (&o)[fa_o_regs])
{
#pragma unroll
    for (int i = 0; i < fa_o_regs; ++i)
        o[i] = 0.0f;
}

/* s = Q K^T, issued and committed. q_s: address of the part's Q, which q_r holds too, or does not. */
__device__ __forceinline__ void run_qk(float (&s)[FA_N / 2], const fa_u32 (&q_r)[fa_q_regs], fa_u32 q_s, fa_u32 k_word)
{
    const fa_u32 q_word = fa_uniform(fa_wgmma_start(q_s));
    fa_wgmma_settle(s);
    fa_wgmma_fence();
    if constexpr (q_in_registers)
        fa_issue_qk(s, q_r, k_word);
    else
        fa_issue_qk(s, q_word, k_word);
    fa_wgmma_commit();
}

/* Softmax of a part's first key tile, with its exact maxima. */
__device__ __forceinline__ void first_softmax(const fa_params &p, float (&s)[FA_N / 2], fa_rows &rows, const part &now,
                                              int thread, float scale_log2)
{
    rows = {{fa_no_key, fa_no_key}, {0.0f, 0.0f}};
    fa_mask_tile(p, s, now.n, now.row, thread);
    fa_first_max(s, rows, scale_log2);
    fa_exponentials(s, rows, scale_log2);
}

__device__ __forceinline__ void consume(const fa_params &p, const layout &at, const int4 *tile_s, int warpgroup,
                                        int thread)
{
    const int lane = thread % 32;
    const float scale_log2 = p.scale * 1.44269504f;
    const fa_u32 q_s = at.q + warpgroup * q_stages * fa_q_part_bytes, q_empty = at.q_empty + warpgroup * q_stages * 8;
    places now = {};
    float s[FA_N / 2], o[fa_o_regs], by[2];
    fa_u32 p_r[FA_N / 4], q_r[fa_q_regs];
    fa_rows rows;
    if (consumers > 1 && warpgroup == consumers - 1)
        bar_arrive(1, 256);
    part mine = take_part(p, at, tile_s, now, warpgroup);
    while (mine.row >= 0) {
        /* Nothing runs: the first products of a part on their own. */
        const bool empty = mine.row >= p.seq_q;
        pass_over(at, now, warpgroup, lane, empty ? mine.hidden + mine.n + 1 : mine.hidden);
        if (empty) {
            pass_over_v(at, now, lane, 1);
            release<q_stages>(q_empty, now.q, lane);
            mine = take_part(p, at, tile_s, now, warpgroup);
            continue;
        }
        clear(o);
        const fa_u32 q_first = q_s + now.q.slot * fa_q_part_bytes;
        if (q_in_registers)
            fa_take_q(q_r, q_first, thread);
        const fa_u32 k_first = fa_uniform(fa_wgmma_start(at.k + now.k.slot * fa_kv_tile_bytes));
        fa_mbar_wait(at.k_full + 8 * now.k.slot, now.k.phase);
        take_turn(warpgroup);
        run_qk(s, q_r, q_first, k_first);
        pass_turn(warpgroup);
        if (mine.hidden > 0)
            pass_over_v(at, now, lane, 1);
        fa_wgmma_wait<0>();
        fa_wgmma_settle(s);
        release<FA_STAGES>(at.k_empty, now.k, lane);
        first_softmax(p, s, rows, mine, thread, scale_log2);
        if (pv_first && mine.n == 0)
            release<q_stages>(q_empty, now.q, lane);
        fa_pack_p(s, p_r);

        part next = mine;
        bool stored =
            true; /* o is this part's; else P V starts it anew, and it may hold the output of the part before */
        int4 done_tile = {};
        row_scale done = {};
        /* The next key tile; plain: of the same part, unmasked, o in use. False: the tile after the last is no tile of ours. */
        auto go_on = [&](bool plain) __attribute__((always_inline))
        {
            /* P of (mine, n) waits for its V; the next Q K^T is of this part or the first of the next one. */
            const bool fresh = !plain && mine.n == 0;
            if (fresh && pv_first) { /* the next Q is on its way: P V goes first, its output is stored under Q K^T */
                const fa_u32 v_last = fa_uniform(fa_v_word(at.v + now.v.slot * fa_kv_tile_bytes, at.ones));
                fa_mbar_wait(at.v_full + 8 * now.v.slot, now.v.phase);
                fa_wgmma_settle(o);
                fa_wgmma_fence();
                fa_issue_pv(o, p_r, v_last, stored);
                fa_wgmma_commit();
                done = scale_of(rows);
                done_tile = known_tile(tile_s, warpgroup, now.count - 1);
                next = take_part(p, at, tile_s, now, warpgroup);
                if (next.row < 0 || next.row >= p.seq_q || next.hidden > FA_STAGES)
                    return false;
                pass_over_k(at, now, warpgroup, lane, next.hidden);
                const fa_u32 q_next = q_s + now.q.slot * fa_q_part_bytes;
                if (q_in_registers)
                    fa_take_q(q_r, q_next, thread);
                const fa_u32 k_next = fa_uniform(fa_wgmma_start(at.k + now.k.slot * fa_kv_tile_bytes));
                fa_mbar_wait(at.k_full + 8 * now.k.slot, now.k.phase);
                fa_wgmma_wait<0>();
                fa_wgmma_settle(o);
                release<FA_STAGES>(at.v_empty, now.v, lane);
                take_turn(warpgroup);
                run_qk(s, q_r, q_next, k_next);
                pass_turn(warpgroup);
                store(p, o, done, done_tile, at.o, warpgroup, thread);
                pass_over_v(at, now, lane, next.hidden);
                fa_wgmma_wait<0>();
                fa_wgmma_settle(s);
                release<FA_STAGES>(at.k_empty, now.k, lane);
                first_softmax(p, s, rows, next, thread, scale_log2);
                if (next.n == 0)
                    release<q_stages>(q_empty, now.q, lane);
                fa_pack_p(s, p_r);
                stored = false;
                mine = next;
                return true;
            }
            if (fresh) {
                release<q_stages>(q_empty, now.q, lane);
                next = take_part(p, at, tile_s, now, warpgroup);
                if (next.row < 0 || next.row >= p.seq_q || next.hidden > FA_STAGES)
                    return false;
                pass_over_k(at, now, warpgroup, lane, next.hidden);
                if (q_in_registers)
                    fa_take_q(q_r, q_s + now.q.slot * fa_q_part_bytes, thread);
            } else {
                --next.n;
            }
            const fa_u32 q_now = q_s + now.q.slot * fa_q_part_bytes, k_now = at.k + now.k.slot * fa_kv_tile_bytes;
            const fa_u32 k_word = fa_uniform(fa_wgmma_start(k_now));
            const fa_u32 v_word = fa_uniform(fa_v_word(at.v + now.v.slot * fa_kv_tile_bytes, at.ones));
            fa_mbar_wait(at.k_full + 8 * now.k.slot, now.k.phase);
            take_turn(warpgroup);
            fa_wgmma_settle(o);
            run_qk(s, q_r, q_now, k_word);
            const bool storing = !plain && !pv_first && !stored;
            if (storing) { /* the output of the tile before, while this product runs */
                pass_turn(warpgroup);
                store(p, o, done, done_tile, at.o, warpgroup, thread);
            }
            fa_mbar_wait(at.v_full + 8 * now.v.slot, now.v.phase);
            fa_wgmma_fence();
            fa_issue_pv(o, p_r, v_word, plain || stored);
            fa_wgmma_commit();
            if (!storing)
                pass_turn(warpgroup);
            if (fresh) {
                done = scale_of(rows);
                done_tile = known_tile(tile_s, warpgroup, now.count - 2);
            }
            fa_wgmma_wait<1>();
            fa_wgmma_settle(s);
            release<FA_STAGES>(at.k_empty, now.k, lane);
            bool raised = false;
            if (fresh)
                first_softmax(p, s, rows, next, thread, scale_log2);
            else
                raised = fa_softmax(
                    p, s, rows, by, next.n, next.row, thread, scale_log2, !plain, [&](float(&anew)[FA_N / 2]) {
                        fa_recompute_s_from_k(p, anew, q_now, known_tile(tile_s, warpgroup, now.count - 1),
                                              next.n * FA_N, thread);
                    });
            fa_wgmma_settle(s);
            if (!FA_SUM_BY_MMA)
                fa_compute_above(__float_as_int(rows.sum[0] + rows.sum[1]));
            else if (!FA_CAUSAL)
                fa_compute_above(__float_as_int(s[0]));
            if (pv_first && next.n == 0)
                release<q_stages>(q_empty, now.q, lane);
            fa_wgmma_wait<0>();
            fa_wgmma_settle(o);
            release<FA_STAGES>(at.v_empty, now.v, lane);
            if (!plain)
                stored = !fresh;
            if (fresh) {
                pass_over_v(at, now, lane, next.hidden);
            } else if (raised) {
                fa_scale_o(o, by);
            }
            fa_pack_p(s, p_r);
            mine = next;
            return true;
        };
        while (go_on(false))
            while (stored && mine.n > 0 && mine.n * FA_N <= fa_clear_keys(p, mine.row))
                go_on(true);
        if (!pv_first) {
            const fa_u32 v_word = fa_uniform(fa_v_word(at.v + now.v.slot * fa_kv_tile_bytes, at.ones));
            if (!stored)
                store(p, o, done, done_tile, at.o, warpgroup, thread);
            fa_mbar_wait(at.v_full + 8 * now.v.slot, now.v.phase);
            fa_wgmma_settle(o);
            fa_wgmma_fence();
            fa_issue_pv(o, p_r, v_word, stored);
            fa_wgmma_commit();
        }
        fa_wgmma_wait<0>();
        fa_wgmma_settle(o);
        release<FA_STAGES>(at.v_empty, now.v, lane);
        store(p, o, scale_of(rows), known_tile(tile_s, warpgroup, now.count - 2), at.o, warpgroup, thread);
        mine = next;
    }
    wait_for_store(lane);
}

extern "C" __global__ void __launch_bounds__(threads, resident) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, dynamic_s);
    __shared__ barriers bars;
    const fa_u32 bars_s =
        fa_uniform(smem_address(&bars)); /* once: ptxas would ask a special register for every address */
    auto place_of = [&](const void *of) {
        return bars_s + static_cast<fa_u32>(static_cast<const unsigned char *>(of) -
                                            reinterpret_cast<const unsigned char *>(&bars));
    };
    const fa_u32 base = fa_uniform((smem_address(dynamic_s) + 1023) & ~1023u);
    const layout at = {base,
                       base + q_stages * q_bytes,
                       base + q_stages * q_bytes + ring_bytes,
                       base + q_stages * q_bytes + 2 * ring_bytes,
                       base + q_stages * q_bytes + 2 * ring_bytes + fa_ones_bytes,
                       place_of(bars.q_full),
                       place_of(bars.q_empty),
                       place_of(bars.k_full),
                       place_of(bars.k_empty),
                       place_of(bars.v_full),
                       place_of(bars.v_empty)};
    fa_fill_ones(dynamic_s + (at.ones - smem_address(dynamic_s)), threadIdx.x, threads);
    fa_fence_async_proxy();
    if (threadIdx.x == 0) {
        fa_tma_prefetch_map(&p.q_map);
        fa_tma_prefetch_map(&p.k_map);
        fa_tma_prefetch_map(&p.v_map);
        for (int i = 0; i < consumers * q_stages; ++i) {
            fa_mbar_init(at.q_full + 8 * i, 1);
            fa_mbar_init(at.q_empty + 8 * i, 4);
        }
        for (int i = 0; i < FA_STAGES; ++i) {
            fa_mbar_init(at.k_full + 8 * i, 1);
            fa_mbar_init(at.v_full + 8 * i, 1);
            fa_mbar_init(at.k_empty + 8 * i, 4 * consumers);
            fa_mbar_init(at.v_empty + 8 * i, 4 * consumers);
        }
        fa_mbar_init_fence();
    }
    __syncthreads();
    const int warp = fa_uniform(threadIdx.x / 32), warpgroup = warp / 4;
    if (warpgroup == 0) {
        fa_registers_down<producer_registers>();
        if (warp == 0 && fa_elect_one())
            produce(p, at, &bars.tile[0][0]);
    } else {
        fa_registers_up<consumer_registers>();
        consume(p, at, &bars.tile[0][0], warpgroup - 1, threadIdx.x % 128);
    }
}
