/* The online softmax of the wgmma kernels, on the accumulator of S in registers.
 *
 * A row's reference is what its scores are reduced by in the exponent. The first key tile sets it to the exact maximum.
 * Later tiles use it as it stands, so their exponentials wait for no maximum; only when some P of the warp comes out
 * above 2^RESCALE_LOG2 is the reference raised, and P, the sums and O are rescaled. */
#pragma once

#include "shared/common.cuh"
#include "wgmma/parts.cuh"

/* 2^8 is far inside both types. In FP32 a P up to 2^100 is finite and can be scaled; above, S is computed again. */
constexpr int RESCALE_LOG2 = 8, OVERFLOW_LOG2 = 100;

/* A thread's two rows. ref: the reference, in log2 units. sum: of this thread's columns only, unless SUM_BY_MMA. */
struct softmax_rows {
    float ref[2], sum[2];
};

/* Masks the keys from limit[h] on, or those BEFORE it, counted from the tile's first key. Packed rows have few keys to
 * mask: there, 16 columns at a time, those that all rows see are passed, up to all_see or from there on. */
template <bool BEFORE = false>
__device__ __forceinline__ void mask_columns(float (&s_r)[FA_N / 2], const int (&limit)[2], int lane, int all_see = 0)
{
    const int limit0 = limit[0] - 2 * (lane % 4), limit1 = limit[1] - 2 * (lane % 4);
#pragma unroll
    for (int part = 0; part < FA_N; part += 16) {
        if (PACKED && (BEFORE ? part >= all_see : part + 16 <= all_see)) [[likely]]
            continue;
#pragma unroll
        for (int i = part / 2; i < part / 2 + 8; ++i) {
            const int column = i / 4 * 8 + i % 2, here = (i / 2) % 2 ? limit1 : limit0;
            if (BEFORE ? column < here : column >= here)
                s_r[i] = -INF;
        }
    }
}

/* All rows from `row` on see the keys before this one. */
__device__ __forceinline__ int unmasked_keys(const fa_params &p, int row)
{
    return FA_CAUSAL ? min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q) : p.seq_kv;
}

/* Masks the keys of key tile `key_tile` that the thread's rows do not see. row: first row of the warpgroup. */
__device__ __forceinline__ void mask_tile(const fa_params &p, float (&s_r)[FA_N / 2], int key_tile, int row, int thread)
{
    const int key0 = key_tile * FA_N;
    if (key0 + FA_N <= unmasked_keys(p, row))
        return;
    int limit[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int query = row + thread / 32 * 16 + thread % 32 / 4 + 8 * h;
        limit[h] = (FA_CAUSAL ? min(p.seq_kv, query + 1 + p.seq_kv - p.seq_q) : p.seq_kv) - key0;
    }
    mask_columns(s_r, limit, thread % 32);
}

/* Masks the keys of tile.key_tile that the thread's rows do not see: those past their last key, and those before their
 * first. */
__device__ __forceinline__ void mask_tile(const fa_params &p, float (&s_r)[FA_N / 2], const work_tile &tile, int thread)
{
#if KEY_RANGES
    const int key0 = tile.key_tile * FA_N;
    const bool before = HAS_FIRST_KEY && key0<tile.seen_by_all.first, past = key0 + FA_N> tile.seen_by_all.end;
    if (!before && !past)
        return;
    int first[2], end[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = PACKED ? tile.query : tile.row + thread / 32 * 16;
        const key_range keys = keys_seen(p, tile.seq, row + thread % 32 / 4 + 8 * h);
        first[h] = keys.first - tile.first_key - key0;
        end[h] = keys.end - tile.first_key - key0;
    }
    if (past)
        mask_columns(s_r, end, thread % 32, tile.seen_by_all.end - key0);
    if (before)
        mask_columns<true>(s_r, first, thread % 32, tile.seen_by_all.first - key0);
#else
    mask_tile(p, s_r, tile.key_tile, tile.row, thread);
#endif
}

#if FA_LSE
/* Stores the log-sum-exp of a warp's 16 rows from `row` on; every thread of a quad has its two rows' values. */
__device__ __forceinline__ void store_lse_of_rows(const fa_params &p, const float (&lse)[2], const sequence &seq,
                                                  int head, int row, int lane)
{
    const int query = row + lane / 4;
    if (lane % 4 != 0 || p.lse == nullptr)
        return;
    float *to_g = p.lse + (HAS_VARLEN ? 0 : seq.batch * p.lse_stride_b) + head * p.lse_stride_h +
                  (seq.first_q + query) * p.lse_stride_s;
    if (query < seq.seq_q)
        to_g[0] = lse[0];
    if (query + 8 < seq.seq_q)
        to_g[8 * p.lse_stride_s] = lse[1];
}
#endif

