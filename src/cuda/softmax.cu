/* Row softmax between the two GEMMs of the unfused `cublas` baseline.
 * idea:        a team of warps keeps its row's scores in registers: one read of S, and the weights written over it.
 * predecessor: none: the part of unfused attention that the GEMM library does not have.
 * tile knobs:  none; the launch picks the team: 512 keys per warp, 1 warp (8 rows per block) to 8 (one row per block).
 * layout:      no dynamic shared memory. A row of scores is `ld` floats; its weights take their first 2*ld bytes.
 * limits:      ld a multiple of 4, >= seq_kv; scores 16-byte aligned. Beyond 4,096 keys a row is read twice. */
#include "../../kernels/shared/prims.cuh"

#include <cuda_bf16.h>
#include <math_constants.h>

static constexpr int LANES = 32;
static constexpr int MAX_WARPS = 8;
static constexpr int VECTORS = 4;                     /* float4 loads in flight per lane */
static constexpr int WARP_KEYS = LANES * 4 * VECTORS; /* keys of one warp in one step */

/* The threads that share a row: `warps` of them, this one being thread `rank`. */
struct row_team {
    int warps, rank;
};

__device__ static void team_sync(row_team team)
{
    if (team.warps == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* Scores of this thread in one step, in units of log2(e); -inf from `keys` on, so that exp2 makes them 0. */
struct thread_scores {
    float value[VECTORS][4];
};

__device__ static int column_of(row_team team, int base, int vector)
{
    return base + (vector * team.warps * LANES + team.rank) * 4;
}

__device__ static thread_scores load_scores(row_team team, const float *row_g, int base, int keys, float scale_log2)
{
    thread_scores scores;
#pragma unroll
    for (int vector = 0; vector < VECTORS; vector++) {
        const int column = column_of(team, base, vector);
        float4 raw = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (column < keys)
            raw = *reinterpret_cast<const float4 *>(row_g + column);
        const float flat[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            scores.value[vector][i] = column + i < keys ? flat[i] * scale_log2 : -CUDART_INF_F;
    }
    return scores;
}

/* exp2(score - origin) with an origin that is never -inf: a thread past the end of a row has seen nothing. */
__device__ static float origin_of(float high) { return high == -CUDART_INF_F ? 0.0f : high; }

/* Running maximum and sum of exp2. A NaN score makes the sum NaN, and so the whole row. */
struct running {
    float high, sum;
};

__device__ static running include(running so_far, const thread_scores &scores)
{
    float high = so_far.high;
#pragma unroll
    for (int i = 0; i < VECTORS * 4; i++)
        high = fmaxf(high, scores.value[i / 4][i % 4]);
    float sum = so_far.sum * exp2f(so_far.high - origin_of(high));
#pragma unroll
    for (int i = 0; i < VECTORS * 4; i++)
        sum += exp2f(scores.value[i / 4][i % 4] - origin_of(high));
    return {high, sum};
}

__device__ static running merge(running a, running b)
{
    const float high = fmaxf(a.high, b.high), origin = origin_of(high);
    return {high, a.sum * exp2f(a.high - origin) + b.sum * exp2f(b.high - origin)};
}

/* Every thread of the team gets the result. On return every thread has read what it read before. */
__device__ static running reduce(row_team team, running mine)
{
    __shared__ running partial_s[MAX_WARPS];
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        mine = merge(mine,
                     {__shfl_xor_sync(0xffffffffu, mine.high, offset), __shfl_xor_sync(0xffffffffu, mine.sum, offset)});
    if (team.warps == 1) /* lanes merge in different orders: lane 0 has the word */
        return {__shfl_sync(0xffffffffu, mine.high, 0), __shfl_sync(0xffffffffu, mine.sum, 0)};
    if (team.rank % LANES == 0)
        partial_s[team.rank / LANES] = mine;
    __syncthreads();
    running all = partial_s[0];
    for (int warp = 1; warp < team.warps; warp++)
        all = merge(all, partial_s[warp]);
    return all;
}

/* Two weights as ELEMENTs, `low` in the low bits. */
template <class ELEMENT>
__device__ static unsigned pack_weights(float low, float high);

template <>
__device__ unsigned pack_weights<__half>(float low, float high)
{
    return pack_half2(low, high);
}

template <>
__device__ unsigned pack_weights<__nv_bfloat16>(float low, float high)
{
    const __nv_bfloat162 packed = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&packed);
}

template <class ELEMENT>
__device__ static void store_weights(row_team team, ELEMENT *weights_g, int base, int seq_kv,
                                     const thread_scores &scores, float origin, float factor)
{
#pragma unroll
    for (int vector = 0; vector < VECTORS; vector++) {
        const int column = column_of(team, base, vector);
        if (column >= seq_kv)
            continue;
        const float *value = scores.value[vector];
        *reinterpret_cast<uint2 *>(weights_g + column) =
            make_uint2(pack_weights<ELEMENT>(exp2f(value[0] - origin) * factor, exp2f(value[1] - origin) * factor),
                       pack_weights<ELEMENT>(exp2f(value[2] - origin) * factor, exp2f(value[3] - origin) * factor));
    }
}

/* scores: [rows, ld] FP32, row r being query row (first_row + r) % seq_q. In place: weights [rows, 2*ld] of type
 * ELEMENT, columns < seq_kv. `team_warps` warps share a row: 1, with as many rows in a block as warps, or all. */
template <class ELEMENT>
__device__ static void softmax(float *scores, fa_i64 ld, fa_i64 rows, fa_i64 first_row, fa_i32 seq_q, fa_i32 seq_kv,
                               fa_i32 causal, fa_f32 scale, fa_i32 team_warps)
{
    const int rows_per_block = static_cast<int>(blockDim.x) / (LANES * team_warps);
    const row_team team = {team_warps, static_cast<int>(threadIdx.x) % (LANES * team_warps)};
    const fa_i64 row = static_cast<fa_i64>(blockIdx.x) * rows_per_block + threadIdx.x / (LANES * team_warps);
    if (row >= rows) /* only where a row is one warp's: no barrier of the block is ahead */
        return;
    int keys = seq_kv;
    if (causal) {
        const int query = static_cast<int>((first_row + row) % seq_q);
        keys = max(0, min(seq_kv, query + 1 + seq_kv - seq_q));
    }
    const float scale_log2 = scale * 1.4426950408889634f;
    const int step = team_warps * WARP_KEYS;
    float *row_g = scores + row * ld;
    ELEMENT *weights_g = reinterpret_cast<ELEMENT *>(row_g);

    const thread_scores first = load_scores(team, row_g, 0, keys, scale_log2);
    running stats = include({-CUDART_INF_F, 0.0f}, first);
    for (int base = step; base < keys; base += step)
        stats = include(stats, load_scores(team, row_g, base, keys, scale_log2));
    stats = reduce(team, stats);
    const float origin = origin_of(stats.high), factor = keys > 0 ? 1.0f / stats.sum : 0.0f;

    /* A step writes bytes [2 base, 2 base + 2 step): scores that were read in this step or before it, so one barrier
     * between its loads and its stores is enough. */
    team_sync(team);
    store_weights(team, weights_g, 0, seq_kv, first, origin, factor);
    for (int base = step; base < seq_kv; base += step) {
        const thread_scores again = load_scores(team, row_g, base, keys, scale_log2);
        team_sync(team);
        store_weights(team, weights_g, base, seq_kv, again, origin, factor);
    }
}

extern "C" __global__ void __launch_bounds__(LANES *MAX_WARPS)
    fa_softmax(float *scores, fa_i64 ld, fa_i64 rows, fa_i64 first_row, fa_i32 seq_q, fa_i32 seq_kv, fa_i32 causal,
               fa_f32 scale, fa_i32 team_warps)
{
    softmax<__half>(scores, ld, rows, first_row, seq_q, seq_kv, causal, scale, team_warps);
}

extern "C" __global__ void __launch_bounds__(LANES *MAX_WARPS)
    fa_softmax_bf16(float *scores, fa_i64 ld, fa_i64 rows, fa_i64 first_row, fa_i32 seq_q, fa_i32 seq_kv, fa_i32 causal,
                    fa_f32 scale, fa_i32 team_warps)
{
    softmax<__nv_bfloat16>(scores, ld, rows, first_row, seq_q, seq_kv, causal, scale, team_warps);
}
