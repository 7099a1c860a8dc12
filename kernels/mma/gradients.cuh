/* What the backward kernels on tensor cores do around fa_kernel: fa_before makes a row's numbers and clears the sums of
 * dQ, fa_after rounds the sums to dQ and sums dsinks.
 *
 * The workspace has four things for each row of each query head. An FP32 row of dQ has DIM16 columns; those past FA_DIM
 * stay zero. Then come log-sum-exp times log2 e, delta = sum of dO O, and a turn of the part of dQ that begins with
 * this row. The rows of a K/V head's query heads follow each other. With pack_heads in FA_KERNEL_INFO, FA_M rows for
 * each tile of the launch are enough. */
#pragma once

#include "mma/tile.cuh"
#include "shared/score.cuh"

#ifndef WHOLE_HEADS /* a block has all keys of a head, and makes whole dQ, in one order always */
#define WHOLE_HEADS false
#endif
constexpr bool DETERMINISTIC = (FA_FEATURES & FA_FEATURE_DETERMINISTIC) != 0 && !WHOLE_HEADS; /* by turns */
constexpr int WORKSPACE_BYTES_PER_ROW = DIM16 * 4 + 12, MANY_TILES = 32; /* of keys: their turns take long */

/* The rows of one query head of a sequence. */
struct gradient_rows {
    float *dq_g; /* [rows][DIM16] */
    float *lse2_g, *delta_g;
    unsigned *turn_g;
    fa_i64 all, first; /* rows of all heads; those before this one */
};

__device__ __forceinline__ gradient_rows gradients_of(const fa_params &p, const sequence &seq, int head,
                                                      unsigned kv_head, unsigned group)
{
    const fa_i64 all = static_cast<fa_i64>(p.tiles) * FA_M, rows_of_head = HAS_VARLEN ? p.total_q : p.seq_q;
    const fa_i64 unit = (HAS_VARLEN ? 0 : static_cast<fa_i64>(seq.batch) * p.kv_heads) + kv_head;
    const fa_i64 first =
        unit * (WHOLE_HEADS ? group : 1) * p.tiles_m * FA_M + (head - kv_head * group) * rows_of_head + seq.first_q;
    float *workspace_g = static_cast<float *>(p.workspace), *rows_g = workspace_g + all * DIM16 + first;
    return {
        workspace_g + first * DIM16, rows_g, rows_g + all, reinterpret_cast<unsigned *>(rows_g + 2 * all), all, first};
}

__device__ __forceinline__ gradient_rows gradients_of(const fa_params &p, const sequence &seq, int head)
{
    const unsigned group = static_cast<unsigned>(p.heads) / static_cast<unsigned>(p.kv_heads);
    return gradients_of(p, seq, head, static_cast<unsigned>(head) / group, group);
}

/* Groups of 8 columns change places in a box: four neighbouring rows fall in different banks of shared memory. */
__device__ __forceinline__ int dq_place(int row, int column, int columns)
{
    return column ^ (row & (columns % 32 == 0 ? 3 : 1)) * 8;
}

/* Boxes of 16 columns are transposed: their sums lie as accumulators of dQ^T do, each 8 rows of a head as
 * [8 columns][4 pairs of rows][2: the column, and 8 further on][2 rows]. Rows after the last whole 8 are plain. */
#ifndef DQ_BOX
#define DQ_BOX 0
#endif
#ifndef DQ_ALIGNED /* rows are on 16 bytes, always */
#define DQ_ALIGNED (DQ_BOX > 0)
#endif
#ifndef DQ_BY_LANES /* in whole 8 rows: [2: the column, and 8 further on][2 rows][8 columns][4 pairs of rows] */
#define DQ_BY_LANES false
#endif
#ifndef TAKES_ORDERS /* DRAWS and BACK */
#define TAKES_ORDERS false
#endif
constexpr bool TRANSPOSED = DQ_BOX == 16, ALIGNED = DQ_ALIGNED;
/* Blocks of fa_before and fa_after that share a multiprocessor: their loads are what takes time. */
constexpr int BLOCKS_AROUND = THREADS > 1152 ? 1 : 1152 / THREADS;

