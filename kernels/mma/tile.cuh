/* Tiles of `mma` in shared memory: where a 16-byte chunk of a row lies, which address a lane gives ldmatrix, and how
 * tiles get there. A row is DIM16 elements: the head dimension rounded up to 16, the extra columns zero. Q and K have
 * FA_DIM columns, V has FA_DIM_V; what depends on the columns takes their number.
 *
 * The loader is not copy_pieces of load.cuh, because mma spreads the copies of a tile over the products of another. It
 * copies in passes that can be issued one by one, and a pass needs no address of its own: all of a thread's addresses
 * are immediate offsets from one in shared and one in global memory. */
#pragma once

#include "shared/load.cuh"
#include "shared/schedule.cuh"

template <int COLUMNS>
struct row_layout {
    static constexpr int DIM16 = (COLUMNS + 15) / 16 * 16, STEPS = DIM16 / 16;
    static constexpr int CHUNKS = DIM16 / 8; /* 16-byte chunks of a row that hold data; even */
    static constexpr int ROW_CHUNKS = FA_SWIZZLE ? CHUNKS : CHUNKS + 1;
    static constexpr int ROW_BYTES = ROW_CHUNKS * 16;
    /* A chunk-wide bank group is 16 bytes; there are 8. The starts of 8 rows reach 8 / XORS of them; the XOR does the
     * rest. */
    static constexpr int XORS = !FA_SWIZZLE ? 1 : CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : 2;
    /* Distinct XOR patterns among the k16 steps of a row; other steps differ from these by a constant. */
    static constexpr int PATTERNS = XORS < 2 ? 1 : XORS / 2;
    static constexpr int KEPT_PATTERNS = DIM16 <= 128 ? PATTERNS : 1;

    /* Byte offset of a chunk in a tile. In any 8 rows from a multiple of 8 on, one column of chunks lies in 8 different
     * bank groups. */
    static __host__ __device__ constexpr int offset(unsigned row, unsigned chunk)
    {
        return row * ROW_BYTES + (chunk ^ (row / (8 / XORS)) % XORS) * 16;
    }
};
using qk_row = row_layout<FA_DIM>;
using v_row = row_layout<FA_DIM_V>;
constexpr bool ONE_DIM = FA_DIM == FA_DIM_V;
constexpr int DIM16 = qk_row::DIM16, ROW_BYTES = qk_row::ROW_BYTES;

/* ldmatrix.x4 takes the row addresses of its four 8x8 blocks from lanes 0-7, 8-15, 16-23 and 24-31. The B operand of an
 * mma is a pair of neighbouring registers, the two 8-wide halves of its 16 k's. For K (k is the column) the blocks are
 * rows 0-7 of both chunks of a k16 step, then rows 8-15. For V, transposed (k is the row), and for Q they are rows 0-7
 * and 8-15 of one chunk, then of the next. These are the offsets for step 0. */
template <class ROW>
__host__ __device__ constexpr int k_lane_offset(unsigned lane)
{
    return ROW::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}

template <class ROW>
__host__ __device__ constexpr int v_lane_offset(unsigned lane)
{
    return ROW::offset(lane % 16, lane / 16);
}

/* ldmatrix reads 8 lanes' rows of 16 bytes at a time: they must lie in the 8 different groups of 4 banks. */
template <class ROW>
__host__ __device__ constexpr bool no_bank_conflicts()
{
    for (int phase = 0; phase < 4; ++phase)
        for (int step = 0; step < ROW::STEPS; ++step) {
            unsigned k_groups = 0, v_groups = 0;
            for (int lane = phase * 8; lane < phase * 8 + 8; ++lane) {
                const int high = step / ROW::PATTERNS * ROW::PATTERNS * 32, low = step % ROW::PATTERNS * 32;
                const int k_at = (k_lane_offset<ROW>(lane) ^ low) + high,
                          v_at = (v_lane_offset<ROW>(lane) ^ low) + high;
                k_groups |= 1u << k_at / 16 % 8;
                v_groups |= 1u << v_at / 16 % 8;
                if (k_at != ROW::offset(lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2) ||
                    v_at != ROW::offset(lane % 16, 2 * step + lane / 16))
                    return false;
            }
            if (k_groups != 0xff || v_groups != 0xff)
                return false;
        }
    return true;
}
static_assert(no_bank_conflicts<qk_row>() && no_bank_conflicts<v_row>(),
              "the layout of tiles in shared memory has bank conflicts, or ldmatrix would read other rows than meant");

