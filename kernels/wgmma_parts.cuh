/* What the wgmma kernels share: the tile of a block, the two products, the store of O.
 *
 * One consumer warpgroup owns 64 query rows. Its accumulators s (64 x FA_N) and o (64 x dim) have the layout of
 * hopper.cuh: a thread holds two rows, lane / 4 and lane / 4 + 8 of its warp's 16, index (i / 2) % 2 says which.
 * dim is padded to a multiple of 64 by TMA's zero fill; a box is 64 columns, 128-byte swizzled. */
#ifndef FA_WGMMA_PARTS_CUH
#define FA_WGMMA_PARTS_CUH

#include "hopper.cuh"

constexpr int DIM_PAD = (FA_DIM + 63) / 64 * 64;
constexpr int BOXES = DIM_PAD / 64;
constexpr int BOX_ROW_BYTES = 128;
constexpr int KV_TILE_BYTES = FA_N * DIM_PAD * 2;
constexpr int Q_TILE_BYTES = 64 * DIM_PAD * 2; /* of one warpgroup */

static_assert(FA_DIM <= 256, "wgmma serves dim up to 256");
static_assert(FA_N % 16 == 0 && FA_N >= 64 && FA_N <= 192, "n: a multiple of 16 from 64 to 192");
static_assert(!FA_ACC_FP16, "wgmma accumulates in fp32 only");

/* O has 8 more columns when the products sum the rows of P: V is followed by a block of ones (fill_ones), which for
 * dim 64 costs an eighth of P V and saves an addition per element of P. */
constexpr bool SUM_BY_MMA = FA_DIM <= 64;
static_assert(!SUM_BY_MMA || DIM_PAD == 64, "sums by mma: dim up to 64");
constexpr int O_COLS = DIM_PAD + (SUM_BY_MMA ? 8 : 0);
constexpr int O_REGS = O_COLS / 2;
constexpr int ONES_BYTES = SUM_BY_MMA ? 16 * BOX_ROW_BYTES : 0;

/* A block's unit of work. */
typedef struct block_tile {
    int row0, head, kv_head, batch;
    int key_tiles; /* tiles of FA_N keys, at least one */
} block_tile;

/* Key tiles that some row of [row0, row0 + rows) sees; one tile, all masked, when none does. */
__device__ __forceinline__ int count_key_tiles(const fa_params &p, int row0, int rows)
{
    int keys = p.seq_kv;
    if (FA_CAUSAL)
        keys = min(keys, min(row0 + rows, p.seq_q) + p.seq_kv - p.seq_q);
    return max(1, (keys + FA_N - 1) / FA_N);
}

__device__ __forceinline__ block_tile block_tile_at(const fa_params &p, int block_m, int head_index, int rows)
{
    block_tile tile;
    tile.row0 = block_m * rows;
    tile.batch = static_cast<unsigned>(head_index) / static_cast<unsigned>(p.heads);
    tile.head = head_index - tile.batch * p.heads;
    tile.kv_head = tile.head;
    if (p.heads != p.kv_heads)
        tile.kv_head = tile.head / (p.heads / p.kv_heads);
    tile.key_tiles = count_key_tiles(p, tile.row0, rows);
    return tile;
}

/* Causal tiles are handed out in sections of heads, longest first within a section: small sections, so that L2 holds
 * their K and V and tiles of all lengths run at once; but the last has some waves of blocks, or it would end unevenly. */
typedef struct head_sections {
    int heads, last_heads; /* of a section; of the last one */
    int last_first;        /* first head of the last one */
} head_sections;

__device__ __forceinline__ head_sections find_sections(const fa_params &p)
{
    constexpr int l2_bytes = 8 << 20, waves = 2;
    const int all = p.heads * p.batch, group = p.heads / p.kv_heads;
    head_sections in;
    in.heads = min(max(2, l2_bytes / (4 * FA_DIM) / p.seq_kv) * group, all);
    in.last_heads = min(max(in.heads, (waves * p.sm_count + p.tiles_m - 1) / p.tiles_m), all);
    in.last_first = (all - in.last_heads) / in.heads * in.heads;
    in.last_heads = all - in.last_first;
    return in;
}

/* Tiles that run at the same time share K and V in L2. */
__device__ __forceinline__ block_tile block_tile_of(const fa_params &p, int index, int rows)
{
    int block_m, head_index;
    if (FA_CAUSAL) {
        const head_sections in = find_sections(p);
        const bool last = index >= in.last_first * p.tiles_m;
        const int width = last ? in.last_heads : in.heads;
        const int first = last ? in.last_first : index / (width * p.tiles_m) * width;
        const int rest = index - first * p.tiles_m;
        block_m = p.tiles_m - 1 - rest / width;
        head_index = first + rest % width;
    } else {
        block_m = index % p.tiles_m;
        head_index = index / p.tiles_m;
    }
    return block_tile_at(p, block_m, head_index, rows);
}

/* [rows, dim] from `row` on, as BOXES boxes of 64 columns. */
__device__ __forceinline__ void tma_load_boxes(unsigned to, const fa_tensor_map *map, unsigned bar, int rows, int row,
                                               int head, int batch)
{
#pragma unroll
    for (int box = 0; box < BOXES; ++box)
        tma_load(to + box * rows * BOX_ROW_BYTES, map, bar, box * 64, row, head, batch);
}