/* WHOLE_ROWS: under a causal window of at most a tile of keys, two neighbouring tiles of keys are all that a query tile
 * sees. A block that goes from key tile to key tile has whole dQ, and rounds it itself. */
constexpr bool WHOLE_ROWS = TRANSPOSED && FA_M == 128 && FA_N == 128 && FA_CAUSAL && HAS_WINDOW && !HAS_CHUNK &&
                            !HAS_VARLEN && !DETERMINISTIC && FA_SPLITS == 1;
/* DRAWS: a block for each multiprocessor draws the next one's number, counted in the first row's turn. Some row sees
 * each key, so that what is drawn has tiles.
 * BACK, deterministic, with the causal mask alone: every other group of heads goes from the first keys to the last, its
 * rows from the last to the first, so that both end together. */
constexpr bool DRAWS =
    TAKES_ORDERS && !DETERMINISTIC && !HAS_VARLEN && !HAS_FIRST_KEY && FA_SPLITS == 1 && FA_DIM > 64 && FA_DIM <= 128;
constexpr bool BACK = TAKES_ORDERS && DETERMINISTIC && FA_CAUSAL && !HAS_FIRST_KEY && !HAS_VARLEN && FA_SPLITS == 1;
__device__ __forceinline__ bool has_whole_rows(const fa_params &p)
{
    return WHOLE_ROWS && p.window_left > 0 && p.window_left <= FA_N && p.seq_q == p.seq_kv && p.heads == p.kv_heads;
}

/* From where plain rows have a sum of dQ. A kernel that defines DQ_BOX has a box of [rows of all heads][columns] for
 * each so many columns: a tile's rows of a box are one piece of memory. */
__device__ __forceinline__ fa_i64 dq_moved(const gradient_rows &rows, int row, int column)
{
#if DQ_BOX
    const int box = column / DQ_BOX * DQ_BOX, columns = smaller(DIM16 - box, DQ_BOX);
    return box * rows.all + (rows.first + row) * (columns - DIM16) +
           (TRANSPOSED ? column - box : dq_place(row, column - box, columns)) - column;
#else
    return 0;
#endif
}

/* f(sequence, head, row) for every query row, by groups of GROUP lanes. A block takes neighbouring rows, the first the
 * last ones, as L2 holds what the launch before ended with. The lanes of a warp call together; exists is false where a
 * group has no row left. ROWS: so many at once; `row` counts them. */
template <int GROUP, int ROWS = 1, class F>
__device__ __forceinline__ void for_each_row(const fa_params &p, const F &f)
{
    constexpr unsigned OF_WARP = WARP_SIZE / GROUP;
    for (int batch = 0; batch < (HAS_VARLEN ? p.batch : 1); ++batch) {
        sequence seq = sequence_of(p, batch);
        const unsigned rows_of_head = ceil_div(seq.seq_q, ROWS);
        const unsigned rows = (HAS_VARLEN ? 1 : p.batch) * p.heads * rows_of_head;
        const unsigned share = ((rows + gridDim.x - 1) / gridDim.x + OF_WARP - 1) / OF_WARP * OF_WARP;
        const unsigned begin = (gridDim.x - 1 - blockIdx.x) * share, end = min(begin + share, rows);
        for (unsigned at = begin + threadIdx.x / WARP_SIZE * OF_WARP; at < end; at += FA_WARPS * OF_WARP) {
            const unsigned mine = at + threadIdx.x % WARP_SIZE / GROUP, i = min(mine, rows - 1),
                           unit = i / rows_of_head;
            if (!HAS_VARLEN)
                seq.batch = static_cast<int>(unit / p.heads);
            f(seq, static_cast<int>(unit % p.heads), static_cast<int>(i - unit * rows_of_head), mine < rows);
        }
    }
}