/* Where a lane's fragments lie in a tile: one address per XOR pattern, from which all k16 steps and bands of 16 rows
 * are immediate offsets. Where registers are short, only the first of them. Tiles start at multiples of SMEM_ALIGN,
 * above the bits that the XOR changes. */
constexpr int SMEM_ALIGN = 128;
template <class ROW>
struct lane_fragments {
    smem_addr at[ROW::KEPT_PATTERNS];
};

template <class ROW>
__device__ __forceinline__ lane_fragments<ROW> find_fragments(smem_addr lane_at)
{
    lane_fragments<ROW> lane;
#pragma unroll
    for (int i = 0; i < ROW::KEPT_PATTERNS; ++i)
        lane.at[i] = xor_address(lane_at, i * 32);
    return lane;
}

/* Fragment of k16 step `step` (compile-time), 16 * band rows on, in the tile `offset` bytes on. */
template <class ROW>
__device__ __forceinline__ smem_addr fragment_at(const lane_fragments<ROW> &lane, int offset, int step, int band)
{
    constexpr int PATTERNS = ROW::PATTERNS, KEPT = ROW::KEPT_PATTERNS;
    const int pattern = step % PATTERNS, constant = step / PATTERNS * PATTERNS * 32 + band * 16 * ROW::ROW_BYTES;
    return (KEPT == 1 ? xor_address(lane.at[0] + offset, pattern * 32) : lane.at[pattern % KEPT] + offset) + constant;
}

/* How a block's threads share the chunks of a tile: thread t takes a chunk of row first_of(t) and of every STEP-th row
 * after it, one a pass; threads left over do nothing. A thread's rows are near each other, so that immediate offsets
 * reach all of them. */
template <int ROWS, int COLUMNS>
struct copy_layout {
    using row_of_tile = row_layout<COLUMNS>;
    static constexpr int CHUNKS = row_of_tile::CHUNKS, XORS = row_of_tile::XORS, PASS_ROWS = THREADS / CHUNKS;
    static constexpr bool EVEN = ROWS % PASS_ROWS == 0;
    static constexpr int PASSES = (ROWS + PASS_ROWS - 1) / PASS_ROWS;
    static constexpr int STEP = !EVEN ? PASS_ROWS : XORS == 1 ? 1 : PASS_ROWS % 8 == 0 ? 8 : PASS_ROWS;
    /* Offsets in shared memory are constants after one of HALVES XORs of the first. */
    static constexpr bool CONSTANT = XORS == 1 || STEP % 8 == 0 || (XORS == 8 && 8 % STEP == 0);
    static constexpr int HALVES = XORS == 1 || STEP % 8 == 0 ? 1 : 8 / STEP;
    /* Rows are tested against the end in spans: the row of a pass lies in the span that starts span_row(pass) after the
     * thread's first row. */
    static constexpr int SPAN = !EVEN                              ? ROWS
                                : STEP != PASS_ROWS                ? STEP * PASSES
                                : 32 % STEP == 0 && ROWS % 32 == 0 ? 32
                                                                   : ROWS;
    static __host__ __device__ constexpr int span_row(int pass)
    {
        return STEP == PASS_ROWS ? pass * STEP / SPAN * SPAN : 0;
    }
    static __device__ __forceinline__ int offset(int first, int pass)
    {
        return (first ^ pass % HALVES * STEP * 16) + pass * STEP * row_of_tile::ROW_BYTES;
    }
    static __device__ __forceinline__ unsigned first_of(unsigned thread)
    {
        const unsigned row = thread / CHUNKS;
        return STEP == PASS_ROWS ? row : row % STEP + row / STEP * STEP * PASSES;
    }
};

