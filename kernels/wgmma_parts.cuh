/* What the wgmma kernels share: the tile of a block, the two products, the store of O.
 *
 * One consumer warpgroup owns 64 query rows. Its accumulators s (64 x FA_N) and o (64 x dim) have the layout of
 * hopper.cuh: a thread holds two rows, lane / 4 and lane / 4 + 8 of its warp's 16, index (i / 2) % 2 says which.
 * dim is padded to a multiple of 64 by TMA's zero fill; a box is 64 columns, 128-byte swizzled. */
#ifndef FA_WGMMA_PARTS_CUH
#define FA_WGMMA_PARTS_CUH

#include "hopper.cuh"

constexpr int fa_dim_pad = (FA_DIM + 63) / 64 * 64;
constexpr int fa_boxes = fa_dim_pad / 64;
constexpr int fa_box_row_bytes = 128;
constexpr int fa_kv_tile_bytes = FA_N * fa_dim_pad * 2;
constexpr int fa_q_part_bytes = 64 * fa_dim_pad * 2; /* of one warpgroup */

static_assert(FA_DIM <= 256, "wgmma serves dim up to 256");
static_assert(FA_N % 16 == 0 && FA_N >= 64 && FA_N <= 192, "n: a multiple of 16 from 64 to 192");
static_assert(!FA_ACC_FP16, "wgmma accumulates in fp32 only");

/* O has 8 more columns when the products sum the rows of P: V is followed by a block of ones (fa_fill_ones), which for
 * dim 64 costs an eighth of P V and saves an addition per element of P. */
#ifndef FA_SUM_BY_MMA
#define FA_SUM_BY_MMA (FA_DIM <= 64)
#endif
static_assert(!FA_SUM_BY_MMA || fa_dim_pad == 64, "sums by mma: dim up to 64");
constexpr int fa_o_columns = fa_dim_pad + (FA_SUM_BY_MMA ? 8 : 0);
constexpr int fa_o_regs = fa_o_columns / 2;
constexpr int fa_ones_bytes = FA_SUM_BY_MMA ? 16 * fa_box_row_bytes : 0;

/* A block's unit of work. */
typedef struct fa_tile {
    int row0, head, kv_head, batch;
    int kv_tiles; /* tiles of FA_N keys, at least one */
} fa_tile;

/* Key tiles that some row of [row0, row0 + rows) sees; one tile, all masked, when none does. */
__device__ __forceinline__ int fa_kv_tiles(const fa_params &p, int row0, int rows)
{
    int keys = p.seq_kv;
    if (FA_CAUSAL)
        keys = min(keys, min(row0 + rows, p.seq_q) + p.seq_kv - p.seq_q);
    return max(1, (keys + FA_N - 1) / FA_N);
}

__device__ __forceinline__ fa_tile fa_tile_at(const fa_params &p, int block_m, int head_index, int rows)
{
    fa_tile tile;
    tile.row0 = block_m * rows;
    tile.batch = static_cast<unsigned>(head_index) / static_cast<unsigned>(p.heads);
    tile.head = head_index - tile.batch * p.heads;
    tile.kv_head = tile.head;
    if (p.heads != p.kv_heads)
        tile.kv_head = tile.head / (p.heads / p.kv_heads);
    tile.kv_tiles = fa_kv_tiles(p, tile.row0, rows);
    return tile;
}

/* Causal tiles are handed out in sections of heads, longest first within a section: small sections, so that L2 holds
 * their K and V and tiles of all lengths run at once; but the last has some waves of blocks, or it would end unevenly. */
typedef struct fa_sections {
    int heads, last_heads; /* of a section; of the last one */
    int last_first;        /* first head of the last one */
} fa_sections;

__device__ __forceinline__ fa_sections fa_find_sections(const fa_params &p)
{
    constexpr int l2_bytes = 8 << 20, waves = 2;
    const int all = p.heads * p.batch, group = p.heads / p.kv_heads;
    fa_sections in;
    in.heads = min(max(2, l2_bytes / (4 * FA_DIM) / p.seq_kv) * group, all);
    in.last_heads = min(max(in.heads, (waves * p.sm_count + p.tiles_m - 1) / p.tiles_m), all);
    in.last_first = (all - in.last_heads) / in.heads * in.heads;
    in.last_heads = all - in.last_first;
    return in;
}

/* Tiles that run at the same time share K and V in L2. */
__device__ __forceinline__ fa_tile fa_tile_of(const fa_params &p, int index, int rows)
{
    int block_m, head_index;
    if (FA_CAUSAL) {
        const fa_sections in = fa_find_sections(p);
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
    return fa_tile_at(p, block_m, head_index, rows);
}

/* [rows, dim] from `row` on, as fa_boxes boxes of 64 columns. */
__device__ __forceinline__ void fa_load_boxes(fa_u32 to, const fa_tensor_map *map, fa_u32 bar, int rows, int row,
                                              int head, int batch)
{
#pragma unroll
    for (int box = 0; box < fa_boxes; ++box)
        fa_tma_load(to + box * rows * fa_box_row_bytes, map, bar, box * 64, row, head, batch);
}

/* s = Q K^T of one tile, issued but not committed. q, k: descriptor words (fa_wgmma_start). */
__device__ __forceinline__ void fa_issue_qk(float (&s)[FA_N / 2], fa_u32 q, fa_u32 k)
{
#pragma unroll
    for (int step = 0; step < fa_dim_pad / 16; ++step) {
        const fa_u64 a = fa_wgmma_desc(q + ((step / 4) * 64 * fa_box_row_bytes + (step % 4) * 32) / 16);
        const fa_u64 b = fa_wgmma_desc(k + ((step / 4) * FA_N * fa_box_row_bytes + (step % 4) * 32) / 16);
        fa_wgmma<FA_N>::ss(s, a, b, step > 0);
    }
}

/* Q of a warpgroup as operands in registers. q_s: address of its 64 rows. */
constexpr int fa_q_regs = fa_dim_pad / 4;

__device__ __forceinline__ void fa_take_q(fa_u32 (&q)[fa_q_regs], fa_u32 q_s, int thread)
{
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int step = 0; step < fa_dim_pad / 16; ++step)
        fa_ldmatrix_x4(q_s + (step / 4 * 64 + row) * fa_box_row_bytes + ((step % 4 * 2 + lane / 16) ^ (row % 8)) * 16,
                       &q[4 * step]);
}

