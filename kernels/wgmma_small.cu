/* wgmma_small: the wgmma kernel for grids too small to fill the device.
 *
 * Idea: a block owns 64 query rows and splits their keys over its warpgroups; warpgroup w takes the tiles w, w + count,
 *   and so on. One thread starts all loads that fit, in the order of use; a warpgroup refills its own buffers and needs
 *   no other until the end, when the last one merges the partial (max, sum, O) of the others, from shared memory, with
 *   its own, from registers. Such a run is one chain of latencies, a few thousand cycles long: nothing is computed
 *   on it that can be computed while loads are on their way.
 * Predecessor: wgmma.
 * Knobs: m = 64; n keys per tile; warps 4, 8, 12, 16 = 4 per warpgroup; stages: tiles in flight per warpgroup.
 * Shared memory: Q [boxes][64][64], slots [stages * warpgroups] of K [boxes][n][64] and V likewise, ones; parts of O and
 *   of its rows.
 * Limits: as wgmma. */
#include "wgmma_softmax.cuh"

constexpr int groups = FA_WARPS / 4;
constexpr int threads = FA_WARPS * 32;
constexpr int slots = groups * FA_STAGES;
constexpr int slot_bytes = 2 * fa_kv_tile_bytes;
constexpr int part_bytes = 64 * fa_dim_pad * 4;
constexpr int load_bytes = fa_q_part_bytes + slots * slot_bytes + groups * fa_ones_bytes;
/* Parts of O have their own memory if there is enough, else they replace the keys of their warpgroup. */
constexpr bool parts_apart = load_bytes + (groups - 1) * part_bytes <= 224 * 1024;
constexpr int part_stride = parts_apart ? part_bytes : slot_bytes;
constexpr int row_offset = load_bytes + (parts_apart ? (groups - 1) * part_bytes : 0);
constexpr int smem_bytes = row_offset + (groups - 1) * 64 * 8;

static_assert(FA_MAXREG == 0, "wgmma_small: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && groups >= 1 && groups <= 4,
              "warps: 4, 8, 12 or 16 (warpgroups that share the keys)");
static_assert(FA_M == 64, "m must be 64");
static_assert(FA_STAGES >= 1 && FA_STAGES <= 4, "stages: 1 to 4");
static_assert(FA_SPLITS <= 1, "wgmma_small does not split keys over blocks");
static_assert(part_bytes <= slot_bytes, "a part of O fits where a tile of K and V was");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = smem_bytes, .grid = FA_GRID_TILES, .tma_q_rows = 64,
               .tma_k_rows = FA_N, .tma_v_rows = FA_N, .tma_cols = 64);

/* Named barriers: of a warpgroup bar_group + its number; bar_turn + w: warpgroup w waits for w - 1. */
enum { bar_ready = 0, bar_group = 1, bar_turn = 5, bar_parts = 9 };

/* Addresses in shared memory. bars: of K and V of each slot in turn, then of Q. */
typedef struct layout {
    fa_u32 q, ring, ones, bars, q_bar;
} layout;

/* a / b and what remains, by the inverse of b: quotients to 2^20 (tiles of a head, batches) are off by one at most before
 * the correction. An integer division takes longer, and all loads wait for it. */
__device__ __forceinline__ int divide(int a, int b, float inverse, int &rest)
{
    const int guess = __float2int_rz(static_cast<float>(a) * inverse), over = a - guess * b;
    const int off = (over >= b) - (over < 0);
    rest = over - off * b;
    return guess + off;
}

/* Heads change fastest; causal: longest tiles first. */
__device__ __forceinline__ fa_tile tile_of_block(const fa_params &p)
{
    const int all = p.heads * p.batch;
    const float by_all = fa_reciprocal(static_cast<float>(all)), by_heads = fa_reciprocal(static_cast<float>(p.heads));
    fa_tile tile;
    int head_index;
    const int block_m = divide(blockIdx.x, all, by_all, head_index);
    tile.batch = divide(head_index, p.heads, by_heads, tile.head);
    /* head / (heads / kv_heads): half a head away from an integer, so rounding does no harm */
    tile.kv_head = __float2int_rz((static_cast<float>(tile.head) + 0.5f) * (static_cast<float>(p.kv_heads) * by_heads));
    tile.row0 = (FA_CAUSAL ? p.tiles_m - 1 - block_m : block_m) * FA_M;
    tile.kv_tiles = fa_kv_tiles(p, tile.row0, FA_M);
    return tile;
}

