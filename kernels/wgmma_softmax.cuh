/* The online softmax of the wgmma kernels, on the accumulator of S in registers. */
#ifndef FA_WGMMA_SOFTMAX_CUH
#define FA_WGMMA_SOFTMAX_CUH

#include "wgmma_parts.cuh"

/* P may grow to 2^RESCALE_LOG2 before its reference follows: far inside FP16. In FP32 it is finite up to
 * 2^OVERFLOW_LOG2. */
constexpr int RESCALE_LOG2 = 8, OVERFLOW_LOG2 = 100;

/* Sees keys below `limit[h]`, counted from the tile's first key. */
__device__ __forceinline__ void mask_columns(float (&s)[FA_N / 2], const int (&limit)[2], int lane)
{
    const int limit0 = limit[0] - 2 * (lane % 4), limit1 = limit[1] - 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i) {
        const int column = i / 4 * 8 + i % 2;
        if (column >= ((i / 2) % 2 ? limit1 : limit0))
            s[i] = -FA_INF;
    }
}

/* Keys before this one are seen by all rows from `row` on. */
__device__ __forceinline__ int unmasked_keys(const fa_params &p, int row)
{
    return FA_CAUSAL ? min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q) : p.seq_kv;
}

/* The keys of tile `n` that the thread's rows may see, when not all of them. */
__device__ __forceinline__ void mask_tile(const fa_params &p, float (&s)[FA_N / 2], int n, int row, int thread)
{
    const int key0 = n * FA_N;
    if (key0 + FA_N <= unmasked_keys(p, row))
        return;
    int limit[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int query = row + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
        limit[h] = (FA_CAUSAL ? min(p.seq_kv, query + 1 + p.seq_kv - p.seq_q) : p.seq_kv) - key0;
    }
    mask_columns(s, limit, thread % 32);
}

/* Of the thread's two rows. max: what is subtracted in the exponent, in log2 units; NO_MAX: no key seen yet.
 * sum: of this thread's columns only (unless the products sum). */
typedef struct softmax_rows {
    float max[2], sum[2];
} softmax_rows;

constexpr float NO_MAX = -1e30f;

__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

__device__ __forceinline__ void tile_row_max(const float (&s)[FA_N / 2], float (&top)[2])
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float part[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            part[k] = s[(k / 2) * 4 + 2 * h + k % 2];
#pragma unroll
        for (int j = 2; j < FA_N / 8; ++j) {
            part[(j % 2) * 2] = fmaxf(part[(j % 2) * 2], s[4 * j + 2 * h]);
            part[(j % 2) * 2 + 1] = fmaxf(part[(j % 2) * 2 + 1], s[4 * j + 2 * h + 1]);
        }
        top[h] = quad_max(fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])));
    }
}

/* s becomes exp2(s * scale_log2 - max) and is added to the sums. Returns the bits of a number that no element is above:
 * of the largest of both rows, or of the larger sum of a row's elements here. Bits order like the numbers, because none
 * is negative, and integers have a maximum of three. */
__device__ __forceinline__ int exponentials(float (&s)[FA_N / 2], softmax_rows &rows, float scale_log2)
{
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int top[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < FA_N / 2; i += 2) {
        const int h = (i / 2) % 2;
        s[i] = exp2_approx(fmaf(s[i], scale_log2, -rows.max[h]));
        s[i + 1] = exp2_approx(fmaf(s[i + 1], scale_log2, -rows.max[h]));
        if (SUM_BY_MMA) {
            top[i / 2 % 4] = __vimax3_s32(top[i / 2 % 4], __float_as_int(s[i]), __float_as_int(s[i + 1]));
        } else {
            part[h + i / 4 % 2 * 2] += s[i] + s[i + 1];
        }
    }
    if (SUM_BY_MMA)
        return max(__vimax3_s32(top[0], top[1], top[2]), top[3]);
    part[0] += part[2];
    part[1] += part[3];
    rows.sum[0] += part[0];
    rows.sum[1] += part[1];
    return max(__float_as_int(part[0]), __float_as_int(part[1]));
}

/* S of the tile once more, by mma.sync, within a warp. q_s, k_s: addresses of the tiles. */
__device__ __forceinline__ void recompute_s(float (&s)[FA_N / 2], unsigned q_s, unsigned k_s, int thread)
{
    asm volatile("" : "+r"(q_s), "+r"(k_s), "+r"(thread));
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i)
        s[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < DIM_PAD / 16; ++step) {
        const int box = step / 4, chunk = step % 4 * 2;
        unsigned a[4];
        ldmatrix_x4_at(a, q_s + (box * 64 + row) * BOX_ROW_BYTES + ((chunk + lane / 16) ^ (row % 8)) * 16);
#pragma unroll
        for (int j = 0; j < FA_N / 8; ++j) {
            unsigned b[2];
            ldmatrix_x2_at(b, k_s + (box * FA_N + 8 * j + lane % 8) * BOX_ROW_BYTES +
                                  ((chunk + lane / 8 % 2) ^ (lane % 8)) * 16);
            mma_m16n8k16(reinterpret_cast<float(&)[4]>(s[4 * j]), a, b);
        }
    }
}

