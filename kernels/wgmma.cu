/* wgmma: Hopper attention, one producer warpgroup that feeds TMA loads to warpgroups that compute.
 *
 * Idea: K and V tiles stream through a ring of mbarrier-guarded buffers. Each consumer warpgroup keeps S, P and O of its
 *   64 rows in registers and runs the next tile's Q K^T and the last tile's P V while it computes this tile's softmax;
 *   the warpgroups take turns at issuing products, so that one's exponentials run under the other's products.
 *   Blocks are persistent and take tiles from a counter, longest first when causal.
 * Predecessor: mma.
 * Knobs: m = 64 * warps / 4; n keys per tile; warps 4, 8, 12, 16 compute (one more warpgroup loads); stages of the ring.
 * Shared memory: Q [warps / 4][boxes][64][64], K [stages][boxes][n][64], V [stages][boxes][n][64], barriers.
 * Limits: sm_90a; bases 16-byte aligned (TMA); dim up to 256, padded to a multiple of 64. */
#include "wgmma_parts.cuh"

#ifndef FA_ORDER
#define FA_ORDER 1
#endif
#ifndef FA_Q_REGS
#define FA_Q_REGS 0
#endif
#ifndef FA_OVERLAP
#define FA_OVERLAP 1
#endif

constexpr int consumers = FA_WARPS / 4;
constexpr int threads = 128 * (consumers + 1);
constexpr int resident = consumers == 1 ? 2 : 1;
constexpr int q_bytes = consumers * fa_q_part_bytes;
constexpr int ring_bytes = FA_STAGES * fa_kv_tile_bytes;
constexpr int smem_bytes = 1024 + q_bytes + 2 * ring_bytes + fa_ones_bytes;

static_assert(FA_WARPS % 4 == 0 && consumers >= 1 && consumers <= 4, "warps: 4, 8, 12 or 16 (warpgroups that compute)");
static_assert(FA_M == 64 * consumers, "m must be 16 * warps: 64 rows per warpgroup");
static_assert(FA_STAGES >= 1, "stages: at least 1");
static_assert(FA_SPLITS <= 1, "wgmma does not split keys over blocks");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = smem_bytes, .grid = FA_GRID_PERSISTENT, .blocks_per_sm = resident,
               .workspace_bytes_fixed = 8, .tma_q_rows = 64, .tma_k_rows = FA_N, .tma_v_rows = FA_N, .tma_cols = 64);

/* Per thread after setmaxnreg; the block's total stays what it had at launch. */
constexpr int producer_registers = consumers <= 2 ? 40 : 32;
constexpr int consumer_registers = consumers == 1 ? 216 : consumers == 2 ? 232 : consumers == 3 ? 160 : 112;

typedef struct barriers {
    fa_u64 q_full[consumers], q_empty[consumers];
    fa_u64 k_full[FA_STAGES], k_empty[FA_STAGES], v_full[FA_STAGES], v_empty[FA_STAGES];
    int tile[consumers]; /* whose Q part is in shared memory, -1: no more */
} barriers;

/* Addresses in shared memory, and where in the ring a warpgroup is. */
typedef struct layout {
    fa_u32 q, k, v, ones;
    fa_u32 q_full, q_empty, k_full, k_empty, v_full, v_empty;
} layout;

typedef struct place {
    int slot;
    fa_u32 phase;
} place;

__device__ __forceinline__ void advance(place &at)
{
    if (++at.slot == FA_STAGES) {
        at.slot = 0;
        at.phase ^= 1;
    }
}

/* The next tile of this block, from a counter all blocks share; the last block to leave puts it back to zero. */
__device__ __forceinline__ int next_tile(const fa_params &p)
{
    int *counters = static_cast<int *>(p.workspace);
    const int index = static_cast<int>(gridDim.x) + atomicAdd(&counters[0], 1);
    if (index < p.tiles)
        return index;
    if (atomicAdd(&counters[1], 1) == static_cast<int>(gridDim.x) - 1) {
        counters[0] = 0;
        counters[1] = 0;
    }
    return -1;
}