/* Tile n of K or V. */
__device__ __forceinline__ void load_tile(const fa_tensor_map *map, fa_u32 to, fa_u32 bar, const fa_tile &tile, int n)
{
    fa_mbar_arrive_expect(bar, fa_kv_tile_bytes);
    fa_load_boxes(to, map, bar, FA_N, n * FA_N, tile.kv_head, tile.batch);
}

/* One thread: the barriers; the tensor maps, which are not in any cache yet, come while it works out coordinates. */
__device__ __forceinline__ void prepare_loads(const fa_params &p, const layout &at)
{
    fa_tma_prefetch_map(&p.q_map);
    fa_tma_prefetch_map(&p.k_map);
    fa_tma_prefetch_map(&p.v_map);
#pragma unroll
    for (int i = 0; i < 2 * slots + 1; ++i)
        fa_mbar_init(at.bars + 8 * i, 1);
    fa_mbar_init_fence();
}

/* One thread: Q and the tiles that fit; K of every warpgroup's first tile, then V and K by turns. */
__device__ __forceinline__ void load_first(const fa_params &p, const layout &at, const fa_tile &tile)
{
    const int count = min(slots, tile.kv_tiles);
    fa_mbar_arrive_expect(at.q_bar, fa_q_part_bytes);
    fa_load_boxes(at.q, &p.q_map, at.q_bar, 64, tile.row0, tile.head, tile.batch);
#pragma unroll 1
    for (int n = 0; n < count + groups; ++n) {
        const int v = n - groups;
        if (n < count)
            load_tile(&p.k_map, at.ring + n * slot_bytes, at.bars + 16 * n, tile, n);
        if (v >= 0)
            load_tile(&p.v_map, at.ring + v * slot_bytes + fa_kv_tile_bytes, at.bars + 16 * v + 8, tile, v);
    }
}

/* A warpgroup's slots: group, group + groups, ... */
typedef struct place {
    int slot;
    fa_u32 phase;
} place;

__device__ __forceinline__ void advance(place &now, int group)
{
    now.slot += groups;
    if (now.slot >= slots) {
        now.slot = group;
        now.phase ^= 1;
    }
}

/* The warpgroup is done with tile n of K or V; the next one for its slot, if any. */
__device__ __forceinline__ void refill(const fa_tensor_map *map, fa_u32 to, fa_u32 bar, const fa_tile &tile, int n,
                                       int group, int thread)
{
    if (n + slots >= tile.kv_tiles)
        return;
    bar_sync(bar_group + group, 128);
    if (thread == 0)
        load_tile(map, to, bar, tile, n + slots);
}

__device__ __forceinline__ int tiles_of(const fa_tile &tile, int group)
{
    return (tile.kv_tiles - group + groups - 1) / groups;
}

/* compute-sanitizer counts barriers whatever their numbers: warpgroups with fewer refills pass as many as the first. */
__device__ __forceinline__ void even_barriers(const fa_tile &tile, int group)
{
    if (tiles_of(tile, 0) > FA_STAGES && tiles_of(tile, group) < tiles_of(tile, 0)) {
        bar_sync(bar_group + group, 128);
        bar_sync(bar_group + group, 128);
    }
}

