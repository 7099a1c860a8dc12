/* What the wgmma kernels share: the tile loader, the two products, P in registers, the store of O from registers.
 *
 * A warpgroup owns 64 query rows. Its accumulators s_r (64 x FA_N) and o_r (64 x dim) have the layout of hopper.cuh:
 * a thread holds two rows, lane / 4 and lane / 4 + 8 of its warp's 16; element i belongs to row (i / 2) % 2 of these.
 * In shared memory dim is padded to a multiple of BOX_COLS by TMA's zero fill; a box is BOX_COLS columns, swizzled by a
 * row's length. The products know dim up to the next multiple of 16. */
#pragma once

#include "shared/common.cuh"
#include "wgmma/schedule.cuh"

/* Columns of a box: 64, or 32 where a kernel defines it so before it includes this file. */
#ifndef BOX_COLS
#define BOX_COLS 64
#endif

/* Of Q and K; of V and O: columns in shared memory, boxes, columns of the products. */
constexpr int BOXES = (FA_DIM + BOX_COLS - 1) / BOX_COLS, BOXES_V = (FA_DIM_V + BOX_COLS - 1) / BOX_COLS;
constexpr int DIM_PAD = BOXES * BOX_COLS, DIM_PAD_V = BOXES_V * BOX_COLS;
constexpr int DIM_K = (FA_DIM + 15) / 16 * 16, DIM_N = (FA_DIM_V + 15) / 16 * 16;
constexpr int BOX_ROW_BYTES = 2 * BOX_COLS;
constexpr int BOX_STEPS = BOX_COLS / 16; /* of Q K^T */

/* Where a swizzled row has its 16-byte chunks: chunk c at place c ^ swizzle_of_row(row). */
__device__ __forceinline__ constexpr int swizzle_of_row(int row) { return BOX_COLS == 64 ? row % 8 : row / 2 % 4; }

/* Where FA_DIM is an odd multiple of 8, every other row begins within a sector of 32 bytes. A box that begins there and
 * that the row's end cuts loads at half the pace (studies/tma_rows.txt). With TAIL_FIRST no box is cut: the first is
 * the last 64 columns, the others are columns 0 and up. Eight columns are then in two boxes: Q has zeros in place of
 * the second ones (load_q_operand), O has them twice. A kernel defines it before it includes this file. */
#ifndef TAIL_FIRST
#define TAIL_FIRST 0
#endif

/* The first column of a box. */
__device__ __forceinline__ constexpr int column_of_box(int box)
{
    return !TAIL_FIRST ? box * BOX_COLS : box == 0 ? FA_DIM - 64 : (box - 1) * 64;
}

/* The column at a place in shared memory and in O. */
__device__ __forceinline__ constexpr int column_of_place(int place)
{
    return TAIL_FIRST ? column_of_box(place / 64) + place % 64 : place;
}

/* The place of a column, the first where it has two; 0 for columns past dim. */
__device__ __forceinline__ constexpr int place_of_column(int column)
{
    if (!TAIL_FIRST)
        return column;
    return column >= FA_DIM ? 0 : column >= FA_DIM - 64 ? column - (FA_DIM - 64) : column + 64;
}

constexpr int K_TILE_BYTES = FA_N * DIM_PAD * 2, V_TILE_BYTES = FA_N * DIM_PAD_V * 2;
constexpr int Q_TILE_BYTES = 64 * DIM_PAD * 2; /* the rows of one warpgroup */

static_assert(FA_DIM <= 256 && FA_DIM_V <= 256, "wgmma serves dim and dim_v up to 256");
static_assert(FA_N % 16 == 0 && FA_N >= 64 && FA_N <= 192, "n: a multiple of 16 from 64 to 192");
static_assert(!FA_ACC_FP16, "wgmma accumulates in fp32 only");

/* Up to dim_v 64 the products sum the rows of P: a block of ones follows V, and O has 8 more columns. This costs an
 * eighth of P V and saves an addition per element of P. */
constexpr bool SUM_BY_MMA = FA_DIM_V <= 64;
/* A query tile's last products run beside the next tile's first. Split keys need it up to dim 64: ptxas serializes the
 * products there otherwise. */
constexpr bool ACROSS_TILES = FA_SPLITS == 1 || SUM_BY_MMA;
constexpr int O_DIM = SUM_BY_MMA ? DIM_PAD_V : DIM_N;
constexpr int O_COLS = O_DIM + (SUM_BY_MMA ? 8 : 0);
constexpr int O_REGS = O_COLS / 2;
constexpr int Q_REGS = DIM_K / 4;
constexpr int ONES_BYTES = SUM_BY_MMA ? 16 * BOX_ROW_BYTES : 0;

