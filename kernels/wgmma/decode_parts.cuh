/* How wgmma_decode ends: the factor of a row, and the parts of a tile of few rows, which a warpgroup combines. */
#pragma once

#include "shared/score.cuh"
#include "wgmma/packed_work.cuh"

/* The factor of a row's output, its sink included; stores the log-sum-exp where `says`. */
__device__ __forceinline__ float finish_row(const fa_params &p, const sequence &seq, const packed_tile &tile,
                                            const packed_row &row, float ref, float sum, bool says)
{
    const float weight = add_sink(p, row.head, ref, sum);
#if FA_LSE
    if (row.exists && says)
        store_lse(p, seq, row.head, row.query, log_sum_exp(ref, sum));
#endif
    return inverse_of_sum(sum) * weight * value_scale_of_kv_head(p, seq.batch, tile.kv_head);
}

#if FA_SPLITS > 1
/* Where a tile has 16 rows at most, one warp's, the four warps of the warpgroup combine the parts together, each a
 * quarter of the columns. ROWS of a lane: 1 where a tile has 8 rows at most, and the parts have no others. */
constexpr bool EIGHT_ROWS = PART_REGS % 8 == 0;
template <int ROWS>
constexpr int QUARTER = (PART_REGS * ROWS / 8 + 3) / 4; /* of a lane, in 16 bytes */
constexpr int PARTS_MOST = FA_DIM <= 128 ? 8 : 4;
/* Parts that are read together: as many in each round. */
template <int ROWS>
constexpr int PARTS_AT_ONCE = ceil_div(FA_SPLITS, ceil_div(FA_SPLITS, ROWS == 1 ? 2 * PARTS_MOST + 1 : PARTS_MOST));

/* All parts' columns of quarter `quarter`, in the order of the splits, and the sums of the rows. */
template <int ROWS, class COUNT>
__device__ __forceinline__ void read_quarters(const warp_parts &parts, float4 (&o_r)[QUARTER<ROWS>], row_sums &rows,
                                              int quarter, int lane, COUNT splits)
{
    constexpr int AT_ONCE = PARTS_AT_ONCE<ROWS>, WORDS = QUARTER<ROWS>, LAST = PART_REGS * ROWS / 8 - 1;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        o_r[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    rows = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
#pragma unroll 1
    for (int first = 0; first < splits; first += AT_ONCE) {
        float part_ref[AT_ONCE][2], part_sum[AT_ONCE][2];
        float4 part[AT_ONCE][WORDS];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) { /* past the last one the last again, with no weight */
            const float4 *from_g = parts.lane_g + min(first + j, splits - 1) * parts.stride;
            if constexpr (ROWS == 1) {
                const float2 sums = *sums_of_row(parts, min(first + j, splits - 1), lane);
                part_ref[j][0] = sums.x, part_sum[j][0] = sums.y;
            } else {
                const float4 sums = from_g[8 * PART_REGS];
                part_ref[j][0] = sums.x, part_ref[j][1] = sums.y;
                part_sum[j][0] = sums.z, part_sum[j][1] = sums.w;
            }
#pragma unroll
            for (int i = 0; i < WORDS; ++i)
                part[j][i] = from_g[32 * min(quarter * WORDS + i, LAST)];
        }
        float weight[AT_ONCE][2], before[2];
#pragma unroll
        for (int h = 0; h < ROWS; ++h) {
            float ref = rows.ref[h];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j)
                ref = fmaxf(ref, part_ref[j][h]);
            before[h] = exp2_approx(rows.ref[h] - ref);
            rows.ref[h] = ref;
            rows.sum[h] *= before[h];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                weight[j][h] = first + j < splits ? exp2_approx(part_ref[j][h] - ref) : 0.0f;
                rows.sum[h] = fmaf(weight[j][h], part_sum[j][h], rows.sum[h]);
            }
        }
        constexpr int H = ROWS - 1;
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            o_r[i].x *= before[0], o_r[i].y *= before[0], o_r[i].z *= before[H], o_r[i].w *= before[H];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                o_r[i].x = fmaf(weight[j][0], part[j][i].x, o_r[i].x);
                o_r[i].y = fmaf(weight[j][0], part[j][i].y, o_r[i].y);
                o_r[i].z = fmaf(weight[j][H], part[j][i].z, o_r[i].z);
                o_r[i].w = fmaf(weight[j][H], part[j][i].w, o_r[i].w);
            }
        }
    }
}

/* Stores a quarter of the columns of O, and by the first warp the log-sum-exp. */
template <int ROWS>
__device__ __forceinline__ void store_quarter(const fa_params &p, const packed_tile &tile, const sequence &seq,
                                              const float4 (&o_r)[QUARTER<ROWS>], const row_sums &sums, int quarter,
                                              int lane)
{
#pragma unroll
    for (int h = 0; h < ROWS; ++h) {
        const packed_row row = find_packed_row(tile, tile.row0 + lane / 4 + 8 * h);
        if (!row.exists)
            continue;
        const float scale = finish_row(p, seq, tile, row, sums.ref[h], sums.sum[h], quarter == 0 && lane % 4 == 0);
        fa_element *row_g = place_of_row(p, HAS_VARLEN ? seq : own_sequence(p, tile.batch), row.head, row.query);
        auto store = [&](int group, float x, float y) { /* of eight columns, two of them this lane's */
                                                        fa_element *to_g = row_g + 8 * group + lane % 4 * 2;
                                                        if (8 * group < FA_DIM)
                                                            *reinterpret_cast<unsigned *>(to_g) =
                                                                pack_elements(x * scale, y * scale);
        };
#pragma unroll
        for (int i = 0; i < QUARTER<ROWS>; ++i) {
            const int first = (quarter * QUARTER<ROWS> + i) * 2 / ROWS;
            if (h == 0)
                store(first, o_r[i].x, o_r[i].y);
            if (h == 1 || ROWS == 1)
                store(first + 2 - ROWS, o_r[i].z, o_r[i].w);
        }
    }
}

/* Writes the block's part of the only 8 * ROWS rows; the last to arrive combines all parts. */
template <int ROWS>
__device__ __forceinline__ void finish_by_warpgroup(const fa_params &p, const float (&o_r)[O_REGS],
                                                    const row_sums &sums, const packed_tile &tile, const sequence &seq,
                                                    unsigned last_s, int warp, int lane)
{
    warp_parts parts = parts_of_tile(p, tile, 0, lane);
    parts.stride = ROWS == 1 ? 4 * PART_REGS + 4 : PART_FLOATS / 4; /* one behind the other */
    if (warp == 0) {
        const bool last = write_part<ROWS>(parts, o_r, sums, tile.split, lane, splits_of(tile));
        if (lane == 0)
            st_shared_at(last_s, last ? 1.0f : 0.0f);
    }
    bar_sync(1, 128);
    if (ld_shared_at(last_s) == 0.0f)
        return;
    float4 all_r[QUARTER<ROWS>];
    row_sums all;
    read_quarters<ROWS>(parts, all_r, all, warp, lane, splits_of(tile));
    store_quarter<ROWS>(p, tile, seq, all_r, all, warp, lane);
}
#endif