/* Two elements times a float. */
__device__ __forceinline__ unsigned scale_pair(unsigned elements, float factor)
{
    float pair[2];
    unpack_floats(pair, elements);
    return pack_elements(pair[0] * factor, pair[1] * factor);
}

/* This thread's share of every tile: its first chunk in shared memory, and in global memory where rows are `stride`
 * elements apart. 32-bit offsets, made opaque in the loop: otherwise the compiler keeps 64-bit pointers. */
struct thread_share {
    unsigned smem_offset, global_offset;
};

template <int ROWS, int COLUMNS>
__device__ __forceinline__ thread_share find_share(unsigned thread, int stride = COLUMNS)
{
    using layout = copy_layout<ROWS, COLUMNS>;
    const unsigned row = layout::first_of(thread), chunk = thread % layout::CHUNKS;
    return {static_cast<unsigned>(row_layout<COLUMNS>::offset(row, chunk)), (row * stride + chunk * 8) * 2};
}

/* One pass over ROWS rows that are `stride` elements apart and start at multiples of 16 bytes. from_g: this thread's
 * first chunk, plus `centre`. Rows from `valid` on become zero; with WHOLE all rows do when `valid` is 0. */
template <int ROWS, int COLUMNS, bool WHOLE>
__device__ __forceinline__ void load_pass(smem_addr tile_at, const unsigned char *from_g, int smem_offset, int pass,
                                          int valid, unsigned thread, int centre = 0, int stride = COLUMNS)
{
    using layout = copy_layout<ROWS, COLUMNS>;
    const int row = layout::first_of(thread) + pass * layout::STEP, chunk = thread % layout::CHUNKS;
    if (THREADS % layout::CHUNKS != 0 && thread / layout::CHUNKS >= layout::PASS_ROWS)
        return;
    if (!layout::EVEN && row >= ROWS)
        return;
    const bool inside = (WHOLE ? valid != 0 : row < valid) && (COLUMNS % 16 == 0 || chunk * 8 < COLUMNS);
    cp_async_16_at(tile_at +
                       (layout::CONSTANT ? layout::offset(smem_offset, pass) : row_layout<COLUMNS>::offset(row, chunk)),
                   from_g + (WHOLE || inside ? pass * layout::STEP * stride * 2 - centre : 0), inside ? 16 : 0);
}

/* ROWS whole rows from first_row on, of a head whose rows follow each other without a gap, or have ANY stride. */
template <int ROWS, int COLUMNS, bool ANY = false>
__device__ __forceinline__ void load_whole_tile(smem_addr tile_at, const head_rows &head, int first_row,
                                                unsigned thread)
{
    const int stride = ANY ? static_cast<int>(head.stride) : COLUMNS;
    const thread_share share = find_share<ROWS, COLUMNS>(thread, stride);
    const unsigned char *from_g =
        reinterpret_cast<const unsigned char *>(head.data_g + static_cast<fa_i64>(first_row) * stride) +
        share.global_offset;
#pragma unroll
    for (int pass = 0; pass < copy_layout<ROWS, COLUMNS>::PASSES; ++pass)
        load_pass<ROWS, COLUMNS, true>(tile_at, from_g, share.smem_offset, pass, ROWS, thread, 0, stride);
}

