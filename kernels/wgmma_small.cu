/* wgmma_small: the wgmma kernel for grids too small to fill the device.
 *
 * Idea: a block owns 64 query rows and splits their keys over its warpgroups: of G warpgroups, warpgroup w takes key
 *   tiles w, w + G, w + 2 G, ... Three threads start all loads that fit, in the order of use; later a warpgroup
 *   refills its own slots. At the end the last warpgroup merges the parts (maximum, sum, O) of the others, from shared
 *   memory, with its own, from registers. A block runs for a few thousand cycles and mostly waits, so what can be
 *   computed while loads or products are on their way is computed there.
 * Softmax: as wgmma.   Builds on: wgmma.
 * Knobs: m = 64; n keys per tile; warps 4, 8, 12, 16 = 4 per warpgroup; stages: tiles in flight per warpgroup.
 * Shared memory: Q [boxes][64][64], later O; slots [stages * warpgroups] of K [boxes][n][64] and V likewise, ones;
 *   parts of O; maximum and sum of their rows.
 * Limits: as wgmma. */
#include "wgmma/softmax.cuh"

constexpr int GROUPS = FA_WARPS / 4;
constexpr int BLOCK_THREADS = FA_WARPS * 32;
constexpr int SLOTS = GROUPS * FA_STAGES;
constexpr int SLOT_BYTES = K_TILE_BYTES + V_TILE_BYTES;
constexpr int PART_BYTES = 64 * DIM_PAD * 4;
constexpr int LOAD_BYTES = Q_TILE_BYTES + SLOTS * SLOT_BYTES + ONES_BYTES;
/* Parts of O have their own memory if there is enough, else they replace the keys of their warpgroup. */
constexpr bool PARTS_APART = LOAD_BYTES + (GROUPS - 1) * PART_BYTES <= 224 * 1024;
constexpr int PART_STRIDE = PARTS_APART ? PART_BYTES : SLOT_BYTES;
constexpr int ROW_OFFSET = LOAD_BYTES + (PARTS_APART ? (GROUPS - 1) * PART_BYTES : 0);
constexpr int SMEM_BYTES = ROW_OFFSET + (GROUPS - 1) * 64 * 8;

static_assert(FA_MAXREG == 0, "wgmma_small: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_WARPS % 4 == 0 && GROUPS >= 1 && GROUPS <= 4, "warps: 4, 8, 12 or 16 (warpgroups that share keys)");
static_assert(PRODUCT_REGISTERS + SPARE_REGISTERS <= (GROUPS == 4   ? 128
                                                      : GROUPS == 3 ? 168
                                                                    : 255),
              "n: S, O and P of this n and dim do not fit the registers that so many warps leave a thread");
static_assert(FA_M == 64, "m must be 64");
static_assert(FA_STAGES >= 1 && FA_STAGES <= 4, "stages: 1 to 4");
static_assert(FA_SPLITS <= 1, "wgmma_small does not split keys over blocks");
static_assert(PART_BYTES <= SLOT_BYTES, "a part of O fits where a tile of K and V was");

/* O is stored 16 bytes at a time, without its map: with a map an O off 16 bytes is refused before the launch. */
FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_TILES, .tma_q_rows = 64,
               .tma_k_rows = FA_N, .tma_v_rows = FA_N, .tma_o_rows = 64, .tma_cols = 64, .writes_lse = FA_LSE,
               .serves_bf16 = 1);

/* Named barriers. BAR_GROUP + w: within warpgroup w. BAR_SEQUENCE + w: warpgroup w waits for w - 1. The last warpgroup
 * waits at BAR_MAXIMA for the others' maxima and at BAR_PARTS + w for the part of w. */
enum { BAR_READY = 0, BAR_GROUP = 1, BAR_SEQUENCE = 5, BAR_MAXIMA = 9, BAR_PARTS = 10 };

/* Addresses in shared memory. bars: K and V of each slot in turn, then Q. */
struct shared_layout {
    unsigned q_s, ring_s, ones_s, bars, q_bar;
};

/* Three warps of the last warpgroup, whose keys come last, start the loads. Each starts what it prepared: Q and the
 * first K of every warpgroup; the other tiles of K that fit; the tiles of V that fit. */
enum { LOAD_Q_K = 0, LOAD_K = 1, LOAD_V = 2 };