/* s = Q K^T of one tile, issued but not committed. q, k: descriptor words (descriptor_start). */
__device__ __forceinline__ void issue_qk(float (&s)[FA_N / 2], unsigned q, unsigned k)
{
#pragma unroll
    for (int step = 0; step < DIM_PAD / 16; ++step) {
        const u64 a = wgmma_descriptor(q + ((step / 4) * 64 * BOX_ROW_BYTES + (step % 4) * 32) / 16);
        const u64 b = wgmma_descriptor(k + ((step / 4) * FA_N * BOX_ROW_BYTES + (step % 4) * 32) / 16);
        wgmma<FA_N>::ss(s, a, b, step > 0);
    }
}

/* Q of a warpgroup as operands in registers. q_s: address of its 64 rows. */
constexpr int Q_REGS = DIM_PAD / 4;

__device__ __forceinline__ void load_q_operand(unsigned (&q)[Q_REGS], unsigned q_s, int thread)
{
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int step = 0; step < DIM_PAD / 16; ++step)
        ldmatrix_x4_at(reinterpret_cast<unsigned(&)[4]>(q[4 * step]),
                       q_s + (step / 4 * 64 + row) * BOX_ROW_BYTES + ((step % 4 * 2 + lane / 16) ^ (row % 8)) * 16);
}

/* s = Q K^T of one tile with Q in registers, issued but not committed. */
__device__ __forceinline__ void issue_qk(float (&s)[FA_N / 2], const unsigned (&q)[Q_REGS], unsigned k)
{
#pragma unroll
    for (int step = 0; step < DIM_PAD / 16; ++step) {
        const u64 b = wgmma_descriptor(k + ((step / 4) * FA_N * BOX_ROW_BYTES + (step % 4) * 32) / 16);
        wgmma<FA_N>::rs(s, &q[4 * step], b, step > 0);
    }
}

/* o += P V of one tile, or o = P V, issued but not committed. v: descriptor word with the leading bytes of its first
 * step; the block of ones is 16 rows that every step reads, so the distance to it shrinks as V advances. */
__device__ __forceinline__ void issue_pv(float (&o)[O_REGS], const unsigned (&p)[FA_N / 4], unsigned v,
                                         int accumulate = 1)
{
    constexpr unsigned rows16 = 16 * BOX_ROW_BYTES;
    constexpr unsigned next = rows16 / 16 - (SUM_BY_MMA ? descriptor_leading(rows16) : 0);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        wgmma<O_COLS>::rs_n(o, &p[4 * step], wgmma_descriptor(v + step * next), step == 0 ? accumulate : 1);
}

/* Descriptor word of a V tile. ones: address of the block of ones, after it. */
__device__ __forceinline__ unsigned v_descriptor(unsigned v_s, unsigned ones_s)
{
    return descriptor_start(v_s) + descriptor_leading(SUM_BY_MMA ? ones_s - v_s : FA_N * BOX_ROW_BYTES);
}

__device__ __forceinline__ void fill_ones(unsigned char *ones_s, int thread, int threads)
{
    for (int i = thread; i < ONES_BYTES / 4; i += threads)
        reinterpret_cast<unsigned *>(ones_s)[i] = 0x3c003c00u;
}

/* Accumulator layout of S is, packed in pairs, the layout of A: no data moves. */
__device__ __forceinline__ void pack_p(const float (&s)[FA_N / 2], unsigned (&p)[FA_N / 4])
{
#pragma unroll
    for (int i = 0; i < FA_N / 4; ++i)
        p[i] = pack_half2(s[2 * i], s[2 * i + 1]);
}

/* Four words per lane, w[j] = word of column group j: afterwards lane t of a quad holds the four words of group t. */
__device__ __forceinline__ uint4 quad_transpose(const unsigned (&w)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const unsigned x = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1);
    const unsigned y = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
    const unsigned a0 = odd ? x : w[0], a1 = odd ? w[1] : x;
    const unsigned b0 = odd ? y : w[2], b1 = odd ? w[3] : y;
    const unsigned u = __shfl_xor_sync(0xffffffffu, high ? a0 : b0, 2);
    const unsigned v = __shfl_xor_sync(0xffffffffu, high ? a1 : b1, 2);
    return high ? make_uint4(u, v, b0, b1) : make_uint4(a0, a1, u, v);
}

/* A row that sees no key has no sum. One instruction, within an ulp of 1 / sum, far below what FP16 keeps. */
__device__ __forceinline__ float inverse_or_zero(float sum) { return sum > 0.0f ? reciprocal_approx(sum) : 0.0f; }

/* O = o * scale of a warp's 16 rows from `row` on, straight from the registers, 16 bytes per lane. */
__device__ __forceinline__ void store_o_direct(const fa_params &p, const float (&o)[O_REGS], const float (&scale)[2],
                                               int batch, int head, int row, int lane)
{
    __half *o_g = static_cast<__half *>(p.o) + batch * p.o_stride_b + head * p.o_stride_h;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int query = row + lane / 4 + 8 * h;
        __half *row_g = o_g + query * p.o_stride_s;
#pragma unroll
        for (int group = 0; group < DIM_PAD / 32; ++group) {
            unsigned w[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                w[j] =
                    pack_half2(o[16 * group + 4 * j + 2 * h] * scale[h], o[16 * group + 4 * j + 2 * h + 1] * scale[h]);
            const uint4 out = quad_transpose(w, lane);
            const int column = group * 32 + lane % 4 * 8;
            if (query < p.seq_q && column < FA_DIM)
                *reinterpret_cast<uint4 *>(row_g + column) = out;
        }
    }
}

#endif