__device__ __forceinline__ void load_tile(const layout &at, const fa_tensor_map *map, fa_u32 ring, fa_u32 full, fa_u32 empty,
                                          place &to, int row, int head, int batch)
{
    const fa_u32 bar = full + 8 * to.slot;
    fa_mbar_wait(empty + 8 * to.slot, to.phase ^ 1);
    fa_mbar_arrive_expect(bar, fa_kv_tile_bytes);
    fa_load_boxes(ring + to.slot * fa_kv_tile_bytes, map, bar, FA_N, row, head, batch);
    advance(to);
}

/* One thread. K runs a tile ahead of V, as the consumers use them. */
__device__ __forceinline__ void produce(const fa_params &p, const layout &at, volatile int *tile_s)
{
    place k_to = {0, 0}, v_to = {0, 0};
    fa_u32 q_phase = 1;
    for (int index = blockIdx.x; index >= 0;) {
        const fa_tile tile = fa_tile_of(p, index, FA_M);
        int row = (tile.kv_tiles - 1) * FA_N;
        load_tile(at, &p.k_map, at.k, at.k_full, at.k_empty, k_to, row, tile.kv_head, tile.batch);
        for (int w = 0; w < consumers; ++w) {
            fa_mbar_wait(at.q_empty + 8 * w, q_phase);
            tile_s[w] = index;
            fa_mbar_arrive_expect(at.q_full + 8 * w, fa_q_part_bytes);
            fa_load_boxes(at.q + w * fa_q_part_bytes, &p.q_map, at.q_full + 8 * w, 64, tile.row0 + 64 * w, tile.head, tile.batch);
        }
        q_phase ^= 1;
        index = next_tile(p);
        for (; row > 0; row -= FA_N) {
            load_tile(at, &p.k_map, at.k, at.k_full, at.k_empty, k_to, row - FA_N, tile.kv_head, tile.batch);
            load_tile(at, &p.v_map, at.v, at.v_full, at.v_empty, v_to, row, tile.kv_head, tile.batch);
        }
        load_tile(at, &p.v_map, at.v, at.v_full, at.v_empty, v_to, 0, tile.kv_head, tile.batch);
    }
    for (int w = 0; w < consumers; ++w) {
        fa_mbar_wait(at.q_empty + 8 * w, q_phase);
        tile_s[w] = -1;
        fa_mbar_arrive(at.q_full + 8 * w);
    }
}

/* Named barriers 1..consumers: a warpgroup waits for its turn to issue products and passes it on. */
__device__ __forceinline__ void take_turn(int warpgroup)
{
    if (FA_ORDER && consumers > 1)
        fa_bar_sync(1 + warpgroup, 256);
}

__device__ __forceinline__ void pass_turn(int warpgroup)
{
    if (FA_ORDER && consumers > 1)
        fa_bar_arrive(1 + (warpgroup + 1) % consumers, 256);
}

__device__ __forceinline__ void release(fa_u32 bar, int lane)
{
    if (lane == 0)
        fa_mbar_arrive(bar);
}

/* A tile of which no row of the warpgroup sees a key. */
__device__ __forceinline__ void pass_over(const layout &at, place &k_at, place &v_at, int warpgroup, int lane)
{
    take_turn(warpgroup);
    pass_turn(warpgroup);
    fa_mbar_wait(at.k_full + 8 * k_at.slot, k_at.phase);
    release(at.k_empty + 8 * k_at.slot, lane);
    advance(k_at);
    fa_mbar_wait(at.v_full + 8 * v_at.slot, v_at.phase);
    release(at.v_empty + 8 * v_at.slot, lane);
    advance(v_at);
}