__device__ __forceinline__ void row_max_of(const float (&s_r)[FA_N / 2], float (&row_max)[2])
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float part[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            part[k] = s_r[(k / 2) * 4 + 2 * h + k % 2];
#pragma unroll
        for (int j = 2; j < FA_N / 8; ++j) {
            part[(j % 2) * 2] = fmaxf(part[(j % 2) * 2], s_r[4 * j + 2 * h]);
            part[(j % 2) * 2 + 1] = fmaxf(part[(j % 2) * 2 + 1], s_r[4 * j + 2 * h + 1]);
        }
        row_max[h] = quad_max(fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])));
    }
}

/* P = exp2(S * scale_log2 - ref), in place, and added to the sums. Returns the bits of an upper bound of P: the
 * largest P, or the larger of the two rows' sums here. Bits order like the numbers, because none is negative, and
 * integers have a maximum of three. ONE_ROW: a thread's second row does not exist, its P is 0. */
template <bool ONE_ROW = false>
__device__ __forceinline__ int exponentials(float (&s_r)[FA_N / 2], softmax_rows &rows, float scale_log2)
{
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int largest[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < FA_N / 2; i += 2) {
        const int h = (i / 2) % 2;
        if (ONE_ROW && h == 1) {
            s_r[i] = s_r[i + 1] = 0.0f;
            continue;
        }
        s_r[i] = exp2_approx(fmaf(s_r[i], scale_log2, -rows.ref[h]));
        s_r[i + 1] = exp2_approx(fmaf(s_r[i + 1], scale_log2, -rows.ref[h]));
        if (SUM_BY_MMA) {
            largest[i / 2 % 4] = __vimax3_s32(largest[i / 2 % 4], __float_as_int(s_r[i]), __float_as_int(s_r[i + 1]));
        } else {
            part[h + i / 4 % 2 * 2] += s_r[i] + s_r[i + 1];
        }
    }
    if (SUM_BY_MMA)
        return max(__vimax3_s32(largest[0], largest[1], largest[2]), largest[3]);
    part[0] += part[2];
    part[1] += part[3];
    rows.sum[0] += part[0];
    rows.sum[1] += part[1];
    return max(__float_as_int(part[0]), __float_as_int(part[1]));
}

/* S of the tile once more, by mma.sync within a warp. q_s, k_s: addresses of the tiles. Rare, so it must be small. */
__device__ __forceinline__ void recompute_s(float (&s_r)[FA_N / 2], unsigned q_s, unsigned k_s, int thread)
{
    make_opaque(q_s, k_s, thread); /* the compiler would keep these addresses in registers through the main loop */
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
    clear(s_r);
#pragma unroll 1
    for (int step = 0; step < DIM_K / 16; ++step) {
        const int box = step / BOX_STEPS, chunk = step % BOX_STEPS * 2;
        unsigned a[4];
        ldmatrix_x4_at(a, q_s + (box * 64 + row) * BOX_ROW_BYTES + ((chunk + lane / 16) ^ swizzle_of_row(row)) * 16);
#pragma unroll
        for (int j = 0; j < FA_N / 8; ++j) {
            unsigned b[2];
            ldmatrix_x2_at(b, k_s + (box * FA_N + 8 * j + lane % 8) * BOX_ROW_BYTES +
                                  ((chunk + lane / 8 % 2) ^ swizzle_of_row(lane % 8)) * 16);
            mma_m16n8k16(reinterpret_cast<float(&)[4]>(s_r[4 * j]), a, b);
        }
    }
}

#if !FA_FP8_KV
/* recompute_s where the buffer of K holds another tile already: reads K from memory. */
__device__ __forceinline__ void recompute_s_from_memory(const fa_params &p, float (&s_r)[FA_N / 2], unsigned q_s,
                                                        const announced_tile &tile, int key0, int thread)
{
    make_opaque(q_s, key0, thread);
    const sequence seq = sequence_of_tile(p, tile);
    const int lane = thread % 32, row = thread / 32 * 16 + lane % 16, left = seq.seq_kv - key0 - lane / 4;
    const int kv_head = static_cast<unsigned>(tile.z) / static_cast<unsigned>(p.heads / p.kv_heads);
#if FA_FEATURES & FA_FEATURE_PAGED
    const paged_rows rows = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, seq.batch, kv_head);
#else
    const fa_element *k_g = key_rows(p.k, seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, kv_head) +
                            (key0 + lane / 4) * p.k_stride_s + lane % 4 * 2;
#endif
    clear(s_r);