__device__ __forceinline__ void prepare_loads(const fa_params &p, const shared_layout &at, int what)
{
    if (what == LOAD_Q_K) {
        tma_prefetch_map(&p.q_map);
        tma_prefetch_map(&p.k_map);
        mbarrier_init(at.q_bar, 1);
    } else if (what == LOAD_V) {
        tma_prefetch_map(&p.v_map);
    }
#pragma unroll
    for (int i = what == LOAD_K ? GROUPS : 0; i < (what == LOAD_Q_K ? GROUPS : SLOTS); ++i)
        mbarrier_init(at.bars + 16 * i + (what == LOAD_V ? 8 : 0), 1);
    mbarrier_init_fence();
}

__device__ __forceinline__ void load_tiles(const fa_tensor_map *map, const shared_layout &at, const block_tile &tile,
                                           int first, int end, int v)
{
    const int stop = min(end, tile.key_tiles);
#pragma unroll 1
    for (int n = first; n < stop; ++n)
        load_tile<FA_N>(at.ring_s + n * SLOT_BYTES + v * K_TILE_BYTES, 0, at.bars + 16 * n + 8 * v, map, 0, n,
                        tile.kv_head, tile.seq.batch);
}

/* mbarrier_wait, without its counter of tries when the first one succeeds. */
__device__ __forceinline__ void await(unsigned bar, unsigned parity)
{
    if (!mbarrier_try_wait(bar, parity))
        mbarrier_wait(bar, parity);
}

/* The warpgroup has read tile n of K or V for the last time: loads the next one for its slot, if any. */
__device__ __forceinline__ void refill(const fa_tensor_map *map, unsigned to, unsigned bar, const block_tile &tile,
                                       int n, int group, int thread)
{
    if (n + SLOTS >= tile.key_tiles)
        return;
    bar_sync(BAR_GROUP + group, 128);
    if (thread == 0)
        load_tile<FA_N>(to, 0, bar, map, 0, n + SLOTS, tile.kv_head, tile.seq.batch);
}

/* Attention of the warpgroup's rows to its keys. The softmax of a tile runs under P V of the one before. Afterwards
 * rows is complete, and o_r when the last product, which still runs, has ended. */
__device__ __forceinline__ void attend(const fa_params &p, const shared_layout &at, const block_tile &tile,
                                       float (&o_r)[O_REGS], softmax_rows &rows, float scale_log2, int group,
                                       int thread)
{
    const unsigned q_word = descriptor_start(at.q_s);
    float s_r[FA_N / 2], rescale_r[2];
    int slot = group; /* its slots: group, group + groups, ... */
    unsigned phase = 0, p_r[FA_N / 4], k_s = at.ring_s + group * SLOT_BYTES, k_bar = at.bars + 16 * group;
    /* Warpgroups issue their first products one after the other. Issued together they would end together, and all
     * warpgroups would compute exponentials at the same time. */
    const bool in_sequence = tile.key_tiles >= GROUPS;
    await(at.q_bar, 0);
    await(k_bar, 0);
    if (in_sequence && group > 0)
        bar_sync(BAR_SEQUENCE + group, 256);
    fence_operand(s_r);
    wgmma_fence();
    issue_qk(s_r, q_word, descriptor_start(k_s)); /* S = Q K^T of the first key tile */
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(s_r);
    if (in_sequence && group < GROUPS - 1)
        bar_arrive(BAR_SEQUENCE + group + 1, 256);
    if (GROUPS == 1) /* the warp of LOAD_Q_K has not synchronised with the one that initialised V's barriers */
        bar_sync(BAR_GROUP + group, 128);
    mask_tile(p, s_r, group, tile.row0, thread);
    first_softmax(s_r, rows, scale_log2);
    refill(&p.k_map, k_s, k_bar, tile, group, group, thread);
    pack_p(s_r, p_r);
#pragma unroll 1
    for (int n = group + GROUPS; n < tile.key_tiles; n += GROUPS) {
        const unsigned v_s = k_s + K_TILE_BYTES, v_bar = k_bar + 8, v_phase = phase;
        slot = slot + GROUPS < SLOTS ? slot + GROUPS : group;
        phase ^= slot == group;
        k_s = at.ring_s + slot * SLOT_BYTES;
        k_bar = at.bars + 16 * slot;
        await(k_bar, phase);
        fence_operand(s_r);
        fence_operand(o_r);
        wgmma_fence();
        issue_qk(s_r, q_word, descriptor_start(k_s)); /* S = Q K^T */
        wgmma_commit();
        await(v_bar, v_phase);
        wgmma_fence();
        issue_pv(o_r, p_r, v_descriptor(v_s, at.ones_s), n - GROUPS != group); /* O += P V of the tile before */
        wgmma_commit();
        wgmma_wait<1>(); /* S is complete; its softmax runs under P V */
        fence_operand(s_r);
        mask_tile(p, s_r, n, tile.row0, thread);
        const bool raised = online_softmax(s_r, rows, rescale_r, scale_log2, [&](float(&again)[FA_N / 2]) {
            recompute_s(again, at.q_s, k_s, thread);
            mask_tile(p, again, n, tile.row0, thread);
        });
        fence_operand(s_r);
        if (!SUM_BY_MMA)
            compute_before(__float_as_int(rows.sum[0] + rows.sum[1]));
        wgmma_wait<0>();
        fence_operand(o_r);
        if (n - GROUPS + SLOTS < tile.key_tiles) {
            refill(&p.k_map, k_s, k_bar, tile, n, group, thread);
            refill(&p.v_map, v_s, v_bar, tile, n - GROUPS, group, thread);
        }
        if (raised)
            rescale_o(o_r, rescale_r);
        pack_p(s_r, p_r);
    }
    await(k_bar + 8, phase);
    fence_operand(o_r);
    wgmma_fence();
    issue_pv(o_r, p_r, v_descriptor(k_s + K_TILE_BYTES, at.ones_s), group + GROUPS < tile.key_tiles); /* the last */
    wgmma_commit();
}