/* s = Q K^T of one tile with Q in registers, issued but not committed. */
__device__ __forceinline__ void fa_issue_qk(float (&s)[FA_N / 2], const fa_u32 (&q)[fa_q_regs], fa_u32 k)
{
#pragma unroll
    for (int step = 0; step < fa_dim_pad / 16; ++step) {
        const fa_u64 b = fa_wgmma_desc(k + ((step / 4) * FA_N * fa_box_row_bytes + (step % 4) * 32) / 16);
        fa_wgmma<FA_N>::rs(s, &q[4 * step], b, step > 0);
    }
}

/* o += P V of one tile, or o = P V, issued but not committed. v: descriptor word with the leading bytes of its first
 * step; the block of ones is 16 rows that every step reads, so the distance to it shrinks as V advances. */
__device__ __forceinline__ void fa_issue_pv(float (&o)[fa_o_regs], const fa_u32 (&p)[FA_N / 4], fa_u32 v,
                                            int accumulate = 1)
{
    constexpr fa_u32 rows16 = 16 * fa_box_row_bytes;
    constexpr fa_u32 next = rows16 / 16 - (FA_SUM_BY_MMA ? fa_wgmma_leading(rows16) : 0);
#pragma unroll
    for (int step = 0; step < FA_N / 16; ++step)
        fa_wgmma<fa_o_columns>::rs_n(o, &p[4 * step], fa_wgmma_desc(v + step * next), step == 0 ? accumulate : 1);
}

/* Descriptor word of a V tile. ones: address of the block of ones, after it. */
__device__ __forceinline__ fa_u32 fa_v_word(fa_u32 v_s, fa_u32 ones_s)
{
    return fa_wgmma_start(v_s) + fa_wgmma_leading(FA_SUM_BY_MMA ? ones_s - v_s : FA_N * fa_box_row_bytes);
}

__device__ __forceinline__ void fa_fill_ones(unsigned char *ones_s, int thread, int threads)
{
    for (int i = thread; i < fa_ones_bytes / 4; i += threads)
        reinterpret_cast<fa_u32 *>(ones_s)[i] = 0x3c003c00u;
}

/* Accumulator layout of S is, packed in pairs, the layout of A: no data moves. */
__device__ __forceinline__ void fa_pack_p(const float (&s)[FA_N / 2], fa_u32 (&p)[FA_N / 4])
{
#pragma unroll
    for (int i = 0; i < FA_N / 4; ++i)
        p[i] = pack_half2(s[2 * i], s[2 * i + 1]);
}

/* Four words per lane, w[j] = word of column group j: afterwards lane t of a quad holds the four words of group t. */
__device__ __forceinline__ uint4 fa_quad_transpose(const fa_u32 (&w)[4], int lane)
{
    const bool odd = lane & 1, high = lane & 2;
    const fa_u32 x = __shfl_xor_sync(0xffffffffu, odd ? w[0] : w[1], 1);
    const fa_u32 y = __shfl_xor_sync(0xffffffffu, odd ? w[2] : w[3], 1);
    const fa_u32 a0 = odd ? x : w[0], a1 = odd ? w[1] : x;
    const fa_u32 b0 = odd ? y : w[2], b1 = odd ? w[3] : y;
    const fa_u32 u = __shfl_xor_sync(0xffffffffu, high ? a0 : b0, 2);
    const fa_u32 v = __shfl_xor_sync(0xffffffffu, high ? a1 : b1, 2);
    return high ? make_uint4(u, v, b0, b1) : make_uint4(a0, a1, u, v);
}

/* A row that sees no key has no sum. One instruction, within an ulp of 1 / sum, far below what FP16 keeps. */
__device__ __forceinline__ float fa_inverse_or_zero(float sum) { return sum > 0.0f ? fa_reciprocal(sum) : 0.0f; }

/* O = o * scale of a warp's 16 rows from `row` on, straight from the registers, 16 bytes per lane. */
__device__ __forceinline__ void fa_store_o(const fa_params &p, const float (&o)[fa_o_regs], const float (&scale)[2],
                                           int batch, int head, int row, int lane)
{
    __half *o_g = static_cast<__half *>(p.o) + batch * p.o_stride_b + head * p.o_stride_h;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int query = row + lane / 4 + 8 * h;
        __half *row_g = o_g + query * p.o_stride_s;
#pragma unroll
        for (int group = 0; group < fa_dim_pad / 32; ++group) {
            fa_u32 w[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                w[j] =
                    pack_half2(o[16 * group + 4 * j + 2 * h] * scale[h], o[16 * group + 4 * j + 2 * h + 1] * scale[h]);
            const uint4 out = fa_quad_transpose(w, lane);
            const int column = group * 32 + lane % 4 * 8;
            if (query < p.seq_q && column < FA_DIM)
                *reinterpret_cast<uint4 *>(row_g + column) = out;
        }
    }
}

#endif
