/* wgmma_small: the wgmma kernel for grids too small to fill the device.
 *
 * Idea: a block owns 64 query rows and splits their keys over its warpgroups; warpgroup w takes the tiles w, w + count,
 *   and so on. Three threads start all loads that fit, in the order of use; a warpgroup refills its own buffers and
 *   needs no other until the end, when the last one merges the partial (max, sum, O) of the others, from shared memory,
 *   with its own, from registers. Such a run is one chain of latencies, a few thousand cycles long: nothing is computed
 *   on it that can be computed while loads or products are on their way.
 * Predecessor: wgmma.
 * Knobs: m = 64; n keys per tile; warps 4, 8, 12, 16 = 4 per warpgroup; stages: tiles in flight per warpgroup.
 * Shared memory: Q [boxes][64][64], later O; slots [stages * warpgroups] of K [boxes][n][64] and V likewise, ones;
 *   parts of O and of its rows.
 * Limits: as wgmma. */
#include "wgmma_softmax.cuh"

constexpr int GROUPS = FA_WARPS / 4;
constexpr int threads = FA_WARPS * 32;
constexpr int SLOTS = GROUPS * FA_STAGES;
constexpr int SLOT_BYTES = 2 * KV_TILE_BYTES;
constexpr int PART_BYTES = 64 * DIM_PAD * 4;
constexpr int LOAD_BYTES = Q_TILE_BYTES + SLOTS * SLOT_BYTES + ONES_BYTES;
/* Parts of O have their own memory if there is enough, else they replace the keys of their warpgroup. */
constexpr bool PARTS_APART = LOAD_BYTES + (GROUPS - 1) * PART_BYTES <= 224 * 1024;
constexpr int PART_STRIDE = PARTS_APART ? PART_BYTES : SLOT_BYTES;
constexpr int ROW_OFFSET = LOAD_BYTES + (PARTS_APART ? (GROUPS - 1) * PART_BYTES : 0);
constexpr int SMEM_BYTES = ROW_OFFSET + (GROUPS - 1) * 64 * 8;

static_assert(FA_MAXREG == 0, "wgmma_small: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && GROUPS >= 1 && GROUPS <= 4,
              "warps: 4, 8, 12 or 16 (warpgroups that share the keys)");
static_assert(FA_M == 64, "m must be 64");
static_assert(FA_STAGES >= 1 && FA_STAGES <= 4, "stages: 1 to 4");
static_assert(FA_SPLITS <= 1, "wgmma_small does not split keys over blocks");
static_assert(PART_BYTES <= SLOT_BYTES, "a part of O fits where a tile of K and V was");

FA_KERNEL_INFO(.threads = threads, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_TILES, .tma_q_rows = 64,
               .tma_k_rows = FA_N, .tma_v_rows = FA_N, .tma_cols = 64);

/* Named barriers: of a warpgroup bar_group + its number; bar_turn + w: warpgroup w waits for w - 1; the last one waits
 * for the others' maxima, bar_maxima, and bar_parts + w: for the part of w. */
enum { bar_ready = 0, bar_group = 1, bar_turn = 5, bar_maxima = 9, bar_parts = 10 };

/* Addresses in shared memory. bars: of K and V of each slot in turn, then of Q. */
typedef struct layout {
    unsigned q, ring, ones, bars, q_bar;
} layout;

/* floor(a / b) for a < 2^21, of the inverse of b: half a step away from an integer, further than the error of the
 * product. An integer division takes longer, and all loads wait for it. */
__device__ __forceinline__ int quotient(int a, float inverse)
{
    return __float2int_rz((static_cast<float>(a) + 0.5f) * inverse);
}

/* Neighbours in pairs, on the two multiprocessors that share a path to L2, read the same keys: rows of one head. Heads
 * change next; causal: longest tiles first. */