#pragma unroll 1
    for (int step = 0; step < DIM_K / 16; ++step) {
        unsigned a[4];
        ldmatrix_x4_at(a, q_s + (step / BOX_STEPS * 64 + row) * BOX_ROW_BYTES +
                              ((step % BOX_STEPS * 2 + lane / 16) ^ swizzle_of_row(row)) * 16);
#if !(FA_FEATURES & FA_FEATURE_PAGED)
        const fa_element *from_g = k_g + column_of_place(16 * step);
#endif
#pragma unroll
        for (int j = 0; j < FA_N / 8; ++j) {
            unsigned b[2] = {0, 0};
            if (8 * j < left) {
#if FA_FEATURES & FA_FEATURE_PAGED
                const fa_element *from_g =
                    row_at(rows, key0 + lane / 4 + 8 * j, column_of_place(16 * step) + lane % 4 * 2);
#endif
                b[0] = ld_global_4_ordered(from_g);
                if (FA_DIM % 16 == 0 || 16 * step + 8 < FA_DIM)
                    b[1] = ld_global_4_ordered(from_g + 8);
            }
            mma_m16n8k16(reinterpret_cast<float(&)[4]>(s_r[4 * j]), a, b);
#if !(FA_FEATURES & FA_FEATURE_PAGED)
            from_g += 8 * p.k_stride_s;
            make_opaque(from_g);
#endif
        }
    }
}
#endif

/* Softmax of a row's first key tile: the reference is its exact maximum. */
__device__ __forceinline__ void first_softmax(float (&s_r)[FA_N / 2], softmax_rows &rows, float scale_log2)
{
    float row_max[2];
    row_max_of(s_r, row_max);
#pragma unroll
    for (int h = 0; h < 2; ++h)
        rows.ref[h] = fmaxf(row_max[h] * scale_log2, NO_MAX);
    exponentials(s_r, rows, scale_log2);
}

/* Rows that saw no key in the tiles before take their exact maxima as references: they have nothing to scale yet. A
 * causal diagonal that does not lie on the border of a key tile has such rows. */
__device__ __forceinline__ void first_ref_of_late_rows(const float (&s_r)[FA_N / 2], softmax_rows &rows,
                                                       float scale_log2)
{
    if (!__any_sync(ALL_LANES, rows.ref[0] == NO_MAX || rows.ref[1] == NO_MAX))
        return;
    float row_max[2];
    row_max_of(s_r, row_max);
#pragma unroll
    for (int h = 0; h < 2; ++h)
        if (rows.ref[h] == NO_MAX)
            rows.ref[h] = fmaxf(row_max[h] * scale_log2, NO_MAX);
}

/* Some P overflowed. recompute(s_r) brings S back, masked; the references become exact. */
template <class RECOMPUTE>
__device__ __forceinline__ void softmax_again(float (&s_r)[FA_N / 2], softmax_rows &rows, float (&rescale)[2],
                                              const float (&sum_before)[2], float scale_log2,
                                              const RECOMPUTE &recompute)
{
    const float ref_before[2] = {rows.ref[0], rows.ref[1]};
    float row_max[2];
    recompute(s_r);
    row_max_of(s_r, row_max);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        rows.ref[h] = fmaxf(rows.ref[h], row_max[h] * scale_log2);
        rescale[h] = exp2_approx(ref_before[h] - rows.ref[h]);
        rows.sum[h] = sum_before[h] * rescale[h];
    }
    exponentials(s_r, rows, scale_log2);
}

/* Some P is large but finite. The references rise by the logarithm of a row's largest P. */
__device__ __forceinline__ void raise_ref(float (&s_r)[FA_N / 2], softmax_rows &rows, float (&rescale)[2])
{
    const float ref_before[2] = {rows.ref[0], rows.ref[1]};
    float p_max[2];
    row_max_of(s_r, p_max);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        rows.ref[h] += log2f(fmaxf(p_max[h], 1.0f));
        rescale[h] = exp2_approx(ref_before[h] - rows.ref[h]);
        rows.sum[h] *= rescale[h];
    }
#pragma unroll
    for (int i = 0; i < FA_N / 2; ++i)
        s_r[i] *= rescale[(i / 2) % 2];
}

/* Softmax of a later key tile: S, masked, becomes P. Returns true when the reference was raised: the caller then
 * scales O by rescale. recompute(s_r): S of this tile again, masked. */
template <bool ONE_ROW = false, class RECOMPUTE>
__device__ __forceinline__ bool online_softmax(float (&s_r)[FA_N / 2], softmax_rows &rows, float (&rescale)[2],
                                               float scale_log2, const RECOMPUTE &recompute)
{
    const float sum_before[2] = {rows.sum[0], rows.sum[1]};
    const int bound = exponentials<ONE_ROW>(s_r, rows, scale_log2);
    if (!__any_sync(ALL_LANES, bound > (127 + RESCALE_LOG2) << 23))
        return false;
    if (__any_sync(ALL_LANES, bound > (127 + OVERFLOW_LOG2) << 23)) {
        softmax_again(s_r, rows, rescale, sum_before, scale_log2, recompute);
        return true;
    }
    raise_ref(s_r, rows, rescale);
    return true;
}

__device__ __forceinline__ void rescale_o(float (&o_r)[O_REGS], const float (&rescale)[2])
{
#pragma unroll
    for (int i = 0; i < O_REGS; ++i)
        o_r[i] *= rescale[(i / 2) % 2];
}