/* O of this warpgroup's part to shared memory, as the threads hold it. */
__device__ __forceinline__ void put_part(const float (&o)[O_REGS], unsigned part_s)
{
#pragma unroll
    for (int c = 0; c < O_DIM / 8; ++c)
        st_shared_16_at(part_s + c * 2048, make_uint4(__float_as_uint(o[4 * c]), __float_as_uint(o[4 * c + 1]),
                                                      __float_as_uint(o[4 * c + 2]), __float_as_uint(o[4 * c + 3])));
}

__device__ __forceinline__ float sum_of_row(const float (&o)[O_REGS], const softmax_rows &rows, int h)
{
    return SUM_BY_MMA ? o[O_REGS - 4 + 2 * h] : quad_sum(rows.sum[h]);
}

/* Two numbers of each thread's two rows, by one thread of the quad. */
__device__ __forceinline__ void put_rows(unsigned row_s, float x, float y, int thread)
{
    if (thread % 4 == 0)
        st_shared_pair_at(row_s, x, y);
}

/* all += weight * part, for O. */
__device__ __forceinline__ void add_part(float (&all)[DIM_PAD / 2], unsigned part_s, const float (&weight)[2])
{
#pragma unroll
    for (int c = 0; c < O_DIM / 8; ++c) {
        uint4 in;
        ld_shared_16_at(in, part_s + c * 2048);
        const unsigned word[4] = {in.x, in.y, in.z, in.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            all[4 * c + i] = fmaf(__uint_as_float(word[i]), weight[i / 2], all[4 * c + i]);
    }
}

/* A warp's 16 rows through shared memory, where Q was, so that each store writes whole lines. */
__device__ __forceinline__ void store_o_by_lines(fa_element *o_g, const float (&o)[DIM_PAD / 2], const fa_params &p,
                                                 int row, int column, unsigned q_s, int thread)
{
    const int lane = thread % 32;
    const unsigned rows_s = q_s + thread / 32 * 16 * BOX_ROW_BYTES;
    const unsigned to = rows_s + lane % 16 * BOX_ROW_BYTES, from = rows_s + lane / 8 * BOX_ROW_BYTES;
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c) {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word[i] = pack_elements(o[8 * c + 2 * i], o[8 * c + 2 * i + 1]);
        stmatrix_x4_at(to + c / 4 * 64 * BOX_ROW_BYTES + ((c % 4 * 2 + lane / 16) ^ (lane % 8)) * 16, word);
    }
    __syncwarp();
    uint4 out[DIM_PAD / 16];
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c)
        ld_shared_16_at(out[c],
                        from + (c / 4 * 64 + c % 4 * 4) * BOX_ROW_BYTES + ((lane % 8) ^ (c % 2 * 4 + lane / 8)) * 16);