/* S, O and P of a thread, and what ptxas needs beside them: with less it serializes the products or spills a lot. True
 * of 320 tiles of the three kernels, NVRTC 13.0. */
constexpr int PRODUCT_REGISTERS = FA_N / 2 + O_REGS + FA_N / 4, SPARE_REGISTERS = 28;

/* tma_load and tma_store for what is used ONCE: its lines leave L2 before others. */
constexpr u64 L2_EVICT_FIRST = 0x12f0000000000000;

template <bool ONCE>
__device__ __forceinline__ void load_box(unsigned to_s, const fa_tensor_map *map, unsigned bar, int c0, int c1, int c2,
                                         int c3)
{
    if constexpr (ONCE)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                     "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to_s),
                     "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(L2_EVICT_FIRST)
                     : "memory");
    else
        tma_load(to_s, map, bar, c0, c1, c2, c3);
}

template <bool ONCE>
__device__ __forceinline__ void store_box(const fa_tensor_map *map, unsigned from_s, int c0, int c1, int c2, int c3)
{
    if constexpr (ONCE)
        asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2, %3, %4, %5}], "
                     "[%1], %6;" ::"l"(map),
                     "r"(from_s), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(L2_EVICT_FIRST)
                     : "memory");
    else
        tma_store(map, from_s, c0, c1, c2, c3);
}

/* The tile loader: ROWS rows of Q, K or V (BOXES_OF), those of tile number `index` from row0 on, to stage `stage` of a
 * buffer. `bar` expects their bytes. For one thread. */
template <int ROWS, int BOXES_OF = BOXES, bool ONCE = false>
__device__ __forceinline__ void load_tile(unsigned buffer_s, int stage, unsigned bar, const fa_tensor_map *map,
                                          int row0, int index, int head, int batch)
{
    constexpr int BYTES = ROWS * BOXES_OF * BOX_ROW_BYTES;
    mbarrier_arrive_expect(bar, BYTES);
    const unsigned to_s = buffer_s + stage * BYTES;
    const int row = row0 + index * ROWS;
#pragma unroll
    for (int box = 0; box < BOXES_OF; ++box)
        load_box<ONCE>(to_s + box * ROWS * BOX_ROW_BYTES, map, bar, column_of_box(box), row, head, batch);
}

/* The ones that sum the rows of P (SUM_BY_MMA), after V; by THREADS threads. */
template <int THREADS>
__device__ __forceinline__ void fill_ones(unsigned ones_s, int thread)
{
#pragma unroll
    for (int i = thread * 16; i < ONES_BYTES; i += THREADS * 16)
        st_shared_16_at(ones_s + i, make_uint4(TWO_ONES, TWO_ONES, TWO_ONES, TWO_ONES));
}

/* S = Q K^T of one tile, issued but not committed. q, k: descriptor words (descriptor_start). */
__device__ __forceinline__ void issue_qk(float (&s_r)[FA_N / 2], unsigned q, unsigned k)
{
#pragma unroll
    for (int step = 0; step < DIM_K / 16; ++step) {
        const u64 a = wgmma_descriptor<BOX_ROW_BYTES>(
            q + ((step / BOX_STEPS) * 64 * BOX_ROW_BYTES + (step % BOX_STEPS) * 32) / 16);
        const u64 b = wgmma_descriptor<BOX_ROW_BYTES>(
            k + ((step / BOX_STEPS) * FA_N * BOX_ROW_BYTES + (step % BOX_STEPS) * 32) / 16);
        wgmma<FA_N>::ss(s_r, a, b, step > 0);
    }
}

/* issue_qk with Q in registers. */
__device__ __forceinline__ void issue_qk(float (&s_r)[FA_N / 2], const unsigned (&q_r)[Q_REGS], unsigned k)
{
#pragma unroll
    for (int step = 0; step < DIM_K / 16; ++step) {
        const u64 b = wgmma_descriptor<BOX_ROW_BYTES>(
            k + ((step / BOX_STEPS) * FA_N * BOX_ROW_BYTES + (step % BOX_STEPS) * 32) / 16);
        wgmma<FA_N>::rs(s_r, &q_r[4 * step], b, step > 0);
    }
}

