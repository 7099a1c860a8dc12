/* What the two WMMA kernels share: how warps divide a tile, how tiles lie in shared memory, the pipeline that fills
 * them, the scores of a warp and their softmax, and the sum of the parts at the end.
 *
 * A warp owns one or several groups of 16 query rows. Where there are more warps than row groups, warps form key groups
 * that share out the keys of a tile; each has its own maximum, sum and output. Warps wait for each other only when a
 * tile has landed, and once at the end. */
#pragma once

#include "shared/load.cuh"
#include "shared/schedule.cuh"

#include <mma.h>

namespace wmma = nvcuda::wmma;

/* Largest power of two that is at most x. */
__host__ __device__ constexpr int power_below(int x) { return x < 2 ? 1 : 2 * power_below(x / 2); }

constexpr int DIM_BLOCKS = ceil_div(FA_DIM, 16), DIM_PAD = DIM_BLOCKS * 16;
constexpr int ROW_GROUPS = FA_M / 16;

/* Row group i of a warp: row_unit + i * ROW_UNITS; one past the last does not exist. */
constexpr int WARP_ROW_GROUPS = larger(1, ceil_div(ROW_GROUPS, FA_WARPS));
constexpr int ROW_UNITS = larger(1, ceil_div(ROW_GROUPS, WARP_ROW_GROUPS));
constexpr int KEY_GROUPS = power_below(FA_WARPS / ROW_UNITS); /* warps that share the keys of a row group */
constexpr int WARP_KEYS = FA_N / KEY_GROUPS;

#define WMMA_LIMITS(name)                                                                                        \
    static_assert(FA_SPLITS == 1, name ": SPLITS must be 1");                                                    \
    static_assert(FA_M % 16 == 0 && FA_N % 16 == 0, name ": M and N must be multiples of 16");                   \
    static_assert(FA_STAGES == 1 || FA_STAGES == 2, name ": STAGES must be 1 or 2");                             \
    static_assert(FA_VEC == 1 || FA_VEC == 2 || FA_VEC == 4 || FA_VEC == 8, name ": VEC must be 1, 2, 4 or 8");  \
    static_assert(FA_N % (16 * KEY_GROUPS) == 0, name ": too many WARPS, each needs a 16x16 block of the M x N " \
                                                      "scores")

#if FA_ACC_FP16
using acc_t = __half;
#else
using acc_t = float;
#endif
using frag_rows = wmma::fragment<wmma::matrix_a, 16, 16, 16, fa_element, wmma::row_major>; /* Q, P */
using frag_keys = wmma::fragment<wmma::matrix_b, 16, 16, 16, fa_element, wmma::col_major>; /* K as K^T */
using frag_values = wmma::fragment<wmma::matrix_b, 16, 16, 16, fa_element, wmma::row_major>;
using frag_acc = wmma::fragment<wmma::accumulator, 16, 16, 16, acc_t>;

/* A tile of halves in shared memory that WMMA reads in 16x16 blocks with one leading dimension.
 * SWIZZLE 0: rows padded by 16 bytes, so that eight rows of a block lie in different banks.
 * SWIZZLE 1: no padding, each block on its own 512 bytes (two rows share a bank), at column block XOR row block. */
struct tile_layout {
    static constexpr bool PADDED = true; /* its columns up to DIM_PAD are read */
    static constexpr int STRIDE = DIM_PAD + 8, LDM = FA_SWIZZLE ? 16 : STRIDE;
    static constexpr int MASK = (DIM_BLOCKS & -DIM_BLOCKS) - 1;
    __host__ __device__ static constexpr int bytes(int rows) { return rows * (FA_SWIZZLE ? DIM_PAD : STRIDE) * 2; }
    __device__ static int block(int row_block, int col_block)
    {
        if constexpr (FA_SWIZZLE)
            return (row_block * DIM_BLOCKS + (col_block ^ (row_block & MASK))) * 256;
        else
            return row_block * 16 * STRIDE + col_block * 16;
    }
    /* Block (row_block + j, col_block), j and col_block known to the compiler. */
    __device__ static const fa_element *block_at(const fa_element *tile_s, int row_block, int j, int col_block)
    {
        if constexpr (FA_SWIZZLE)
            return tile_s + block(row_block + j, col_block);
        else
            return tile_s + row_block * (16 * STRIDE) + (j * 16 * STRIDE + col_block * 16);
    }
    __device__ static int offset(unsigned row, unsigned col)
    {
        if constexpr (FA_SWIZZLE)
            return block(row / 16, col / 16) + row % 16 * LDM + col % 16;
        else
            return row * STRIDE + col;
    }
};