/* 8 elements to shared memory, or zeros. */
__device__ __forceinline__ void copy_chunk(smem_addr dst_at, const fa_element *src_g, bool valid, bool aligned)
{
    if (aligned) {
        cp_async_16_at(dst_at, src_g, valid ? 16 : 0);
        return;
    }
    const unsigned short *halves_g = reinterpret_cast<const unsigned short *>(src_g);
    unsigned words[4] = {0, 0, 0, 0};
    if (valid)
        for (int i = 0; i < 4; ++i)
            words[i] = halves_g[2 * i] | static_cast<unsigned>(halves_g[2 * i + 1]) << 16;
    st_shared_16_at(dst_at, make_uint4(words[0], words[1], words[2], words[3]));
}

/* Any rows from first_row on, at any stride; those from row `rows` of the head on become zero. Unless `aligned` they
 * may start at any even address, and the copy is not asynchronous. ANY: the fast way is for any stride that leaves
 * offsets in a tile 32 bits. */
template <int ROWS, int COLUMNS, bool ANY = false>
__device__ __forceinline__ void load_tile(smem_addr tile_at, const head_rows &head, int first_row, int rows,
                                          bool aligned, unsigned thread)
{
    using layout = copy_layout<ROWS, COLUMNS>;
    const int valid = rows - first_row;
    if (aligned && (ANY ? head.stride < (1 << 30) / ROWS : head.stride == COLUMNS) && valid > 0) {
        const int stride = ANY ? static_cast<int>(head.stride) : COLUMNS;
        const thread_share share = find_share<ROWS, COLUMNS>(thread, stride);
        /* a thread none of whose rows is valid points at the first of the tile */
        const unsigned char *from_g =
            reinterpret_cast<const unsigned char *>(head.data_g + static_cast<fa_i64>(first_row) * stride) +
            (static_cast<int>(layout::first_of(thread)) < valid ? share.global_offset : 0);
#pragma unroll
        for (int pass = 0; pass < layout::PASSES; ++pass)
            load_pass<ROWS, COLUMNS, false>(tile_at, from_g, share.smem_offset, pass, valid, thread, 0, stride);
        return;
    }
#pragma unroll 1
    for (unsigned item = thread; item < ROWS * layout::CHUNKS; item += THREADS) {
        const int row = item / layout::CHUNKS, chunk = item % layout::CHUNKS;
        const bool valid = first_row + row < rows && (COLUMNS % 16 == 0 || chunk * 8 < COLUMNS);
        const fa_element *src_g = head.data_g + (valid ? (first_row + row) * head.stride + chunk * 8 : 0);
        copy_chunk(tile_at + row_layout<COLUMNS>::offset(row, chunk), src_g, valid, aligned);
    }
}

/* The same out of pages, a row at a time: which page a row lies in, its threads each find. */
template <int ROWS, int COLUMNS, bool ANY = false>
__device__ __forceinline__ void load_tile(smem_addr tile_at, const paged_rows &head, int first_row, int rows,
                                          bool aligned, unsigned thread)
{
    constexpr int CHUNKS = row_layout<COLUMNS>::CHUNKS;
#pragma unroll 2
    for (unsigned item = thread; item < ROWS * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        const bool valid = first_row + row < rows && (COLUMNS % 16 == 0 || chunk * 8 < COLUMNS);
        const fa_element *src_g = row_at(head, min(first_row + row, rows - 1), valid ? chunk * 8 : 0);
        copy_chunk(tile_at + row_layout<COLUMNS>::offset(row, chunk), src_g, valid, aligned);
    }
}

/* 8 elements to a row of the output. */
__device__ __forceinline__ void store_chunk(fa_element *dst_g, uint4 value, bool aligned)
{
    if (aligned) {
        *reinterpret_cast<uint4 *>(dst_g) = value;
        return;
    }
    const unsigned words[4] = {value.x, value.y, value.z, value.w};
    unsigned short *halves_g = reinterpret_cast<unsigned short *>(dst_g);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        halves_g[i] = static_cast<unsigned short>(words[i / 2] >> i % 2 * 16);
}
