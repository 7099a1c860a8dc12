/* How mma and mma_decode combine the parts that groups of warps and split blocks have of a tile. A part is FA_M rows of
 * PART_PITCH floats: outputs, then the row's maximum (the reference of its exponents) and its sum. The groups' parts
 * meet in shared memory, those of the splits in the workspace: a counter of 16 bytes per block, then a part per block.
 * The last block of a tile to arrive combines them in the order of the splits, and resets the counter. */
#ifndef FA_MMA_COMBINE_CUH
#define FA_MMA_COMBINE_CUH

#include "shared/common.cuh"

constexpr int PART_COLUMNS = (FA_DIM_V + 15) / 16 * 16;
constexpr int PART_PITCH = PART_COLUMNS + 8; /* 4 rows of a store's half warp fall in different banks */
constexpr int MAX_AT = PART_COLUMNS, SUM_AT = PART_COLUMNS + 1;
constexpr int PART_FLOATS = FA_M * PART_PITCH;
constexpr int WORKSPACE_BYTES = FA_SPLITS > 1 ? 16 + PART_FLOATS * 4 : 0; /* of a block */

/* 8 columns of a row, its maximum and its sum. */
struct partial {
    float o[8], max, sum;
};

/* Row h of a lane's two rows in a 16-row band, from accumulators of mma.sync; max and sum are equal in the quad. */
__device__ __forceinline__ void put_part_row(float *row_s, const float (&o)[PART_COLUMNS / 8][4], int h, float max,
                                             float sum, int lane)
{
    if (lane % 4 == 0) {
        row_s[MAX_AT] = max;
        row_s[SUM_AT] = sum;
    }
#if FA_FP8_KV /* of 16 columns the even ones, then the odd ones */
#pragma unroll
    for (int t = 0; t < PART_COLUMNS / 8; t += 2)
        *reinterpret_cast<float4 *>(row_s + t * 8 + lane % 4 * 4) =
            make_float4(o[t][2 * h], o[t + 1][2 * h], o[t][2 * h + 1], o[t + 1][2 * h + 1]);
#else
#pragma unroll
    for (int t = 0; t < PART_COLUMNS / 8; ++t)
        *reinterpret_cast<float2 *>(row_s + t * 8 + lane % 4 * 2) = make_float2(o[t][2 * h], o[t][2 * h + 1]);
#endif
}

/* Combines `count` parts, which follow each other, for 8 columns of a row. */
template <class COUNT>
__device__ __forceinline__ partial combine(const float *parts, int row, int chunk, COUNT count)
{
    partial all = {{0, 0, 0, 0, 0, 0, 0, 0}, NO_MAX, 0};
    parts += row * PART_PITCH;
#pragma unroll 8
    for (int i = 0; i < count; ++i)
        all.max = fmaxf(all.max, parts[i * PART_FLOATS + MAX_AT]);
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
        const float *from = parts + i * PART_FLOATS;
        const float4 lo = *reinterpret_cast<const float4 *>(from + chunk * 8);
        const float4 hi = *reinterpret_cast<const float4 *>(from + chunk * 8 + 4);
        const float values[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        const float weight = exp2_approx(from[MAX_AT] - all.max);
        all.sum += weight * from[SUM_AT];
#pragma unroll
        for (int e = 0; e < 8; ++e)
            all.o[e] += weight * values[e];
    }
    return all;
}

/* Combines the parts of GROUPS groups in shared memory, and those of `splits` blocks, of which this is number `split`.
 * counter: of the tile; first: the first of its parts. store(row, chunk, partial) stores 8 columns of one of the tile's
 * first `rows` rows. The block's threads have synchronised before. */
template <int GROUPS, int THREADS, class COUNT, class STORE>
__device__ __forceinline__ void combine_splits(const fa_params &p, float *parts_s, int counter, fa_i64 first, int split,
                                               COUNT splits, int rows, const STORE &store)
{
    constexpr int CHUNKS = FA_DIM_V / 8;
    int *counter_g = static_cast<int *>(p.workspace) + counter * 4;
    float *parts_g =
        reinterpret_cast<float *>(static_cast<char *>(p.workspace) + gridDim.x * 16ll) + first * PART_FLOATS;
    for (int item = threadIdx.x; item < rows * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        const partial all = combine(parts_s, row, chunk, known<GROUPS>());
        if (splits == 1) {
            store(row, chunk, all);
            continue;
        }
        float *to_g = parts_g + split * PART_FLOATS + row * PART_PITCH;
        *reinterpret_cast<float4 *>(to_g + chunk * 8) = make_float4(all.o[0], all.o[1], all.o[2], all.o[3]);
        *reinterpret_cast<float4 *>(to_g + chunk * 8 + 4) = make_float4(all.o[4], all.o[5], all.o[6], all.o[7]);
        if (chunk == 0) {
            to_g[MAX_AT] = all.max;
            to_g[SUM_AT] = all.sum;
        }
    }
    if (splits == 1)
        return;
    __threadfence(); /* this block's part before its arrival ... */
    __syncthreads();
    int *arrived_s = reinterpret_cast<int *>(parts_s);
    if (threadIdx.x == 0)
        *arrived_s = atomicAdd(counter_g, 1);
    __syncthreads();
    if (*arrived_s != splits - 1)
        return;
    __threadfence(); /* ... and the others' arrivals before their parts */
    for (int item = threadIdx.x; item < rows * CHUNKS; item += THREADS)
        store(item / CHUNKS, item % CHUNKS, combine(parts_g, item / CHUNKS, item % CHUNKS, splits));
    if (threadIdx.x == 0)
        *counter_g = 0;
}

/* The same where every tile has FA_SPLITS splits. unit: the tile's number. */
template <int GROUPS, int THREADS, class STORE>
__device__ __forceinline__ void combine_parts(const fa_params &p, float *parts_s, int unit, int split, int rows,
                                              const STORE &store)
{
    combine_splits<GROUPS, THREADS>(p, parts_s, unit, static_cast<fa_i64>(unit) * FA_SPLITS, split, known<FA_SPLITS>(),
                                    rows, store);
}

#endif