/* The order of copies: four rows of a block before the next block, so that the writes of eight lanes fill all banks. */
template <int COLS, int VEC>
struct block_order {
    static constexpr unsigned PER_ROW = 16 / VEC, PER_QUAD = 4 * COLS / VEC, PERIOD = PER_QUAD, PERIOD_ROWS = 4;
    __device__ static int row(unsigned piece) { return piece / PER_QUAD * 4 + piece % (4 * PER_ROW) / PER_ROW; }
    __device__ static int col(unsigned piece) { return piece % PER_QUAD / (4 * PER_ROW) * 16 + piece % PER_ROW * VEC; }
};
template <bool CONDITION, class A, class B>
struct choose {
    using type = A;
};
template <class A, class B>
struct choose<false, A, B> {
    using type = B;
};
template <int VEC>
using copy_order =
    typename choose<FA_SWIZZLE && FA_DIM % 16 == 0, block_order<FA_DIM, VEC>, row_order<FA_DIM, VEC>>::type;

/* Rows [0, rows) of a [TILE_ROWS][FA_DIM] tile to place(row, col); the rest zero. With two stages the copy is
 * asynchronous where its width allows it (4 bytes at least), and the caller commits and waits. */
template <int TILE_ROWS, int THREADS, class PLACE>
__device__ __forceinline__ void fill_tile(unsigned thread, const fa_element *src_g, fa_i64 stride, int rows,
                                          bool aligned, const PLACE &place)
{
    using order = copy_order<FA_VEC>;
    if constexpr (FA_STAGES == 2 && FA_VEC > 1) {
        if (aligned) {
            copy_pieces<TILE_ROWS, THREADS, order>(thread, src_g, stride, rows, place);
            return;
        }
    } else if (aligned) {
        load_pieces<FA_VEC, TILE_ROWS, FA_DIM, THREADS, order>(thread, src_g, stride, rows, place);
        return;
    }
    load_pieces<1, TILE_ROWS, FA_DIM, THREADS, copy_order<1>>(thread, src_g, stride, rows, place);
}

/* Columns FA_DIM..DIM_PAD of a tile, once: no copy touches them. */
__device__ __forceinline__ void clear_padding(fa_element *tile_s, int rows)
{
    if constexpr (DIM_PAD > FA_DIM)
        for (int row = threadIdx.x; row < rows; row += THREADS)
            *reinterpret_cast<uint4 *>(tile_s + tile_layout::offset(row, FA_DIM)) = uint4{};
}

/* The pipeline of K and V. The ROW_UNITS warps of a key group copy their WARP_KEYS keys of each tile themselves and
 * wait only for each other, so one group computes scores while another multiplies values. Every group waits once per
 * tile of the block, though it may have no keys in the last: compute-sanitizer's racecheck counts the barriers of a
 * thread, whatever their ids, and takes one that passed fewer for one that is still before the next __syncthreads.
 * Warps past the last group have no keys, and wait as often. VALUES is the layout of V. */
constexpr int GROUP_THREADS = ROW_UNITS * WARP_SIZE;
constexpr int IDLE_THREADS = THREADS - KEY_GROUPS * GROUP_THREADS;
static_assert(ROW_UNITS == 1 || KEY_GROUPS + (IDLE_THREADS > 0) <= 15,
              "M, N and WARPS need more barriers than a block has");

template <class VALUES>
struct key_pipeline {
    static constexpr int K_BYTES = tile_layout::bytes(FA_N), V_BYTES = VALUES::bytes(FA_N);
    static constexpr int BYTES = FA_STAGES * (K_BYTES + V_BYTES);

    const fa_params &p;
    const query_tile &tile;
    fa_element *k0_s, *v0_s;        /* K of each stage, then V of each stage */
    int key_group, row0, keys, end; /* keys: 0 for a warp past the last group; end: of key0 */
    bool k_aligned, v_aligned, late;

    __device__ __forceinline__ key_pipeline(const fa_params &params, const query_tile &of, fa_element *tiles_s,
                                            int group)
        : p(params), tile(of), k0_s(tiles_s), v0_s(tiles_s + FA_STAGES * (K_BYTES / 2)), key_group(group),
          row0(group * WARP_KEYS), keys(group < KEY_GROUPS ? of.keys : 0),
          end(IDLE_THREADS > 0 || group < KEY_GROUPS ? of.keys + group * WARP_KEYS : 0),
          k_aligned(rows_aligned<FA_VEC>(params.k, params.k_stride_b, params.k_stride_h, params.k_stride_s)),
          v_aligned(rows_aligned<FA_VEC>(params.v, params.v_stride_b, params.v_stride_h, params.v_stride_s)),
          late(group % 2 == 1) /* every other group starts later than its neighbour */
    {
    }