__device__ __forceinline__ void consume(const fa_params &p, const layout &at, volatile const int *tile_s, int warpgroup, int thread)
{
    const int lane = thread % 32;
    const float scale_log2 = p.scale * 1.44269504f;
#if !FA_Q_REGS
    const fa_u32 q_word = fa_wgmma_start(at.q + warpgroup * fa_q_part_bytes);
#endif
    const fa_u32 k_word = fa_wgmma_start(at.k);
    constexpr fa_u32 tile_word = fa_kv_tile_bytes / 16;
    place k_at = {0, 0}, v_at = {0, 0};
    if (FA_ORDER && consumers > 1 && warpgroup == consumers - 1)
        fa_bar_arrive(1, 256);
    for (fa_u32 q_phase = 0;; q_phase ^= 1) {
        fa_mbar_wait(at.q_full + 8 * warpgroup, q_phase);
        const int index = tile_s[warpgroup];
        if (index < 0)
            return;
        const fa_tile tile = fa_tile_of(p, index, FA_M);
        const int row = tile.row0 + 64 * warpgroup;
        float s[FA_N / 2], o[fa_o_regs], top[2], by[2];
        fa_u32 p_r[FA_N / 4];
#if FA_Q_REGS
        fa_u32 q_word[fa_dim_pad / 4];
        fa_read_q(q_word, at.q + warpgroup * fa_q_part_bytes, thread);
        release(at.q_empty + 8 * warpgroup, lane);
#endif
        fa_rows rows = {{fa_minus_inf(), fa_minus_inf()}, {0.0f, 0.0f}};
#pragma unroll
        for (int i = 0; i < fa_o_regs; ++i)
            o[i] = 0.0f;

        int last = tile.kv_tiles - 1;
        for (const int seen = row < p.seq_q ? fa_kv_tiles(p, row, 64) : 1; last >= seen; --last)
            pass_over(at, k_at, v_at, warpgroup, lane);
#if FA_OVERLAP
        fa_mbar_wait(at.k_full + 8 * k_at.slot, k_at.phase);
        fa_wgmma_settle(s);
        fa_wgmma_fence();
        fa_issue_qk(s, q_word, k_word + k_at.slot * tile_word);
        fa_wgmma_commit();
        fa_wgmma_wait<0>();
        fa_wgmma_settle(s);
        release(at.k_empty + 8 * k_at.slot, lane);
        advance(k_at);
        fa_mask_tile(p, s, last, row, thread);
        fa_row_max(s, top);
        rows.max[0] = top[0];
        rows.max[1] = top[1];
        fa_exponentials(s, rows, scale_log2);
        fa_pack_p(s, p_r);

        if (last > 0)
            fa_mbar_wait(at.k_full + 8 * k_at.slot, k_at.phase);
        for (int n = last - 1; n >= 0; --n) {
            take_turn(warpgroup);
            fa_wgmma_settle(s);
            fa_wgmma_settle(o);
            fa_wgmma_fence();
            fa_issue_qk(s, q_word, k_word + k_at.slot * tile_word);
            fa_wgmma_commit();
            fa_mbar_wait(at.v_full + 8 * v_at.slot, v_at.phase);
            fa_wgmma_fence();
            fa_issue_pv(o, p_r, fa_v_word(at.v + v_at.slot * fa_kv_tile_bytes, at.ones));
            fa_wgmma_commit();
            pass_turn(warpgroup);
            fa_wgmma_wait<1>();
            fa_wgmma_settle(s);
            release(at.k_empty + 8 * k_at.slot, lane);
            advance(k_at);
            fa_mask_tile(p, s, n, row, thread);
            fa_row_max(s, top);
            const bool raised = fa_raise_max(rows, top, scale_log2, by);
            fa_exponentials(s, rows, scale_log2);
            fa_wgmma_settle(s);
            fa_finish_exponentials(s, rows);
            if (n > 0)
                fa_mbar_wait(at.k_full + 8 * k_at.slot, k_at.phase);
            fa_wgmma_wait<0>();
            fa_wgmma_settle(o);
            release(at.v_empty + 8 * v_at.slot, lane);
            advance(v_at);
            fa_pack_p(s, p_r);
            if (raised)
                fa_scale_o(o, by);
        }
        if (!FA_Q_REGS)
            release(at.q_empty + 8 * warpgroup, lane);
        fa_mbar_wait(at.v_full + 8 * v_at.slot, v_at.phase);
        fa_wgmma_settle(o);
        fa_wgmma_fence();
        fa_issue_pv(o, p_r, fa_v_word(at.v + v_at.slot * fa_kv_tile_bytes, at.ones));
        fa_wgmma_commit();
        fa_wgmma_wait<0>();
        fa_wgmma_settle(o);
        release(at.v_empty + 8 * v_at.slot, lane);
        advance(v_at);
#else
        for (int n = last; n >= 0; --n) {
            fa_mbar_wait(at.k_full + 8 * k_at.slot, k_at.phase);
            fa_wgmma_settle(s);
            fa_wgmma_fence();
            fa_issue_qk(s, q_word, k_word + k_at.slot * tile_word);
            fa_wgmma_commit();
            fa_wgmma_wait<0>();
            fa_wgmma_settle(s);
            release(at.k_empty + 8 * k_at.slot, lane);
            advance(k_at);
            if (!FA_Q_REGS && n == 0)
                release(at.q_empty + 8 * warpgroup, lane);
            fa_mask_tile(p, s, n, row, thread);
            fa_row_max(s, top);
            if (fa_raise_max(rows, top, scale_log2, by))
                fa_scale_o(o, by);
            take_turn(warpgroup);
            fa_exponentials(s, rows, scale_log2);
            fa_pack_p(s, p_r);
            fa_mbar_wait(at.v_full + 8 * v_at.slot, v_at.phase);
            pass_turn(warpgroup);
            fa_wgmma_settle(o);
            fa_wgmma_fence();
            fa_issue_pv(o, p_r, fa_v_word(at.v + v_at.slot * fa_kv_tile_bytes, at.ones));
            fa_wgmma_commit();
            fa_wgmma_wait<0>();
            fa_wgmma_settle(o);
            release(at.v_empty + 8 * v_at.slot, lane);
            advance(v_at);
        }
#endif
        fa_store_o(p, o, rows, tile, row, thread);
    }
}