/* 8 elements of a row, at any address. */
__device__ __forceinline__ void read_elements(float (&f)[8], const fa_element *src_g, bool aligned)
{
    if (aligned) {
        read_floats(f, src_g);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
        f[i] = static_cast<float>(src_g[i]);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, BLOCKS_AROUND) fa_before(const __grid_constant__ fa_params p)
{
    constexpr int GROUP = 8;
    const fa_i64 *of_dout = p.grad_stride[0];
    const bool aligned = ALIGNED || rows_aligned<8>(p.o, HAS_VARLEN ? 0 : p.o_stride_b, p.o_stride_h, p.o_stride_s) &&
                                        rows_aligned<8>(p.dout, HAS_VARLEN ? 0 : of_dout[0], of_dout[1], of_dout[2]);
    const int lane = threadIdx.x % GROUP;
    for_each_row<GROUP>(p, [&](const sequence &seq, int head, int row, bool exists) {
        const gradient_rows rows = gradients_of(p, seq, head);
        const fa_element *o_g =
            query_rows(p.o, seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, head) + row * p.o_stride_s;
        const fa_element *dout_g = query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], head) + row * of_dout[2];
        float delta = 0.0f;
        for (int col = lane * 8; col < FA_DIM_V; col += GROUP * 8) {
            float o_r[8], dout_r[8];
            read_elements(o_r, o_g + col, aligned);
            read_elements(dout_r, dout_g + col, aligned);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                delta = fmaf(o_r[i], dout_r[i], delta);
        }
        delta = warp_sum<GROUP>(delta);
        if (!exists)
            return;
        for (int col = lane * 4; col < DIM16 && !WHOLE_HEADS && !has_whole_rows(p); col += GROUP * 4)
            st_global_16(rows.dq_g + row * static_cast<fa_i64>(DIM16) + col + dq_moved(rows, row, col),
                         make_uint4(0, 0, 0, 0));
        const fa_i64 *of_dq = p.grad_stride[1];
        if (WHOLE_HEADS && lane * 8 < FA_DIM && keys_seen(p, seq, row).end <= 0) /* no block has such a row */
            st_global_16(query_rows(p.dq, seq, of_dq[0], of_dq[1], of_dq[2], head) + row * of_dq[2] + lane * 8,
                         make_uint4(0, 0, 0, 0));
        if (lane == 0) {
            const float lse = p.lse[(HAS_VARLEN ? 0 : seq.batch * p.lse_stride_b) + head * p.lse_stride_h +
                                    (seq.first_q + row) * p.lse_stride_s];
            rows.lse2_g[row] = lse > -INF ? lse * LOG2_E : INF; /* a row that sees no key: its probabilities are 0 */
            rows.delta_g[row] = delta;
            if (DRAWS && rows.first + row == 0)
                *rows.turn_g = 0;
        }
    });
}

/* The same for transposed boxes: a warp takes 8 rows, a lane two of them in 8 columns. */
__device__ __forceinline__ void round_transposed_dq(const fa_params &p)
{
    const fa_i64 *of_dq = p.grad_stride[1];
    [[maybe_unused]] const bool aligned =
        ALIGNED || rows_aligned<8>(p.dq, HAS_VARLEN ? 0 : of_dq[0], of_dq[1], of_dq[2]);
    const int lane = threadIdx.x % WARP_SIZE, pair = lane % 8 / 2, half = lane % 2;
    for_each_row<WARP_SIZE, 8>(p, [&](const sequence &seq, int head, int eight, bool) {
        const gradient_rows rows = gradients_of(p, seq, head);
        const int row0 = eight * 8, count = min(seq.seq_q - row0, 8);
        fa_element *to_g = query_rows(p.dq, seq, of_dq[0], of_dq[1], of_dq[2], head) + (row0 + 2 * pair) * of_dq[2];
#pragma unroll
        for (int i = 0; i < ceil_div(DIM16, 64); ++i) {
            const int box = i * 64 + lane / 8 * 16, column = box + half * 8;
            if (column >= FA_DIM)
                break;
            const float *box_g = rows.dq_g + row0 * static_cast<fa_i64>(DIM16) + box + dq_moved(rows, row0, box);
            float dq[2][8]; /* of two rows */
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if constexpr (DQ_BY_LANES) {
                    const float *two_g = box_g + half * 64 + j * 4 + pair;
                    dq[0][j] = count == 8 ? two_g[0] : 0, dq[1][j] = count == 8 ? two_g[32] : 0;
                    continue;
                }
                const float2 two =
                    count == 8 ? *reinterpret_cast<const float2 *>(box_g + j * 16 + lane % 8 * 2) : make_float2(0, 0);
                dq[0][j] = two.x, dq[1][j] = two.y;
            }
            for (int j = 0; count < 8 && j < 16; ++j)
                dq[j / 8][j % 8] = 2 * pair + j / 8 < count ? box_g[(2 * pair + j / 8) * 16 + half * 8 + j % 8] : 0;
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const uint4 words = {pack_elements(dq[r][0] * p.scale, dq[r][1] * p.scale),
                                     pack_elements(dq[r][2] * p.scale, dq[r][3] * p.scale),
                                     pack_elements(dq[r][4] * p.scale, dq[r][5] * p.scale),
                                     pack_elements(dq[r][6] * p.scale, dq[r][7] * p.scale)};
                if (2 * pair + r < count && ALIGNED)
                    st_global_16(to_g + r * of_dq[2] + column, words);
                else if (2 * pair + r < count)
                    store_chunk(to_g + r * of_dq[2] + column, words, aligned);
            }
        }
        if (DETERMINISTIC && lane < count)
            rows.turn_g[row0 + lane] = 0;
    });
}

