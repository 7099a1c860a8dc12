/* The plain reference: attention with every feature of fa_params.h in FP64, one warp per query row.
 * Idea: lanes are keys for Q K^T and columns for P V; a running maximum, so that no row needs memory of its length. No
 *   tiles, no other tricks: it is there to be right, and src/check/ compares it with the CPU before it is believed.
 * Output: FP64 into the workspace, not into o: [stored rows, dim_v], then the log-sum-exp, [stored rows]. A stored row
 *   is (batch * heads + head) * rows of a head + row. Rows between sequences are not written.
 * Backward (FA_FEATURES): the gradients from the forward that lies in the workspace, in the same way; a warp to each
 *   query row (dQ) and each key row (dK, dV).
 * Builds on: none.   Knobs: none.   Layout: a row of Q and 32 weights per warp in shared memory.
 * Limits: dim up to 576, dim_v up to 512. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "fa_params.h"

static constexpr int LANES = 32, ROWS = 8; /* rows of a block: a warp each */
static constexpr int COLUMNS = (FA_DIM_V + LANES - 1) / LANES;
static constexpr double NOTHING = -INFINITY;
static_assert(FA_DIM <= 576 && FA_DIM_V <= 512, "the plain reference serves --dim up to 576 and --dim-v up to 512");

FA_KERNEL_INFO(.threads = LANES * ROWS, .writes_lse = 1, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK |
                         FA_FEATURE_SOFTCAP | FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_BIAS | FA_FEATURE_MASK |
                         FA_FEATURE_DIM_V | FA_FEATURE_FP8 | FA_FEATURE_FP8_KV | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC);

/* A query row of its sequence, and where its Q and its sequence's K and V begin. */
struct query {
    const fa_element_q *q;
    const fa_element_kv *k, *v;
    const fa_i32 *pages; /* of the sequence */
    int batch, head;
    double scale, v_scale; /* with descales */
    fa_i64 row, position, seq_q, seq_kv;
};

/* False: the stored row lies between sequences, or there is no such row. */
__device__ static bool find(const fa_params &p, fa_i64 stored, query &at)
{
    const bool unlike = p.start_q != nullptr;
    const fa_i64 rows = unlike ? p.total_q : p.seq_q, b = stored / rows / p.heads;
    fa_i64 q0 = 0, k0 = 0;
    at.head = static_cast<int>(stored / rows % p.heads);
    at.row = stored % rows;
    at.batch = static_cast<int>(b);
    at.seq_q = p.seq_q, at.seq_kv = p.seq_kv;
    if (b >= (unlike ? 1 : p.batch))
        return false;
    if (unlike) {
        while (at.batch + 1 < p.batch && p.start_q[at.batch + 1] <= at.row)
            at.batch++;
        q0 = p.start_q[at.batch];
        at.row -= q0;
        at.seq_q = p.used_q[at.batch];
    }
    if (p.start_kv != nullptr)
        k0 = p.start_kv[at.batch];
    if (p.used_kv != nullptr)
        at.seq_kv = p.used_kv[at.batch];
    const fa_i64 kv_head = at.head / (p.heads / p.kv_heads), kv_b = p.page_size > 0 ? 0 : b;
    at.pages = p.pages + (p.page_start != nullptr ? p.page_start[at.batch] : at.batch * p.pages_stride);
    at.position = at.row + at.seq_kv - at.seq_q;
    const fa_i64 descale = at.batch * p.kv_descale_stride_b + kv_head * p.kv_descale_stride_h;
    at.scale = static_cast<double>(p.scale);
    if (p.q_descale != nullptr)
        at.scale *= static_cast<double>(p.q_descale[at.batch * p.q_descale_stride_b + at.head * p.q_descale_stride_h]);
    if (p.k_descale != nullptr)
        at.scale *= static_cast<double>(p.k_descale[descale]);
    at.v_scale = p.v_descale != nullptr ? static_cast<double>(p.v_descale[descale]) : 1.0;
    at.q = static_cast<const fa_element_q *>(p.q) + b * p.q_stride_b + at.head * p.q_stride_h +
           (q0 + at.row) * p.q_stride_s;
    at.k = static_cast<const fa_element_kv *>(p.k) + kv_b * p.k_stride_b + kv_head * p.k_stride_h + k0 * p.k_stride_s;
    at.v = static_cast<const fa_element_kv *>(p.v) + kv_b * p.v_stride_b + kv_head * p.v_stride_h + k0 * p.v_stride_s;
    return at.row < at.seq_q;
}

/* Elements between a key's row of K or V and where its sequence begins. */
__device__ static fa_i64 row_of(const fa_params &p, const query &at, fa_i64 key, fa_i64 stride_b, fa_i64 stride_s)
{
    return p.page_size == 0 ? key * stride_s : at.pages[key / p.page_size] * stride_b + key % p.page_size * stride_s;
}

/* Keys [first, end) are what causal, window and chunk leave; a tree hides some of them. */
__device__ static void range_of(const fa_params &p, const query &at, fa_i64 &first, fa_i64 &end)
{
    first = 0, end = at.seq_kv;
    if (p.causal)
        end = min(end, at.position + 1);
    if (p.window_left >= 0)
        first = max(first, at.position - p.window_left);
    if (p.window_right >= 0)
        end = min(end, at.position + p.window_right + 1);
    if (p.chunk > 0) {
        const fa_i64 rest = at.position % p.chunk, begin = at.position - (rest < 0 ? rest + p.chunk : rest);
        first = max(first, begin);
        end = min(end, begin + p.chunk);
    }
}