__device__ __forceinline__ block_tile tile_of_block(const fa_params &p)
{
    const int all = p.heads * p.batch, even = p.tiles_m & ~1, index = blockIdx.x;
    const bool paired = index < even * all;
    const int unit = paired ? index / 2 : index - even * all;
    const float by_heads = reciprocal_approx(static_cast<float>(p.heads));
    block_tile tile;
    int step = quotient(unit, reciprocal_approx(static_cast<float>(all))), index_head = unit - step * all;
    const int off = (index_head >= all) - (index_head < 0); /* of more blocks than 2^21 */
    step += off;
    index_head -= off * all;
    tile.batch = quotient(index_head, by_heads);
    tile.head = index_head - tile.batch * p.heads;
    tile.kv_head = quotient(tile.head, static_cast<float>(p.kv_heads) * by_heads);
    const int block_m = paired ? 2 * step + index % 2 : even;
    tile.row0 = (FA_CAUSAL ? p.tiles_m - 1 - block_m : block_m) * FA_M;
    tile.key_tiles = count_key_tiles(p, tile.row0, FA_M);
    return tile;
}

/* Tile n of K or V. */
__device__ __forceinline__ void load_tile(const fa_tensor_map *map, unsigned to, unsigned bar, const block_tile &tile,
                                          int n)
{
    mbarrier_arrive_expect(bar, KV_TILE_BYTES);
    tma_load_boxes(to, map, bar, FA_N, n * FA_N, tile.kv_head, tile.batch);
}

/* Three warps of the last warpgroup, whose keys come last, start the loads, each what it prepared: Q and K of every
 * warpgroup's first tile; the other tiles of K that fit; V. */
enum { load_q_k = 0, load_k = 1, load_v = 2 };

__device__ __forceinline__ void prepare_loads(const fa_params &p, const layout &at, int what)
{
    if (what == load_q_k) {
        tma_prefetch_map(&p.q_map);
        tma_prefetch_map(&p.k_map);
        mbarrier_init(at.q_bar, 1);
    } else if (what == load_v) {
        tma_prefetch_map(&p.v_map);
    }
#pragma unroll
    for (int i = what == load_k ? GROUPS : 0; i < (what == load_q_k ? GROUPS : SLOTS); ++i)
        mbarrier_init(at.bars + 16 * i + (what == load_v ? 8 : 0), 1);
    mbarrier_init_fence();
}

__device__ __forceinline__ void load_tiles(const fa_tensor_map *map, const layout &at, const block_tile &tile,
                                           int first, int end, int v)
{
    const int stop = min(end, tile.key_tiles);
#pragma unroll 1
    for (int n = first; n < stop; ++n)
        load_tile(map, at.ring + n * SLOT_BYTES + v * KV_TILE_BYTES, at.bars + 16 * n + 8 * v, tile, n);
}

/* Does not count tries if the first succeeds. */
__device__ __forceinline__ void await(unsigned bar, unsigned parity)
{
    if (!mbarrier_try_wait(bar, parity))
        mbarrier_wait(bar, parity);
}

/* The warpgroup is done with tile n of K or V; the next one for its slot, if any. */
__device__ __forceinline__ void refill(const fa_tensor_map *map, unsigned to, unsigned bar, const block_tile &tile,
                                       int n, int group, int thread)
{
    if (n + SLOTS >= tile.key_tiles)
        return;
    bar_sync(bar_group + group, 128);
    if (thread == 0)
        load_tile(map, to, bar, tile, n + SLOTS);
}