    __device__ fa_element *k_s(int stage) const { return k0_s + stage * (K_BYTES / 2); }
    __device__ fa_element *v_s(int stage) const { return v0_s + stage * (V_BYTES / 2); }

    /* This group's keys from key0 on. */
    __device__ __forceinline__ void load(int key0, int stage) const
    {
        const unsigned thread = threadIdx.x % GROUP_THREADS;
        fa_element *k_tile_s = k_s(stage), *v_tile_s = v_s(stage);
        const int first = row0;
        fill_tile<WARP_KEYS, GROUP_THREADS>(
            thread, tile.k_g + key0 * p.k_stride_s, p.k_stride_s, tile.keys - key0, k_aligned,
            [=](int row, int col) { return k_tile_s + tile_layout::offset(first + row, col); });
        fill_tile<WARP_KEYS, GROUP_THREADS>(
            thread, tile.v_g + key0 * p.v_stride_s, p.v_stride_s, tile.keys - key0, v_aligned,
            [=](int row, int col) { return v_tile_s + VALUES::offset(first + row, col); });
        if constexpr (FA_STAGES == 2)
            cp_async_commit();
    }

    /* Loads Q, and with two stages the first keys of every other group. Q has landed for the block on return. */
    __device__ __forceinline__ void start(fa_element *q_s) const
    {
        for (int stage = 0; stage < FA_STAGES; stage++) {
            clear_padding(k_s(stage), FA_N);
            if constexpr (VALUES::PADDED)
                clear_padding(v_s(stage), FA_N);
        }
        clear_padding(q_s, FA_M);
        fill_tile<FA_M, THREADS>(threadIdx.x, tile.q_g, p.q_stride_s, tile.rows,
                                 rows_aligned<FA_VEC>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s),
                                 [=](int row, int col) { return q_s + tile_layout::offset(row, col); });
        if constexpr (FA_STAGES == 2) {
            cp_async_commit();
            if (row0 < keys && !late)
                load(row0, 0);
            cp_async_wait<0>();
        }
        __syncthreads();
    }

    /* The first keys of the other groups, after start(): they stay behind their neighbours. */
    __device__ __forceinline__ void start_late_groups() const
    {
        if (FA_STAGES == 2 && late && row0 < keys)
            load(row0, 0);
    }

    __device__ __forceinline__ void sync() const
    {
        if constexpr (ROW_UNITS == 1)
            __syncwarp();
        else if (IDLE_THREADS > 0 && key_group >= KEY_GROUPS)
            bar_sync(1 + KEY_GROUPS, IDLE_THREADS);
        else
            bar_sync(1 + key_group, GROUP_THREADS);
    }

    /* On return the keys from key0 on have landed in `stage`; with two stages the next ones are on their way. */
    __device__ __forceinline__ void wait(int key0, int stage) const
    {
        if constexpr (FA_STAGES == 2)
            cp_async_wait<0>();
        sync(); /* two stages: these keys have landed; always: those before have been used */
        if constexpr (FA_STAGES == 1) {
            if (key0 < keys)
                load(key0, 0);
            sync();
        } else if (key0 + FA_N < keys) {
            load(key0 + FA_N, stage ^ 1);
        }
    }
};

/* A warp takes its keys in chunks, by default all at once. */
#ifndef MAX_CHUNK_KEYS
#define MAX_CHUNK_KEYS WARP_KEYS
#endif
constexpr int CHUNK_KEYS = smaller(WARP_KEYS, MAX_CHUNK_KEYS), CHUNK_BLOCKS = CHUNK_KEYS / 16;

/* Scores of 16 rows and CHUNK_KEYS keys lie in the warp's own scratch. Lanes 2 r and 2 r + 1 share row r and take its
 * groups of four columns alternately. The row stride is 8 words past a multiple of 16, so every bank is
 * touched once. */
constexpr int SCORE_STRIDE = CHUNK_KEYS + 8;
constexpr int LANE_QUADS = CHUNK_KEYS / 8;

__device__ __forceinline__ int quad_col(int quad, int lane) { return (quad * 2 + lane % 2) * 4; }

__device__ __forceinline__ void read_scores(float (&s_r)[LANE_QUADS][4], const acc_t *score_s, int lane)
{
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
        read_floats(s_r[i], score_s + lane / 2 * SCORE_STRIDE + quad_col(i, lane));
}