/* The warpgroup's keys: o and rows afterwards hold its part. The softmax of a tile runs under P V of the one before. */
__device__ __forceinline__ void attend(const fa_params &p, const layout &at, const fa_tile &tile, float (&o)[fa_o_regs],
                                       fa_rows &rows, int group, int thread)
{
    const float scale_log2 = p.scale * 1.44269504f;
    const fa_u32 q_word = fa_wgmma_start(at.q);
    place now = {group, 0};
    float s[FA_N / 2], by[2];
    fa_u32 p_r[FA_N / 4], k_s = at.ring + group * slot_bytes, k_bar = at.bars + 16 * group;
    /* First products one after the other: all at once would end at once, and so would the softmaxes, and so on. */
    const bool turns = tile.kv_tiles >= groups;
    fa_mbar_wait(at.q_bar, 0);
    fa_mbar_wait(k_bar, 0);
    if (turns && group > 0)
        bar_sync(bar_turn + group, 256);
    fa_wgmma_settle(s);
    fa_wgmma_fence();
    fa_issue_qk(s, q_word, fa_wgmma_start(k_s));
    fa_wgmma_commit();
    fa_wgmma_wait<0>();
    fa_wgmma_settle(s);
    if (turns && group < groups - 1)
        bar_arrive(bar_turn + group + 1, 256);
    fa_mask_tile(p, s, group, tile.row0, thread);
    fa_first_max(s, rows, scale_log2);
    fa_exponentials(s, rows, scale_log2);
    refill(&p.k_map, k_s, k_bar, tile, group, group, thread);
    fa_pack_p(s, p_r);
#pragma unroll 1
    for (int n = group + groups; n < tile.kv_tiles; n += groups) {
        const fa_u32 v_s = k_s + fa_kv_tile_bytes, v_bar = k_bar + 8, v_phase = now.phase;
        advance(now, group);
        k_s = at.ring + now.slot * slot_bytes;
        k_bar = at.bars + 16 * now.slot;
        fa_mbar_wait(k_bar, now.phase);
        fa_wgmma_settle(s);
        fa_wgmma_settle(o);
        fa_wgmma_fence();
        fa_issue_qk(s, q_word, fa_wgmma_start(k_s));
        fa_wgmma_commit();
        fa_mbar_wait(v_bar, v_phase);
        fa_wgmma_fence();
        fa_issue_pv(o, p_r, fa_v_word(v_s, at.ones));
        fa_wgmma_commit();
        fa_wgmma_wait<1>();
        fa_wgmma_settle(s);
        const bool raised = fa_softmax(p, s, rows, by, n, tile.row0, thread, scale_log2, at.q, k_s);
        fa_wgmma_settle(s);
        if (!FA_SUM_BY_MMA)
            fa_compute_above(__float_as_int(rows.sum[0] + rows.sum[1]));
        fa_wgmma_wait<0>();
        fa_wgmma_settle(o);
        refill(&p.k_map, k_s, k_bar, tile, n, group, thread);
        refill(&p.v_map, v_s, v_bar, tile, n - groups, group, thread);
        if (raised)
            fa_scale_o(o, by);
        fa_pack_p(s, p_r);
    }
    fa_mbar_wait(k_bar + 8, now.phase);
    fa_wgmma_settle(o);
    fa_wgmma_fence();
    fa_issue_pv(o, p_r, fa_v_word(k_s + fa_kv_tile_bytes, at.ones));
    fa_wgmma_commit();
    fa_wgmma_wait<0>();
    fa_wgmma_settle(o);
}

/* This warpgroup's part to shared memory: O as the threads hold it, and per row (max, sum). */
__device__ __forceinline__ void put_part(const float (&o)[fa_o_regs], const fa_rows &rows, const float (&sum)[2],
                                         float4 *part_s, float2 *row_s, int thread)
{
    const int lane = thread % 32, row = thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int c = 0; c < fa_dim_pad / 8; ++c)
        part_s[c * 128] = make_float4(o[4 * c], o[4 * c + 1], o[4 * c + 2], o[4 * c + 3]);
    if (lane % 4 == 0) {
        row_s[row] = make_float2(rows.max[0], sum[0]);
        row_s[row + 8] = make_float2(rows.max[1], sum[1]);
    }
}

/* What the parts' rows count, the own part's last; over the sum of all. */
__device__ __forceinline__ void weigh_parts(float (&weight)[groups][2], const fa_rows &rows, const float (&sum)[2],
                                            const float2 (*row_s)[64], int row)
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float2 in[groups];
        float top = rows.max[h], all = 0.0f;
        in[groups - 1] = make_float2(rows.max[h], sum[h]);
#pragma unroll
        for (int w = 0; w < groups - 1; ++w) {
            in[w] = row_s[w][row + 8 * h];
            top = fmaxf(top, in[w].x);
        }
#pragma unroll
        for (int w = 0; w < groups; ++w) {
            weight[w][h] = exp2_approx(in[w].x - top);
            all += weight[w][h] * in[w].y;
        }
        const float inverse = all > 0.0f ? fa_reciprocal(all) : 0.0f;
#pragma unroll
        for (int w = 0; w < groups; ++w)
            weight[w][h] *= inverse;
    }
}