/* A tree's bit; keys before the last n are seen. */
__device__ static bool is_seen(const fa_params &p, const query &at, fa_i64 key)
{
    if (p.mask == nullptr)
        return true;
    const fa_i64 n = p.mask_keys == 0 ? at.seq_kv : min(at.seq_kv, static_cast<fa_i64>(p.mask_keys));
    const fa_i64 bit = at.row * n + key - (at.seq_kv - n);
    return key < at.seq_kv - n || (p.mask[p.mask_start[at.batch] + bit / 8] >> bit % 8 & 1) != 0;
}

/* Eight elements of a key; at once where they are aligned. */
__device__ static void load_eight(const fa_element_kv *from_g, double to[8])
{
    alignas(16) fa_element_kv some[8];
    if (reinterpret_cast<size_t>(from_g) % sizeof some != 0)
        for (int i = 0; i < 8; i++)
            some[i] = from_g[i];
    else if constexpr (sizeof some == 16)
        *reinterpret_cast<uint4 *>(some) = *reinterpret_cast<const uint4 *>(from_g);
    else
        *reinterpret_cast<uint2 *>(some) = *reinterpret_cast<const uint2 *>(from_g);
    for (int i = 0; i < 8; i++)
        to[i] = static_cast<double>(static_cast<float>(some[i]));
}

/* The score of scale q.k; *slope: its derivative, the softcap's. */
__device__ static double changed(const fa_params &p, const query &at, fa_i64 key, double score, double *slope)
{
    *slope = 1.0;
    if (p.softcap > 0.0f) {
        const double bent = tanh(score / static_cast<double>(p.softcap));
        score = static_cast<double>(p.softcap) * bent;
        *slope = 1.0 - bent * bent;
    }
    if (p.bias != nullptr)
        score += static_cast<double>(static_cast<float>(static_cast<const fa_element *>(
            p.bias)[at.batch * p.bias_stride_b + at.head * p.bias_stride_h + at.row * p.bias_stride_q + key]));
    if (p.slopes != nullptr)
        score -= static_cast<double>(p.slopes[at.batch * p.slopes_stride_b + at.head]) *
                 fabs(static_cast<double>(at.position - key));
    return score;
}

template <class T>
__device__ static double product_of(const T *own_s, const fa_element_kv *other_g, int columns)
{
    double sum = 0.0, other[8];
    for (int d = 0; d < columns; d += 8) {
        load_eight(other_g + d, other);
        for (int i = 0; i < 8; i++)
            sum += static_cast<double>(own_s[d + i]) * other[i];
    }
    return sum;
}

__device__ static double score_of(const fa_params &p, const query &at, const double *q_s, fa_i64 key)
{
    const fa_element_kv *k_g = at.k + row_of(p, at, key, p.k_stride_b, p.k_stride_s);
    double slope;
    return changed(p, at, key, product_of(q_s, k_g, FA_DIM) * at.scale, &slope);
}

__device__ static double largest_of_warp(double value)
{
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        value = fmax(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
}

__device__ static double sum_of_warp(double value)
{
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, lanes);
    return value;
}

#if !(FA_FEATURES & FA_FEATURE_BACKWARD)
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ double q_s[ROWS][FA_DIM], weights_s[ROWS][LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const fa_i64 stored = static_cast<fa_i64>(blockIdx.x) * ROWS + warp;
    query at;
    if (!find(p, stored, at))
        return;
    for (int d = lane; d < FA_DIM; d += LANES)
        q_s[warp][d] = static_cast<double>(static_cast<float>(at.q[d]));
    __syncwarp();

    fa_i64 first, end;
    range_of(p, at, first, end);
    const double sink = p.sinks != nullptr ? static_cast<double>(p.sinks[at.head]) : NOTHING;
    double top = NOTHING, sum = 0.0, o[COLUMNS] = {}; /* sum: of this lane's keys */
    for (fa_i64 begin = first; begin < end; begin += LANES) {
        const fa_i64 key = begin + lane;
        const double score = key < end && is_seen(p, at, key) ? score_of(p, at, q_s[warp], key) : NOTHING;
        const double next = fmax(top, largest_of_warp(score));
        if (next == NOTHING)
            continue;
        const double shrink = exp(top - next), weight = exp(score - next);
        top = next;
        sum = sum * shrink + weight;
        weights_s[warp][lane] = weight;
        __syncwarp();
        for (int c = 0; c < COLUMNS; c++)
            o[c] *= shrink;
        for (int j = 0; j < LANES && begin + j < end; j++) {
            const fa_element_kv *v_g = at.v + row_of(p, at, begin + j, p.v_stride_b, p.v_stride_s) + lane;
            for (int c = 0; c < COLUMNS; c++)
                if (c * LANES + lane < FA_DIM_V)
                    o[c] += weights_s[warp][j] * static_cast<double>(static_cast<float>(v_g[c * LANES]));
        }
        __syncwarp();
    }

    sum = sum_of_warp(sum);
    const double largest = fmax(top, sink), shrink = top == NOTHING ? 0.0 : exp(top - largest);
    const double total = sum * shrink + (sink == NOTHING ? 0.0 : exp(sink - largest));
    const fa_i64 heads = static_cast<fa_i64>(p.start_q != nullptr ? 1 : p.batch) * p.heads;
    const fa_i64 rows = heads * (p.start_q != nullptr ? p.total_q : p.seq_q);
    double *o_g = static_cast<double *>(p.workspace), *lse_g = o_g + rows * FA_DIM_V;
    for (int c = 0; c < COLUMNS; c++)
        if (c * LANES + lane < FA_DIM_V)
            o_g[stored * FA_DIM_V + c * LANES + lane] = total > 0.0 ? o[c] * shrink * at.v_scale / total : 0.0;
    if (lane == 0)
        lse_g[stored] = largest == NOTHING ? NOTHING : largest + log(total);
}

#else
#include "plain_gradients.cuh"
#endif