/* The warpgroup's keys: o and rows afterwards hold its part. The softmax of a tile runs under P V of the one before. */
__device__ __forceinline__ void attend(const fa_params &p, const layout &at, const block_tile &tile, float (&o)[O_REGS],
                                       softmax_rows &rows, float scale_log2, int group, int thread)
{
    const unsigned q_word = descriptor_start(at.q);
    float s[FA_N / 2], by[2];
    int slot = group; /* its slots: group, group + groups, ... */
    unsigned phase = 0, p_r[FA_N / 4], k_s = at.ring + group * SLOT_BYTES, k_bar = at.bars + 16 * group;
    /* First products one after the other: all at once would end at once, and so would the softmaxes, and so on. */
    const bool turns = tile.key_tiles >= GROUPS;
    await(at.q_bar, 0);
    await(k_bar, 0);
    if (turns && group > 0)
        bar_sync(bar_turn + group, 256);
    fence_operand(s);
    wgmma_fence();
    issue_qk(s, q_word, descriptor_start(k_s));
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(s);
    if (turns && group < GROUPS - 1)
        bar_arrive(bar_turn + group + 1, 256);
    mask_tile(p, s, group, tile.row0, thread);
    first_row_ref(s, rows, scale_log2);
    exponentials(s, rows, scale_log2);
    refill(&p.k_map, k_s, k_bar, tile, group, group, thread);
    pack_p(s, p_r);
#pragma unroll 1
    for (int n = group + GROUPS; n < tile.key_tiles; n += GROUPS) {
        const unsigned v_s = k_s + KV_TILE_BYTES, v_bar = k_bar + 8, v_phase = phase;
        slot = slot + GROUPS < SLOTS ? slot + GROUPS : group;
        phase ^= slot == group;
        k_s = at.ring + slot * SLOT_BYTES;
        k_bar = at.bars + 16 * slot;
        await(k_bar, phase);
        fence_operand(s);
        fence_operand(o);
        wgmma_fence();
        issue_qk(s, q_word, descriptor_start(k_s));
        wgmma_commit();
        await(v_bar, v_phase);
        wgmma_fence();
        issue_pv(o, p_r, v_descriptor(v_s, at.ones), n - GROUPS != group);
        wgmma_commit();
        wgmma_wait<1>();
        fence_operand(s);
        const bool raised = online_softmax(p, s, rows, by, n, tile.row0, thread, scale_log2, at.q, k_s);
        fence_operand(s);
        if (!SUM_BY_MMA)
            compute_before(__float_as_int(rows.sum[0] + rows.sum[1]));
        wgmma_wait<0>();
        fence_operand(o);
        if (n - GROUPS + SLOTS < tile.key_tiles) {
            refill(&p.k_map, k_s, k_bar, tile, n, group, thread);
            refill(&p.v_map, v_s, v_bar, tile, n - GROUPS, group, thread);
        }
        if (raised)
            rescale_o(o, by);
        pack_p(s, p_r);
    }
    await(k_bar + 8, phase);
    fence_operand(o);
    wgmma_fence();
    issue_pv(o, p_r, v_descriptor(k_s + KV_TILE_BYTES, at.ones), group + GROUPS < tile.key_tiles);
    wgmma_commit();
}

/* This warpgroup's part to shared memory: O as the threads hold it. */
__device__ __forceinline__ void put_part(const float (&o)[O_REGS], unsigned part_s)
{
#pragma unroll
    for (int c = 0; c < DIM_PAD / 8; ++c)
        st_shared_16_at(part_s + c * 2048, make_uint4(__float_as_uint(o[4 * c]), __float_as_uint(o[4 * c + 1]),
                                                      __float_as_uint(o[4 * c + 2]), __float_as_uint(o[4 * c + 3])));
}

__device__ __forceinline__ float sum_of_row(const float (&o)[O_REGS], const softmax_rows &rows, int h)
{
    return SUM_BY_MMA ? o[O_REGS - 4 + 2 * h] : quad_sum(rows.sum[h]);
}

/* Of each row one number. */
__device__ __forceinline__ void put_rows(unsigned row_s, float x, float y, int thread)
{
    if (thread % 4 == 0)
        asm volatile("st.shared.f32 [%0], %1;\n\tst.shared.f32 [%0 + 32], %2;" ::"r"(row_s), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void take_rows(float (&x)[2], unsigned row_s)
{
    asm volatile("ld.shared.f32 %0, [%2];\n\tld.shared.f32 %1, [%2 + 32];" : "=f"(x[0]), "=f"(x[1]) : "r"(row_s));
}

__device__ __forceinline__ void ld_shared_16(uint4 &x, unsigned from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from));
}

