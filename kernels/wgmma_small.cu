/* wgmma_small: the wgmma kernel for grids too small to fill the device.
 *
 * Idea: a block owns 64 query rows and splits their keys over its warpgroups; warpgroup w takes the tiles w, w + count,
 *   and so on. Each warpgroup loads for itself, by TMA, its copy of Q and its K and V tiles, and needs no other until
 *   the end, when the partial (max, sum, O) meet in shared memory. No scheduler, no producer.
 * Predecessor: wgmma.
 * Knobs: m = 64; n keys per tile; warps 4, 8, 12, 16 = 4 per warpgroup; stages: tiles in flight per warpgroup.
 * Shared memory, per warpgroup: Q [boxes][64][64], K [stages][boxes][n][64], V likewise; then O [64][dim + 8] fp32.
 * Limits: as wgmma. */
#include "wgmma_parts.cuh"

constexpr int groups = FA_WARPS / 4;
constexpr int threads = FA_WARPS * 32;
constexpr int partial_stride = fa_dim_pad + 8; /* floats: rows of a quarter-warp in different banks */
constexpr int load_bytes = fa_q_part_bytes + 2 * FA_STAGES * fa_kv_tile_bytes;
constexpr int partial_bytes = (64 * partial_stride * 4 + 1023) / 1024 * 1024;
constexpr int group_bytes = load_bytes > partial_bytes ? load_bytes : partial_bytes;
constexpr int smem_bytes = 1024 + groups * group_bytes + fa_ones_bytes;

static_assert(FA_MAXREG == 0, "wgmma_small: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && groups >= 1 && groups <= 4,
              "warps: 4, 8, 12 or 16 (warpgroups that share the keys)");
static_assert(FA_M == 64, "m must be 64");
static_assert(FA_STAGES >= 1 && FA_STAGES <= 4, "stages: 1 to 4");
static_assert(FA_SPLITS <= 1, "wgmma_small does not split keys over blocks");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = smem_bytes, .grid = FA_GRID_TILES, .tma_q_rows = 64,
               .tma_k_rows = FA_N, .tma_v_rows = FA_N, .tma_cols = 64);

/* One warpgroup's view of shared memory. Addresses; k_full and v_full: FA_STAGES barriers each. */
typedef struct layout {
    fa_u32 q, k, v, ones, k_full, v_full;
} layout;

/* Loads tile n into its slot; with Q for the first. */
__device__ __forceinline__ void load_k(const fa_params &p, const layout &at, const fa_tile &tile, int n, int slot,
                                       bool with_q)
{
    const fa_u32 bar = at.k_full + 8 * slot;
    fa_mbar_arrive_expect(bar, fa_kv_tile_bytes + (with_q ? fa_q_part_bytes : 0));
    if (with_q)
        fa_load_boxes(at.q, &p.q_map, bar, 64, tile.row0, tile.head, tile.batch);
    fa_load_boxes(at.k + slot * fa_kv_tile_bytes, &p.k_map, bar, FA_N, n * FA_N, tile.kv_head, tile.batch);
}

__device__ __forceinline__ void load_v(const fa_params &p, const layout &at, const fa_tile &tile, int n, int slot)
{
    const fa_u32 bar = at.v_full + 8 * slot;
    fa_mbar_arrive_expect(bar, fa_kv_tile_bytes);
    fa_load_boxes(at.v + slot * fa_kv_tile_bytes, &p.v_map, bar, FA_N, n * FA_N, tile.kv_head, tile.batch);
}

/* The warpgroup's keys: o and rows afterwards hold its part. */
__device__ __forceinline__ void attend(const fa_params &p, const layout &at, const fa_tile &tile, float (&o)[fa_o_regs],
                                       fa_rows &rows, int group, int thread)
{
    const float scale_log2 = p.scale * 1.44269504f;
    int slot = 0;
    fa_u32 phase = 0;
    for (int n = group; n < tile.kv_tiles; n += groups) {
        const bool refill = n + FA_STAGES * groups < tile.kv_tiles;
        float s[FA_N / 2], by[2];
        fa_u32 p_r[FA_N / 4];
        fa_mbar_wait(at.k_full + 8 * slot, phase);
        fa_wgmma_settle(s);
        fa_wgmma_fence();
        fa_issue_qk(s, fa_wgmma_start(at.q), fa_wgmma_start(at.k + slot * fa_kv_tile_bytes));
        fa_wgmma_commit();
        fa_wgmma_wait<0>();
        fa_wgmma_settle(s);
        if (n == group) {
            fa_mask_tile(p, s, n, tile.row0, thread);
            fa_first_max(s, rows, scale_log2);
        }
        if (fa_softmax(p, s, rows, by, n, tile.row0, thread, scale_log2, at.q, at.k + slot * fa_kv_tile_bytes))
            fa_scale_o(o, by);
        if (refill) {
            bar_sync(1 + group, 128);
            if (thread == 0)
                load_k(p, at, tile, n + FA_STAGES * groups, slot, false);
        }
        fa_pack_p(s, p_r);
        fa_mbar_wait(at.v_full + 8 * slot, phase);
        fa_wgmma_settle(o);
        fa_wgmma_fence();
        fa_issue_pv(o, p_r, fa_v_word(at.v + slot * fa_kv_tile_bytes, at.ones));
        fa_wgmma_commit();
        fa_wgmma_wait<0>();
        fa_wgmma_settle(o);
        if (refill) {
            bar_sync(1 + group, 128);
            if (thread == 0)
                load_v(p, at, tile, n + FA_STAGES * groups, slot);
        }
        if (++slot == FA_STAGES) {
            slot = 0;
            phase ^= 1;
        }
    }
}