#pragma unroll
    for (int c = 0; c < DIM_PAD / 16; ++c)
        if (row + c % 4 * 4 < p.seq_q && c / 4 * 64 + column < FA_DIM)
            st_global_16(o_g + c % 4 * 4 * p.o_stride_s + c / 4 * 64, out[c]);
}

/* Finds the block's tile and starts its loads. `loads`: which of them this warp starts, LOAD_Q_K to LOAD_V, or none. */
__device__ __forceinline__ block_tile start_loads(const fa_params &p, const shared_layout &at, int loads, int thread)
{
#pragma unroll
    for (int what = LOAD_Q_K; what <= LOAD_V; ++what)
        if (loads == what && elect_one())
            prepare_loads(p, at, what);
    __syncwarp();
    if (loads == LOAD_Q_K)
        bar_arrive(BAR_READY, BLOCK_THREADS);
    const block_tile tile = tile_of_this_block(p);
    if (loads == LOAD_Q_K && elect_one()) {
        load_tile<64>(at.q_s, 0, at.q_bar, &p.q_map, tile.row0, 0, tile.head, tile.seq.batch);
        load_tiles(&p.k_map, at, tile, 0, GROUPS, 0);
    }
    if (SUM_BY_MMA && loads == 3) {
        fill_ones<32>(at.ones_s, thread % 32);
        fence_async_proxy();
    }
    __syncwarp();
    if (loads != LOAD_Q_K)
        bar_sync(BAR_READY, BLOCK_THREADS);
    if (loads == LOAD_K && elect_one())
        load_tiles(&p.k_map, at, tile, GROUPS, SLOTS, 0);
    if (loads == LOAD_V && elect_one())
        load_tiles(&p.v_map, at, tile, 0, SLOTS, 1);
    __syncwarp();
    return tile;
}

/* compute-sanitizer's racecheck counts the barriers that a thread passes, whatever their numbers, and reports a race
 * where counts differ. So a last warpgroup without keys passes one more, and one with fewer refills as many as the
 * first. */
__device__ __forceinline__ void even_out_barriers(const block_tile &tile, int group)
{
    if (group == GROUPS - 1 && group >= tile.key_tiles)
        bar_sync(BAR_GROUP + group, 128);
    if (tile.key_tiles > SLOTS && (tile.key_tiles - 1) % GROUPS < group) {
        bar_sync(BAR_GROUP + group, 128);
        bar_sync(BAR_GROUP + group, 128);
    }
}

/* Every warpgroup but the last hands over its part: the maxima while its last product runs, then O and the sums. */
__device__ __forceinline__ void hand_over(float (&o_r)[O_REGS], const softmax_rows &rows, unsigned part_s,
                                          unsigned row_s, int group, int thread)
{
    part_s += group * PART_STRIDE;
    row_s += group * 512;
    make_opaque(part_s, row_s); /* ptxas would compute the addresses after the product */
    put_rows(row_s, rows.ref[0], rows.ref[1], thread);
    bar_arrive(BAR_MAXIMA, BLOCK_THREADS);
    wgmma_wait<0>();
    fence_operand(o_r);
    if (!PARTS_APART)
        bar_sync(BAR_GROUP + group, 128);
    put_part(o_r, part_s);
    put_rows(row_s + 256, sum_of_row(o_r, rows, 0), sum_of_row(o_r, rows, 1), thread);
    bar_arrive(BAR_PARTS + group, 256);
}

/* For the thread's two rows, while the last product runs: row_max, the largest maximum of all warpgroups, and
 * weight[w] = exp2(maximum of warpgroup w - row_max). */
__device__ __forceinline__ void weigh_parts(float (&weight)[GROUPS][2], float (&row_max)[2], const softmax_rows &rows,
                                            unsigned row_s)
{
    row_max[0] = rows.ref[0], row_max[1] = rows.ref[1];
    if (GROUPS > 1)
        bar_sync(BAR_MAXIMA, BLOCK_THREADS);
#pragma unroll
    for (int w = 0; w < GROUPS - 1; ++w)
        ld_shared_pair_at(weight[w], row_s + w * 512);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        weight[GROUPS - 1][h] = rows.ref[h];
#pragma unroll
        for (int w = 0; w < GROUPS - 1; ++w)
            row_max[h] = fmaxf(row_max[h], weight[w][h]);
#pragma unroll
        for (int w = 0; w < GROUPS; ++w)
            weight[w][h] = exp2_approx(weight[w][h] - row_max[h]);
    }
}