extern "C" __global__ void __launch_bounds__(threads, resident) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, dynamic_s);
    __shared__ barriers bars;
    const fa_u32 base = (fa_smem_addr(dynamic_s) + 1023) & ~1023u;
    const layout at = {base,
                       base + q_bytes,
                       base + q_bytes + ring_bytes,
                       base + q_bytes + 2 * ring_bytes,
                       fa_smem_addr(bars.q_full),
                       fa_smem_addr(bars.q_empty),
                       fa_smem_addr(bars.k_full),
                       fa_smem_addr(bars.k_empty),
                       fa_smem_addr(bars.v_full),
                       fa_smem_addr(bars.v_empty)};
    fa_fill_ones(dynamic_s + (at.ones - fa_smem_addr(dynamic_s)), threadIdx.x, threads);
    fa_fence_async_proxy();
    if (threadIdx.x == 0) {
        fa_tma_prefetch_map(&p.q_map);
        fa_tma_prefetch_map(&p.k_map);
        fa_tma_prefetch_map(&p.v_map);
        for (int w = 0; w < consumers; ++w) {
            fa_mbar_init(at.q_full + 8 * w, 1);
            fa_mbar_init(at.q_empty + 8 * w, 4);
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
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (warpgroup == 0) {
        fa_registers_down<producer_registers>();
        if (threadIdx.x == 0)
            produce(p, at, bars.tile);
    } else {
        fa_registers_up<consumer_registers>();
        consume(p, at, bars.tile, warpgroup - 1, threadIdx.x % 128);
    }
}