/* all += weight * part */
__device__ __forceinline__ void add_part(float (&all)[DIM_PAD / 2], unsigned part_s, const float (&weight)[2])
{
#pragma unroll
    for (int c = 0; c < DIM_PAD / 8; ++c) {
        uint4 in;
        ld_shared_16(in, part_s + c * 2048);
        const unsigned word[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            all[4 * c + i] = fmaf(__uint_as_float(word[i]), weight[i / 2], all[4 * c + i]);
    }
}

/* A warp's 16 rows through shared memory, where Q was, so that each store writes whole lines. */
__device__ __forceinline__ void store_rows(__half *o_g, const float (&o)[DIM_PAD / 2], const fa_params &p, int row,
                                           int column, unsigned q_s, int thread)
{
    const int lane = thread % 32;
    const unsigned rows_s = q_s + thread / 32 * 16 * BOX_ROW_BYTES;
    const unsigned to = rows_s + lane % 16 * BOX_ROW_BYTES, from = rows_s + lane / 8 * BOX_ROW_BYTES;
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c) {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word[i] = pack_half2(o[8 * c + 2 * i], o[8 * c + 2 * i + 1]);
        stmatrix_x4_at(to + c / 4 * 64 * BOX_ROW_BYTES + ((c % 4 * 2 + lane / 16) ^ (lane % 8)) * 16, word);
    }
    __syncwarp();
    uint4 out[DIM_PAD / 16];
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c)
        ld_shared_16(out[c],
                     from + (c / 4 * 64 + c % 4 * 4) * BOX_ROW_BYTES + ((lane % 8) ^ (c % 2 * 4 + lane / 8)) * 16);
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c)
        if (row + c % 4 * 4 < p.seq_q && c / 4 * 64 + column < FA_DIM)
            st_global_16(o_g + c % 4 * 4 * p.o_stride_s + c / 4 * 64, out[c]);
}