/* This warpgroup's part to shared memory: rows of O, and per row (max, sum). */
__device__ __forceinline__ void put_part(const float (&o)[fa_o_regs], const fa_rows &rows, float *part_s, float2 *row_s,
                                         int thread)
{
    const int lane = thread % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = thread / 32 * 16 + lane / 4 + 8 * h;
        const float sum = FA_SUM_BY_MMA ? o[fa_o_regs - 4 + 2 * h] : fa_quad_sum(rows.sum[h]);
        if (lane % 4 == 0)
            row_s[row] = make_float2(rows.max[h], sum);
#pragma unroll
        for (int j = 0; j < fa_dim_pad / 8; ++j)
            *reinterpret_cast<float2 *>(part_s + row * partial_stride + 8 * j + lane % 4 * 2) =
                make_float2(o[4 * j + 2 * h], o[4 * j + 2 * h + 1]);
    }
}

/* O of 8 columns per thread and turn, from the parts of all warpgroups. */
__device__ __forceinline__ void merge_parts(const fa_params &p, const fa_tile &tile, const unsigned char *base_s,
                                            const float2 (*row_s)[64])
{
    constexpr int chunks = FA_DIM / 8;
    __half *o_g = static_cast<__half *>(p.o) + tile.batch * p.o_stride_b + tile.head * p.o_stride_h;
#pragma unroll
    for (int turn = 0; turn < (64 * chunks + threads - 1) / threads; ++turn) {
        const int i = turn * threads + threadIdx.x, row = i / chunks, chunk = i % chunks;
        if (row >= 64)
            break;
        float top = fa_no_key, sum = 0.0f, out[8] = {};
#pragma unroll
        for (int w = 0; w < groups; ++w)
            top = fmaxf(top, row_s[w][row].x);
#pragma unroll
        for (int w = 0; w < groups; ++w) {
            const float weight = exp2_approx(row_s[w][row].x - top);
            const float4 *part =
                reinterpret_cast<const float4 *>(base_s + w * group_bytes) + (row * partial_stride + chunk * 8) / 4;
            const float4 a = part[0], b = part[1];
            const float in[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
            sum += weight * row_s[w][row].y;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                out[k] += weight * in[k];
        }
        const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
        if (tile.row0 + row < p.seq_q)
            *reinterpret_cast<uint4 *>(o_g + (tile.row0 + row) * p.o_stride_s + chunk * 8) = make_uint4(
                pack_half2(out[0] * inverse, out[1] * inverse), pack_half2(out[2] * inverse, out[3] * inverse),
                pack_half2(out[4] * inverse, out[5] * inverse), pack_half2(out[6] * inverse, out[7] * inverse));
    }
}

extern "C" __global__ void __launch_bounds__(threads, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, dynamic_s);
    __shared__ fa_u64 full_s[groups][2 * FA_STAGES];
    __shared__ float2 row_s[groups][64];
    unsigned char *base_s = dynamic_s + (-smem_address(dynamic_s) & 1023u);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), thread = threadIdx.x % 128;
    const fa_u32 q = smem_address(base_s) + group * group_bytes;
    const fa_u32 full = smem_address(full_s[group]);
    const layout at = {q,
                       q + fa_q_part_bytes,
                       q + fa_q_part_bytes + FA_STAGES * fa_kv_tile_bytes,
                       smem_address(base_s) + groups * group_bytes,
                       full,
                       full + 8 * FA_STAGES};
    const unsigned heads = p.heads * p.batch, by_head = blockIdx.x / static_cast<unsigned>(p.tiles_m);
    const fa_tile tile = FA_CAUSAL ? fa_tile_at(p, p.tiles_m - 1 - blockIdx.x / heads, blockIdx.x % heads, FA_M)
                                   : fa_tile_at(p, blockIdx.x - by_head * p.tiles_m, by_head, FA_M);
    if (thread == 0) {
        for (int i = 0; i < 2 * FA_STAGES; ++i)
            fa_mbar_init(full + 8 * i, 1);
        fa_mbar_init_fence();
        for (int i = 0; i < FA_STAGES && group + i * groups < tile.kv_tiles; ++i) {
            load_k(p, at, tile, group + i * groups, i, i == 0);
            load_v(p, at, tile, group + i * groups, i);
        }
    }
    fa_fill_ones(base_s + groups * group_bytes, threadIdx.x, threads);
    fa_fence_async_proxy();
    __syncthreads();

    float o[fa_o_regs];
    fa_rows rows = {{fa_no_key, fa_no_key}, {0.0f, 0.0f}};
#pragma unroll
    for (int i = 0; i < fa_o_regs; ++i)
        o[i] = 0.0f;
    attend(p, at, tile, o, rows, group, thread);
    bar_sync(1 + group, 128);
    put_part(o, rows, reinterpret_cast<float *>(base_s + group * group_bytes), row_s[group], thread);
    bar_sync(15, threads); /* racecheck sees a race here: it counts barriers whatever their ids, and groups pass different numbers of theirs */
    merge_parts(p, tile, base_s, row_s);
}