/* A warpgroup's Q into registers, as the operand of issue_qk. q_s: address of its 64 rows. */
__device__ __forceinline__ void load_q_operand(unsigned (&q_r)[Q_REGS], unsigned q_s, int thread)
{
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int step = 0; step < DIM_K / 16; ++step)
        ldmatrix_x4_at(reinterpret_cast<unsigned(&)[4]>(q_r[4 * step]),
                       q_s + (step / BOX_STEPS * 64 + row) * BOX_ROW_BYTES +
                           ((step % BOX_STEPS * 2 + lane / 16) ^ swizzle_of_row(row)) * 16);
    if (TAIL_FIRST)
        q_r[Q_REGS - 2] = q_r[Q_REGS - 1] = 0;
}

/* O += P V of one tile, or O = P V when accumulate is 0; issued but not committed. v: descriptor word (v_descriptor).
 * Every step reads the same 16 rows of ones, so their distance from V, the leading bytes, shrinks as V advances. */
__device__ __forceinline__ void issue_pv(float (&o_r)[O_REGS], const unsigned (&p_r)[FA_N / 4], unsigned v,
                                         int accumulate)
{
    constexpr unsigned STEP_BYTES = 16 * BOX_ROW_BYTES;
    constexpr unsigned ADVANCE = STEP_BYTES / 16 - (SUM_BY_MMA ? descriptor_leading(STEP_BYTES) : 0);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        wgmma<O_COLS>::rs_n(o_r, &p_r[4 * step], wgmma_descriptor<BOX_ROW_BYTES>(v + step * ADVANCE),
                            step == 0 ? accumulate : 1);
}

/* Descriptor word of a V tile's first step. ones_s: address of the ones, which lie after V. */
__device__ __forceinline__ unsigned v_descriptor(unsigned v_s, unsigned ones_s)
{
    return descriptor_start(v_s) + descriptor_leading(SUM_BY_MMA ? ones_s - v_s : FA_N * BOX_ROW_BYTES);
}

/* P as the operand of issue_pv. Packed in pairs, the accumulator's layout is the operand's: no data moves. */
__device__ __forceinline__ void pack_p(const float (&s_r)[FA_N / 2], unsigned (&p_r)[FA_N / 4])
{
#pragma unroll
    for (int i = 0; i < FA_N / 4; ++i)
        p_r[i] = pack_elements(s_r[2 * i], s_r[2 * i + 1]);
}

/* Transposes words within a quad: w[j] belongs to column group j; lane t of the quad gets the four words of group t. */
__device__ __forceinline__ uint4 quad_transpose(const unsigned (&w)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const unsigned x = __shfl_xor_sync(ALL_LANES, odd ? w[0] : w[1], 1);
    const unsigned y = __shfl_xor_sync(ALL_LANES, odd ? w[2] : w[3], 1);
    const unsigned a0 = odd ? x : w[0], a1 = odd ? w[1] : x;
    const unsigned b0 = odd ? y : w[2], b1 = odd ? w[3] : y;
    const unsigned u = __shfl_xor_sync(ALL_LANES, high ? a0 : b0, 2);
    const unsigned v = __shfl_xor_sync(ALL_LANES, high ? a1 : b1, 2);
    return high ? make_uint4(u, v, b0, b1) : make_uint4(a0, a1, u, v);
}

/* Where a row of O goes; nullptr for one that does not exist. */
__device__ __forceinline__ fa_element *place_of_row(const fa_params &p, const sequence &seq, int head, int query)
{
    fa_element *o_g = query_rows(p.o, seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, head);
    return query < seq.seq_q ? o_g + query * p.o_stride_s : nullptr;
}

/* Stores O = o_r * scale of a thread's two rows, straight from the registers, 16 bytes per lane. place(h): where row h
 * goes (place_of_row). */
template <class PLACE>
__device__ __forceinline__ void store_o_direct(const float (&o_r)[O_REGS], const float (&scale)[2], const PLACE &place,
                                               int lane)
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        fa_element *row_g = place(h);
#pragma unroll
        for (int group = 0; group < (O_DIM + 31) / 32; ++group) {
            unsigned w[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = 32 * group + 8 * j, i = place_of_column(column) / 2 + 2 * h;
                w[j] = column < O_DIM ? pack_elements(o_r[i] * scale[h], o_r[i + 1] * scale[h]) : 0;
            }
            const uint4 out = quad_transpose(w, lane);
            const int column = group * 32 + lane % 4 * 8;
            if (row_g != nullptr && column < FA_DIM_V)
                *reinterpret_cast<uint4 *>(row_g + column) = out;
        }
    }
}