/* Two halves, in the order of the program: many loads at once would take registers. */
__device__ __forceinline__ unsigned ld_global_32_ordered(const __half *from)
{
    unsigned pair;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(pair) : "l"(from) : "memory");
    return pair;
}

/* The same where the buffer of K is another tile's already: K from where it came. tile: its head and batch as z and w. */
__device__ __forceinline__ void recompute_s_from_global(const fa_params &p, float (&s)[FA_N / 2], unsigned q_s,
                                                        const int4 &tile, int key0, int thread)
{
    asm volatile("" : "+r"(q_s), "+r"(key0), "+r"(thread));
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16, left = p.seq_kv - key0 - lane / 4;
    const int kv_head = static_cast<unsigned>(tile.z) / static_cast<unsigned>(p.heads / p.kv_heads);
    const __half *k_g = static_cast<const __half *>(p.k) + tile.w * p.k_stride_b + kv_head * p.k_stride_h +
                        (key0 + lane / 4) * p.k_stride_s + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i)
        s[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < (FA_DIM + 15) / 16; ++step) {
        unsigned a[4];
        ldmatrix_x4_at(a, q_s + (step / 4 * 64 + row) * BOX_ROW_BYTES + ((step % 4 * 2 + lane / 16) ^ (row % 8)) * 16);
        const __half *from = k_g + 16 * step;
#pragma unroll
        for (int j = 0; j < FA_N / 8; ++j) {
            unsigned b[2] = {0, 0};
            if (8 * j < left) {
                b[0] = ld_global_32_ordered(from);
                if (FA_DIM % 16 == 0 || 16 * step + 8 < FA_DIM)
                    b[1] = ld_global_32_ordered(from + 8);
            }
            mma_m16n8k16(reinterpret_cast<float(&)[4]>(s[4 * j]), a, b);
            from += 8 * p.k_stride_s;
            asm volatile("" : "+l"(from));
        }
    }
}

/* Of a block's first tile: the exact maxima. */
__device__ __forceinline__ void first_row_ref(const float (&s)[FA_N / 2], softmax_rows &rows, float scale_log2)
{
    float top[2];
    tile_row_max(s, top);
#pragma unroll
    for (int h = 0; h < 2; ++h)
        rows.max[h] = fmaxf(top[h] * scale_log2, NO_MAX);
}

/* Softmax of one tile: s (masked here) becomes P. The exponentials do not wait for the tile's maxima: they use the
 * reference of the tiles before. Only if some P of the warp came out above 2^RESCALE_LOG2 the reference is raised
 * and P, the sums and, by the caller, O are scaled with `by`: then it returns true. Should P have overflowed, S is
 * computed anew, by `again`. */
template <class AGAIN>
__device__ __forceinline__ bool online_softmax(const fa_params &p, float (&s)[FA_N / 2], softmax_rows &rows,
                                               float (&by)[2], int n, int row, int thread, float scale_log2,
                                               bool masked, const AGAIN &again)
{
    if (masked)
        mask_tile(p, s, n, row, thread);
    const float before[2] = {rows.sum[0], rows.sum[1]};
    const int top = exponentials(s, rows, scale_log2);
    if (!__any_sync(0xffffffffu, top > (127 + RESCALE_LOG2) << 23))
        return false;
    const float old[2] = {rows.max[0], rows.max[1]};
    if (__any_sync(0xffffffffu, top > (127 + OVERFLOW_LOG2) << 23)) {
        float exact[2];
        again(s);
        if (masked)
            mask_tile(p, s, n, row, thread);
        tile_row_max(s, exact);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            rows.max[h] = fmaxf(rows.max[h], exact[h] * scale_log2);
            by[h] = exp2_approx(old[h] - rows.max[h]);
            rows.sum[h] = before[h] * by[h];
        }
        exponentials(s, rows, scale_log2);
        return true;
    }
    float tops[2];
    tile_row_max(s, tops);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        rows.max[h] += log2f(fmaxf(tops[h], 1.0f));
        by[h] = exp2_approx(old[h] - rows.max[h]);
        rows.sum[h] *= by[h];
    }
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i)
        s[i] *= by[(i / 2) % 2];
    return true;
}

/* The same where K still lies in shared memory. */
__device__ __forceinline__ bool online_softmax(const fa_params &p, float (&s)[FA_N / 2], softmax_rows &rows,
                                               float (&by)[2], int n, int row, int thread, float scale_log2,
                                               unsigned q_s, unsigned k_s)
{
    return online_softmax(p, s, rows, by, n, row, thread, scale_log2, true,
                          [&](float(&anew)[FA_N / 2]) { recompute_s(anew, q_s, k_s, thread); });
}

__device__ __forceinline__ void rescale_o(float (&o)[O_REGS], const float (&by)[2])
{
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        o[i] *= by[(i / 2) % 2];
}

#endif
