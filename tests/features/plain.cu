/* Attention with every feature of fa_params.h, one thread per query row, in FP32: what the bench's own reference is
 * tried with, and the base of wrong kernels. Two passes over the keys: the largest score, then weights and sums. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "fa_params.h"

constexpr int ALL = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                    FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_BIAS | FA_FEATURE_MASK | FA_FEATURE_DIM_V;
// FA_SPACE: m=64 n=1 warps=2
FA_KERNEL_INFO(.threads = FA_M, .writes_lse = 1, .serves_bf16 = 1, .serves = ALL);

/* A query row, and where its sequence's rows begin. */
struct place {
    int batch, head, row, seq_q, seq_kv;
    fa_i64 q, o, lse, k, v; /* offsets in elements: of the row, and of the first key */
    const fa_i32 *pages;    /* of the sequence */
};

/* Row `index` of the tiles of a head: with sequences of unlike lengths every sequence begins a tile. */
__device__ bool find(const fa_params &p, int tile, int thread, place &at)
{
    int batch = tile / (p.tiles_m * p.heads), index = tile % p.tiles_m;
    at.head = tile / p.tiles_m % p.heads;
    at.seq_q = p.seq_q, at.seq_kv = p.seq_kv;
    fa_i64 q0 = 0, k0 = 0;
    if (p.start_q != nullptr) {
        for (batch = 0; batch < p.batch; batch++) {
            const int tiles = (p.used_q[batch] + FA_M - 1) / FA_M;
            if (index < tiles)
                break;
            index -= tiles;
        }
        if (batch == p.batch)
            return false;
        at.seq_q = p.used_q[batch];
        q0 = p.start_q[batch];
    }
    if (p.start_kv != nullptr)
        k0 = p.start_kv[batch];
    if (p.used_kv != nullptr)
        at.seq_kv = p.used_kv[batch];
    const int kv_head = at.head / (p.heads / p.kv_heads), b = p.start_q != nullptr ? 0 : batch;
    const int b_kv = p.start_kv != nullptr || p.page_size > 0 ? 0 : batch;
    at.pages = p.pages + (p.page_start != nullptr ? p.page_start[batch] : batch * p.pages_stride);
    at.batch = batch;
    at.row = index * FA_M + thread;
    at.q = b * p.q_stride_b + at.head * p.q_stride_h + (q0 + at.row) * p.q_stride_s;
    at.o = b * p.o_stride_b + at.head * p.o_stride_h + (q0 + at.row) * p.o_stride_s;
    at.lse = b * p.lse_stride_b + at.head * p.lse_stride_h + (q0 + at.row) * p.lse_stride_s;
    at.k = b_kv * p.k_stride_b + kv_head * p.k_stride_h + k0 * p.k_stride_s;
    at.v = b_kv * p.v_stride_b + kv_head * p.v_stride_h + k0 * p.v_stride_s;
    return at.row < at.seq_q;
}

/* Offset of a key's row from the first. */
__device__ fa_i64 key_offset(const fa_params &p, const place &at, int key, fa_i64 stride_b, fa_i64 stride_s)
{
    if (p.page_size == 0)
        return key * stride_s;
    return at.pages[key / p.page_size] * stride_b + key % p.page_size * stride_s;
}

/* Keys [first, end) that a row may see. */
__device__ void visible(const fa_params &p, const place &at, int &first, int &end)
{
    const int pos = at.row + at.seq_kv - at.seq_q;
    first = 0, end = at.seq_kv;
    if (p.causal)
        end = min(end, pos + 1);
    if (p.window_left >= 0)
        first = max(first, pos - p.window_left);
    if (p.window_right >= 0)
        end = min(end, pos + p.window_right + 1);
    if (p.chunk > 0) {
        const int begin = pos - ((pos % p.chunk) + p.chunk) % p.chunk;
        first = max(first, begin);
        end = min(end, begin + p.chunk);
    }
}

__device__ float score_of(const fa_params &p, const place &at, int key)
{
    const fa_element *q = static_cast<const fa_element *>(p.q) + at.q;
    const fa_element *k =
        static_cast<const fa_element *>(p.k) + at.k + key_offset(p, at, key, p.k_stride_b, p.k_stride_s);
    float s = 0.0f;
    for (int d = 0; d < p.dim; d++)
        s += static_cast<float>(q[d]) * static_cast<float>(k[d]);
    s *= p.scale;
    if (p.softcap > 0.0f)
        s = p.softcap * tanhf(s / p.softcap);
    if (p.bias != nullptr)
        s += static_cast<float>(static_cast<const fa_element *>(
            p.bias)[at.batch * p.bias_stride_b + at.head * p.bias_stride_h + at.row * p.bias_stride_q + key]);
    if (p.slopes != nullptr)
        s -= p.slopes[at.batch * p.slopes_stride_b + at.head] * fabsf(at.row + at.seq_kv - at.seq_q - key);
    if (p.mask != nullptr) {
        const int n = p.mask_keys == 0 ? at.seq_kv : min(p.mask_keys, at.seq_kv), j = key - (at.seq_kv - n);
        const fa_i64 bit = static_cast<fa_i64>(at.row) * n + j;
        if (j >= 0 && !(p.mask[p.mask_start[at.batch] + bit / 8] >> bit % 8 & 1))
            return -INFINITY;
    }
    return s;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    place at;
    int first, end;
    if (!find(p, blockIdx.x, threadIdx.x, at))
        return;
    visible(p, at, first, end);
    const float sink = p.sinks != nullptr ? p.sinks[at.head] : -INFINITY;
    float m = sink, l = 0.0f;
    for (int key = first; key < end; key++)
        m = fmaxf(m, score_of(p, at, key));
    const float reference = m == -INFINITY ? 0.0f : m;
    for (int key = first; key < end; key++)
        l += expf(score_of(p, at, key) - reference);
    l += expf(sink - reference);
    fa_element *o = static_cast<fa_element *>(p.o) + at.o;
    for (int d0 = 0; d0 < p.dim_v; d0 += 8) { /* columns */
        float sum[8] = {};
        for (int key = first; key < end; key++) {
            const float weight = expf(score_of(p, at, key) - reference);
            const fa_element *v =
                static_cast<const fa_element *>(p.v) + at.v + key_offset(p, at, key, p.v_stride_b, p.v_stride_s) + d0;
            for (int d = 0; d < 8; d++)
                sum[d] += weight * static_cast<float>(v[d]);
        }
        for (int d = 0; d < 8; d++)
            o[d0 + d] = static_cast<fa_element>(l > 0.0f ? sum[d] / l : 0.0f);
    }
    if (p.lse != nullptr)
        p.lse[at.lse] = reference + logf(l);
}