/* dQ = scale times its sum. Turns become 0 again. */
__device__ __forceinline__ void round_dq(const fa_params &p)
{
    constexpr int GROUP = 8;
    const fa_i64 *of_dq = p.grad_stride[1];
    const bool aligned = ALIGNED || rows_aligned<8>(p.dq, HAS_VARLEN ? 0 : of_dq[0], of_dq[1], of_dq[2]);
    const int lane = threadIdx.x % GROUP;
    for_each_row<GROUP>(p, [&](const sequence &seq, int head, int row, bool exists) {
        const gradient_rows rows = gradients_of(p, seq, head);
        fa_element *to_g = query_rows(p.dq, seq, of_dq[0], of_dq[1], of_dq[2], head) + row * of_dq[2];
        for (int col = lane * 8; exists && col < FA_DIM; col += GROUP * 8) {
            const float *from_g = rows.dq_g + row * static_cast<fa_i64>(DIM16) + col + dq_moved(rows, row, col);
            const float4 a = *reinterpret_cast<const float4 *>(from_g),
                         b = *reinterpret_cast<const float4 *>(from_g + 4);
            const uint4 words = {
                pack_elements(a.x * p.scale, a.y * p.scale), pack_elements(a.z * p.scale, a.w * p.scale),
                pack_elements(b.x * p.scale, b.y * p.scale), pack_elements(b.z * p.scale, b.w * p.scale)};
            store_chunk(to_g + col, words, aligned);
        }
        if (DETERMINISTIC && exists && lane == 0)
            rows.turn_g[row] = 0;
    });
}

/* dsinks: minus the sum of e^(sink - LSE) delta over the rows of a head, a block to each head, always in one order. */
__device__ __forceinline__ void sum_dsinks(const fa_params &p)
{
    __shared__ float parts_s[FA_WARPS];
    for (int head = blockIdx.x; p.dsinks != nullptr && head < p.heads; head += gridDim.x) {
        const float sink = p.sinks[head] * LOG2_E;
        float sum = 0.0f;
        for (int batch = 0; batch < p.batch; ++batch) {
            const sequence seq = sequence_of(p, batch);
            const gradient_rows rows = gradients_of(p, seq, head);
            for (int row = threadIdx.x; row < seq.seq_q; row += THREADS)
                sum -= exp2_approx(sink - rows.lse2_g[row]) * rows.delta_g[row];
        }
        sum = warp_sum(sum);
        __syncthreads();
        if (threadIdx.x % WARP_SIZE == 0)
            parts_s[threadIdx.x / WARP_SIZE] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int warp = 1; warp < FA_WARPS; ++warp)
                sum += parts_s[warp];
            p.dsinks[head] = sum;
        }
    }
}

/* What a block works on: FA_N keys of a K/V head from key0 on, and its heads' query tiles [begin, end). */
struct key_block {
    sequence seq;
    int kv_head, key0, begin, end;
    bool aligned, up; /* rows that are read start at multiples of 16 bytes; query tiles go up */
};