extern "C" __global__ void __launch_bounds__(threads, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    __shared__ u64 bars_s[2 * SLOTS + 1];
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4, thread = threadIdx.x % 128;
    const int loads = warp - (FA_WARPS - 4); /* which ones, if 0 to 2 */
    constexpr int ones_offset = Q_TILE_BYTES + SLOTS * SLOT_BYTES;
    const unsigned q_s = smem_address(base_s), bars = smem_address(bars_s);
    const layout at = {q_s, q_s + Q_TILE_BYTES, q_s + ones_offset, bars, bars + 16 * SLOTS};
#pragma unroll
    for (int what = load_q_k; what <= load_v; ++what)
        if (loads == what && elect_one())
            prepare_loads(p, at, what);
    __syncwarp();
    if (loads == load_q_k)
        bar_arrive(bar_ready, threads);
    const block_tile tile = tile_of_block(p);
    if (loads == load_q_k && elect_one()) {
        mbarrier_arrive_expect(at.q_bar, Q_TILE_BYTES);
        tma_load_boxes(at.q, &p.q_map, at.q_bar, 64, tile.row0, tile.head, tile.batch);
        load_tiles(&p.k_map, at, tile, 0, GROUPS, 0);
    }
    if (SUM_BY_MMA && loads == 3) {
        const uint4 ones = make_uint4(0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            st_shared_16_at(at.ones + thread % 32 * 16 + i * 512, ones);
        fence_async_proxy();
    }
    __syncwarp();
    if (loads != load_q_k)
        bar_sync(bar_ready, threads);
    if (loads == load_k && elect_one())
        load_tiles(&p.k_map, at, tile, GROUPS, SLOTS, 0);
    if (loads == load_v && elect_one())
        load_tiles(&p.v_map, at, tile, 0, SLOTS, 1);
    __syncwarp();

    /* While the loads are on their way: where the thread's output goes; the scale, by a shuffle, or ptxas would load it
     * where it is used first. */
    const float scale_log2 = __shfl_sync(0xffffffffu, p.scale * 1.44269504f, 0);
    const int row = thread / 32 * 16 + thread % 32 / 4;
    const int out_row = tile.row0 + thread / 32 * 16 + thread % 32 / 8, out_column = thread % 8 * 8;
    const bool last = group == GROUPS - 1;
    __half *o_g = nullptr;
    if (last) {
        o_g = static_cast<__half *>(p.o) + tile.batch * p.o_stride_b + tile.head * p.o_stride_h +
              out_row * p.o_stride_s + out_column;
        asm volatile("" : "+l"(o_g));
    }

    float o[O_REGS];
    softmax_rows rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    if (group < tile.key_tiles) {
        attend(p, at, tile, o, rows, scale_log2, group, thread);
    } else {
#pragma unroll
        for (int i = 0; i < O_REGS; ++i)
            o[i] = 0.0f;
    }
    /* compute-sanitizer counts barriers whatever their numbers: of the last warpgroup, without keys, one more, or it reports
     * the maxima; with fewer refills as many as the first warpgroup. */
    if (last && group >= tile.key_tiles)
        bar_sync(bar_group + group, 128);
    if (tile.key_tiles > SLOTS && (tile.key_tiles - 1) % GROUPS < group) {
        bar_sync(bar_group + group, 128);
        bar_sync(bar_group + group, 128);
    }

    /* Under the last product: where things go, and the maxima. */
    constexpr int part_offset = PARTS_APART ? LOAD_BYTES : Q_TILE_BYTES;
    unsigned part_s = q_s + part_offset + thread * 16, row_s = q_s + ROW_OFFSET + row * 4;
    if (!last) {
        part_s += group * PART_STRIDE;
        row_s += group * 512;
        asm volatile("" : "+r"(part_s), "+r"(row_s));
        put_rows(row_s, rows.max[0], rows.max[1], thread);
        bar_arrive(bar_maxima, threads);
        wgmma_wait<0>();
        fence_operand(o);
        if (!PARTS_APART)
            bar_sync(bar_group + group, 128);
        put_part(o, part_s);
        put_rows(row_s + 256, sum_of_row(o, rows, 0), sum_of_row(o, rows, 1), thread);
        bar_arrive(bar_parts + group, 256);
        return;
    }
    float weight[GROUPS][2], all[DIM_PAD / 2], sum[2], top[2] = {rows.max[0], rows.max[1]};
    if (GROUPS > 1)
        bar_sync(bar_maxima, threads);
#pragma unroll
    for (int w = 0; w < GROUPS - 1; ++w)
        take_rows(weight[w], row_s + w * 512);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        weight[GROUPS - 1][h] = rows.max[h];
#pragma unroll
        for (int w = 0; w < GROUPS - 1; ++w)
            top[h] = fmaxf(top[h], weight[w][h]);
#pragma unroll
        for (int w = 0; w < GROUPS; ++w)
            weight[w][h] = exp2_approx(weight[w][h] - top[h]);
    }
    wgmma_wait<0>();
    fence_operand(o);
#pragma unroll
    for (int i = 0; i < DIM_PAD / 2; ++i)
        all[i] = o[i] * weight[GROUPS - 1][i / 2 % 2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
        sum[h] = weight[GROUPS - 1][h] * sum_of_row(o, rows, h);
#pragma unroll
    for (int w = 0; w < GROUPS - 1; ++w) {
        float of_part[2];
        bar_sync(bar_parts + w, 256);
        take_rows(of_part, row_s + w * 512 + 256);
        add_part(all, part_s + w * PART_STRIDE, weight[w]);
        sum[0] = fmaf(of_part[0], weight[w][0], sum[0]);
        sum[1] = fmaf(of_part[1], weight[w][1], sum[1]);
    }
    const float inverse[2] = {inverse_or_zero(sum[0]), inverse_or_zero(sum[1])};
#pragma unroll
    for (int i = 0; i < DIM_PAD / 2; ++i)
        all[i] *= inverse[i / 2 % 2];
    store_rows(o_g, all, p, out_row, out_column, at.q, thread);
}