/* A row of the online softmax: its maximum m, and its sum l of this lane's columns. A lane has row lane / 2. */
struct row_state {
    float m, l;
};

/* Masks (columns from `keys` on) and returns the row's largest score, scaled. */
__device__ __forceinline__ float mask_scores(float (&s_r)[LANE_QUADS][4], float scale, bool masked, int keys, int lane)
{
    if (masked)
#pragma unroll
        for (int i = 0; i < LANE_QUADS; i++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                s_r[i][x] = quad_col(i, lane) + x >= keys ? -INF : s_r[i][x];
    float m = -INF;
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
        m = fmaxf(m, fmaxf(fmaxf(s_r[i][0], s_r[i][1]), fmaxf(s_r[i][2], s_r[i][3])));
    return fmaxf(m, __shfl_xor_sync(ALL_LANES, m, 1)) * scale;
}

/* The output is rescaled only when a maximum grows by more than this (log2): 2^8 keeps halves of P in range. */
constexpr float RESCALE_AT = FA_ACC_FP16 ? 0.0f : 8.0f;

/* Scores, not scaled, become probabilities relative to m; l grows by them. */
__device__ __forceinline__ void exponentiate(float (&s_r)[LANE_QUADS][4], float scale, row_state &state)
{
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
#pragma unroll
        for (int x = 0; x < 4; x++) {
            s_r[i][x] = exp2_approx(s_r[i][x] * scale - state.m);
            state.l += s_r[i][x];
        }
}

/* The parts of the key groups lie in shared memory, [KEY_GROUPS][FA_M] rows of PART_STRIDE columns, PART_BLOCKS blocks
 * of 16 columns at a time: as many as fit where the tiles were. */
struct part_layout {
    int blocks, stride, bytes;
    __host__ __device__ constexpr part_layout(int main_bytes, int size) : blocks(DIM_BLOCKS), stride(0), bytes(0)
    {
        const int stats = KEY_GROUPS * FA_M * 8;
        while (blocks > 1 && stats + KEY_GROUPS * FA_M * (blocks * 16 + 8) * size > main_bytes)
            blocks--;
        stride = blocks * 16 + 8;
        bytes = stats + KEY_GROUPS * FA_M * stride * size;
    }
};

/* One row's maximum and sum per key group. */
struct part_stats {
    float *m_s, *l_s; /* [KEY_GROUPS][FA_M] */
    __device__ void put(int key_group, int row0, const row_state &state, int lane) const
    {
        const float l = state.l + __shfl_xor_sync(ALL_LANES, state.l, 1);
        if (lane % 2 == 0) {
            m_s[key_group * FA_M + row0 + lane / 2] = state.m;
            l_s[key_group * FA_M + row0 + lane / 2] = l;
        }
    }
};

/* Columns [col0, col0 + cols) of the output: the key groups' parts, brought to one maximum and divided by the sum. */
template <int STRIDE, class PART>
__device__ __forceinline__ void write_output(const fa_params &p, const query_tile &tile, const part_stats &stats,
                                             const PART *part_s, int col0, int cols, bool aligned)
{
    const unsigned per_row = cols / 4;
    for (unsigned piece = threadIdx.x; piece < FA_M * per_row; piece += THREADS) {
        const int row = piece / per_row, col = piece % per_row * 4;
        if (row >= tile.rows || col0 + col >= FA_DIM)
            continue;
        float m = NO_MAX, l = 0.0f, sum_r[4] = {};
#pragma unroll
        for (int g = 0; g < KEY_GROUPS; g++)
            m = fmaxf(m, stats.m_s[g * FA_M + row]);
#pragma unroll
        for (int g = 0; g < KEY_GROUPS; g++) {
            const float factor = exp2_approx(stats.m_s[g * FA_M + row] - m);
            float part_r[4];
            read_floats(part_r, part_s + (g * FA_M + row) * STRIDE + col);
            l += stats.l_s[g * FA_M + row] * factor;
#pragma unroll
            for (int x = 0; x < 4; x++)
                sum_r[x] += part_r[x] * factor;
        }
#if FA_LSE
        if (col0 + col == 0)
            store_lse(p, tile, row, log_sum_exp(m, l));
#endif
        const float inverse = inverse_of_sum(l);
#pragma unroll
        for (int x = 0; x < 4; x++)
            sum_r[x] *= inverse;
        write_elements(tile.o_g + row * p.o_stride_s + col0 + col, sum_r, aligned);
    }
}