/* The last warpgroup's O, of all parts, divided by the sums. */
__device__ __forceinline__ void merge(float (&all)[DIM_PAD / 2], float (&o_r)[O_REGS], const softmax_rows &rows,
                                      unsigned part_s, unsigned row_s, const fa_params &p, const block_tile &tile,
                                      int thread)
{
    float weight[GROUPS][2], row_max[2], sum[2];
    weigh_parts(weight, row_max, rows, row_s);
    wgmma_wait<0>();
    fence_operand(o_r);
#pragma unroll
    for (int i = O_DIM / 2; i < DIM_PAD / 2; ++i)
        all[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < O_DIM / 2; ++i)
        all[i] = o_r[i] * weight[GROUPS - 1][i / 2 % 2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
        sum[h] = weight[GROUPS - 1][h] * sum_of_row(o_r, rows, h);
#pragma unroll
    for (int w = 0; w < GROUPS - 1; ++w) {
        float of_part[2];
        bar_sync(BAR_PARTS + w, 256);
        ld_shared_pair_at(of_part, row_s + w * 512 + 256);
        add_part(all, part_s + w * PART_STRIDE, weight[w]);
        sum[0] = fmaf(of_part[0], weight[w][0], sum[0]);
        sum[1] = fmaf(of_part[1], weight[w][1], sum[1]);
    }
#if FA_LSE
    const float lse[2] = {log_sum_exp(row_max[0], sum[0]), log_sum_exp(row_max[1], sum[1])};
    store_lse_of_rows(p, lse, tile.seq, tile.head, tile.row0 + thread / 32 * 16, thread % 32);
#endif
    const float inverse[2] = {inverse_of_sum(sum[0]), inverse_of_sum(sum[1])};
#pragma unroll
    for (int i = 0; i < DIM_PAD / 2; ++i)
        all[i] *= inverse[i / 2 % 2];
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, base_s, 1024);
    __shared__ u64 bars_s[2 * SLOTS + 1];
    const int warp = uniform_by_shuffle(threadIdx.x / 32), group = warp / 4, thread = threadIdx.x % 128;
    constexpr int ONES_OFFSET = Q_TILE_BYTES + SLOTS * SLOT_BYTES;
    const unsigned q_s = smem_address(base_s), bars = smem_address(bars_s);
    const shared_layout at = {q_s, q_s + Q_TILE_BYTES, q_s + ONES_OFFSET, bars, bars + 16 * SLOTS};
    const block_tile tile = start_loads(p, at, warp - (FA_WARPS - 4), thread);

    /* While the loads are on their way: where the thread's output goes, and the scale. Without the shuffle ptxas would
     * load the scale where it is used first. */
    const float scale_log2 = __shfl_sync(ALL_LANES, p.scale * LOG2_E, 0);
    const int row = thread / 32 * 16 + thread % 32 / 4;
    const int out_row = tile.row0 + thread / 32 * 16 + thread % 32 / 8, out_column = thread % 8 * 8;
    const bool last = group == GROUPS - 1;
    fa_element *o_g = nullptr;
    if (last) {
        o_g = static_cast<fa_element *>(p.o) + tile.seq.batch * p.o_stride_b + tile.head * p.o_stride_h +
              out_row * p.o_stride_s + out_column;
        make_opaque(o_g);
    }

    float o_r[O_REGS];
    softmax_rows rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
    if (group < tile.key_tiles) { /* per key tile: Q K^T, softmax, P V */
        attend(p, at, tile, o_r, rows, scale_log2, group, thread);
    } else {
        clear(o_r);
    }
    even_out_barriers(tile, group);

    constexpr int PART_OFFSET = PARTS_APART ? LOAD_BYTES : Q_TILE_BYTES;
    const unsigned part_s = q_s + PART_OFFSET + thread * 16, row_s = q_s + ROW_OFFSET + row * 4;
    if (!last) {
        hand_over(o_r, rows, part_s, row_s, group, thread);
        return;
    }
    float all[DIM_PAD / 2];
    merge(all, o_r, rows, part_s, row_s, p, tile, thread);
    store_o_by_lines(o_g, all, p, out_row, out_column, at.q_s, thread);
}