/* False: no work. FA_SPLITS blocks in a row have the same keys.
 * DETERMINISTIC: the last keys of a head first. So a block waits only for blocks before it (turn_of). As many heads as
 * fill the multiprocessors go side by side, or twice as many. Their blocks end in the order in which the next ones
 * begin, so only the first ones wait. order: changes a block's K/V head and tile, of so many, where they are not
 * deterministic. GIVEN: the given-th of so many blocks, without splits. */
template <bool GIVEN = false, class ORDER>
__device__ __forceinline__ bool find_keys(key_block &block, const fa_params &p, const ORDER &order, unsigned blocks = 0,
                                          unsigned given = 0)
{
    const unsigned heads = (HAS_VARLEN ? 1 : p.batch) * p.kv_heads,
                   tiles = (GIVEN ? blocks : gridDim.x) / FA_SPLITS / heads;
    const unsigned at = GIVEN ? given : blockIdx.x / FA_SPLITS;
    unsigned unit = at / tiles;
    int tile = at - unit * tiles;
    if constexpr (DETERMINISTIC) {
        const unsigned side = max(1u, (TRANSPOSED && tiles > MANY_TILES ? 2 : 1) * p.sm_count / (tiles * FA_SPLITS));
        const unsigned first = at / (side * tiles) * side, i = at - first * tiles, count = min(side, heads - first);
        unit = first + i % count, tile = tiles - 1 - i / count;
        if constexpr (BACK) {
            block.up = first / side % 2 == 0;
            tile = block.up ? tile : i / count;
        }
    } else {
        order(heads, tiles, at, unit, tile);
    }
    block.kv_head = unit % p.kv_heads;
    if constexpr (HAS_VARLEN) {
        fa_params keys = p;
        keys.start_q = p.start_kv, keys.used_q = p.used_kv;
        if (!find_sequence<FA_N>(block.seq, tile, keys))
            return false;
        block.seq = sequence_of(p, block.seq.batch);
    } else {
        block.seq = sequence_of(p, unit / p.kv_heads);
    }
    block.key0 = tile * FA_N;
    const key_range rows = rows_that_see(p, block.seq, block.key0, min(block.key0 + FA_N, block.seq.seq_kv) - 1);
    block.begin = rows.first / FA_M;
    block.end = rows.first < rows.end ? ceil_div(rows.end, FA_M) : block.begin;
    const fa_i64 *of_dout = p.grad_stride[0];
    block.aligned = rows_aligned<8>(p.q, HAS_VARLEN ? 0 : p.q_stride_b, p.q_stride_h, p.q_stride_s) &&
                    rows_aligned<8>(p.k, HAS_VARLEN ? 0 : p.k_stride_b, p.k_stride_h, p.k_stride_s) &&
                    rows_aligned<8>(p.v, HAS_VARLEN ? 0 : p.v_stride_b, p.v_stride_h, p.v_stride_s) &&
                    rows_aligned<8>(p.dout, HAS_VARLEN ? 0 : of_dout[0], of_dout[1], of_dout[2]);
    return true;
}

/* Which of the tiles of keys that add to the rows from row0 on the block's is, from the last to the first. Blocks go up
 * from the first rows that see their keys. Under a mask those of later keys begin further up, and are at all rows
 * before: nothing waits for blocks that begin together. */
__device__ __forceinline__ unsigned turn_of(const fa_params &p, const key_block &block, int row0)
{
    if constexpr (!DETERMINISTIC)
        return 0;
    const int at = block.key0 / FA_N;
    if (BACK && !block.up)
        return at;
    const int last_row = min(row0 + FA_M, block.seq.seq_q) - 1;
    return (keys_seen_by_any(p, block.seq, row0, last_row).end - 1) / FA_N - at;
}

/* Waits until so many turns are over; one thread calls. */
__device__ __forceinline__ void wait_for_turn(const unsigned *turn_g, unsigned turns)
{
    while (load_acquire(turn_g) < turns) {
    }
}

#if !WHOLE_HEADS || (FA_FEATURES & FA_FEATURE_SINK)
extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, BLOCKS_AROUND) fa_after(const __grid_constant__ fa_params p)
{
    if (!TRANSPOSED)
        round_dq(p);
    else if (!WHOLE_HEADS && !has_whole_rows(p))
        round_transposed_dq(p);
    if constexpr (HAS_SINK)
        sum_dsinks(p);
}
#endif