/* o becomes the output: the parts of all, weighed. */
__device__ __forceinline__ void merge_parts(float (&o)[fa_o_regs], const float4 *parts_s,
                                            const float (&weight)[groups][2])
{
#pragma unroll
    for (int c = 0; c < fa_dim_pad / 8; ++c) {
        float out[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            out[i] = o[4 * c + i] * weight[groups - 1][i / 2];
#pragma unroll
        for (int w = 0; w < groups - 1; ++w) {
            const float4 in = parts_s[w * (part_stride / 16) + c * 128];
            out[0] = fmaf(in.x, weight[w][0], out[0]);
            out[1] = fmaf(in.y, weight[w][0], out[1]);
            out[2] = fmaf(in.z, weight[w][1], out[2]);
            out[3] = fmaf(in.w, weight[w][1], out[3]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            o[4 * c + i] = out[i];
    }
}

/* 16 bytes per lane and 16 columns: the lanes of a quad take its two rows of two groups of 8 columns. All stores come
 * last: no shuffle waits behind one. */
__device__ __forceinline__ void store_rows(__half *o_g, const float (&o)[fa_o_regs], bool inside, int lane)
{
    uint4 out[fa_dim_pad / 16];
#pragma unroll
    for (int c = 0; c < fa_dim_pad / 16; ++c) {
        fa_u32 word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word[i] = pack_half2(o[8 * c + 2 * i], o[8 * c + 2 * i + 1]);
        out[c] = fa_quad_transpose(word, lane);
    }
#pragma unroll
    for (int c = 0; c < fa_dim_pad / 16; ++c)
        if (inside && 16 * c + lane / 2 % 2 * 8 < FA_DIM)
            st_global_16(o_g + 16 * c, out[c]);
}

extern "C" __global__ void __launch_bounds__(threads, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    __shared__ fa_u64 bars_s[2 * slots + 1];
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4, thread = threadIdx.x % 128;
    const bool loads = warp == FA_WARPS - 4; /* of the warpgroup whose keys come last */
    constexpr int ones_offset = fa_q_part_bytes + slots * slot_bytes;
    const fa_u32 q_s = smem_address(base_s), bars = smem_address(bars_s);
    const layout at = {q_s, q_s + fa_q_part_bytes, q_s + ones_offset + group * fa_ones_bytes, bars, bars + 16 * slots};
    if (loads && fa_elect_one())
        prepare_loads(p, at);
    __syncwarp();
    bar_sync(bar_ready, threads);
    const fa_tile tile = tile_of_block(p);
    if (loads && fa_elect_one())
        load_first(p, at, tile);
    __syncwarp();

    /* While the loads are on their way: the ones, where the thread's output goes. */
    if (FA_SUM_BY_MMA) {
        reinterpret_cast<uint4 *>(base_s + ones_offset + group * fa_ones_bytes)[thread] =
            make_uint4(0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u);
        fa_fence_async_proxy();
        bar_sync(bar_group + group, 128);
    }
    const int lane = thread % 32, row = thread / 32 * 16 + lane / 4, out_row = tile.row0 + row + lane % 2 * 8;
    const bool inside = out_row < p.seq_q;
    __half *o_g = static_cast<__half *>(p.o) + tile.batch * p.o_stride_b + tile.head * p.o_stride_h +
                  out_row * p.o_stride_s + lane / 2 % 2 * 8;
    asm volatile("" : "+l"(o_g));
    float2(*row_s)[64] = reinterpret_cast<float2(*)[64]>(base_s + row_offset);
    float4 *parts_s =
        reinterpret_cast<float4 *>(base_s + (parts_apart ? load_bytes : fa_q_part_bytes)) + thread;

    float o[fa_o_regs], sum[2], weight[groups][2];
    fa_rows rows = {{fa_no_key, fa_no_key}, {0.0f, 0.0f}};
#pragma unroll
    for (int i = 0; i < fa_o_regs; ++i)
        o[i] = 0.0f;
    if (group < tile.kv_tiles)
        attend(p, at, tile, o, rows, group, thread);
    even_barriers(tile, group);
#pragma unroll
    for (int h = 0; h < 2; ++h)
        sum[h] = FA_SUM_BY_MMA ? o[fa_o_regs - 4 + 2 * h] : fa_quad_sum(rows.sum[h]);
    if (!parts_apart)
        bar_sync(bar_group + group, 128);
    if (group < groups - 1)
        put_part(o, rows, sum, parts_s + group * (part_stride / 16), row_s[group], thread);
    bar_sync(bar_parts, threads);
    if (group < groups - 1)
        return;
    weigh_parts(weight, rows, sum, row_s, row);
    merge_parts(o, parts_s, weight);
    store_rows(o_g, o, inside, lane);
}
