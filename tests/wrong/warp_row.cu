/* A warp per query row: 32 keys at a time, a key per lane for the scores, dimensions over the lanes for the output. */
#include "fa_params.h"

#include <cuda_bf16.h>

static_assert(FA_WARPS * 32 <= 1024 && FA_M == FA_WARPS, "warp_row: M must be WARPS, at most 32");
constexpr int CHUNKS = (FA_DIM + 31) / 32;
constexpr float NONE = -1e30f;

FA_KERNEL_INFO(.threads = FA_WARPS * 32, .writes_lse = 1, .serves_bf16 = 1);

__device__ float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const int lane = threadIdx.x % 32, tile = blockIdx.x % p.tiles_m;
    const int head = blockIdx.x / p.tiles_m % p.heads, batch = blockIdx.x / p.tiles_m / p.heads;
    const int row = tile * FA_M + threadIdx.x / 32, group = p.heads / p.kv_heads, kv_head = head / group;
    if (row >= p.seq_q)
        return;
    const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;

    int keys = p.seq_kv;
    if (p.causal)
        keys = min(keys, row + p.seq_kv - p.seq_q + 1);
    float m = NONE, l = 0.0f, out[CHUNKS] = {};
    for (int key0 = 0; key0 < keys; key0 += 32) {
        const int key = key0 + lane;
        float s = -INFINITY;
        if (key < keys) {
            s = 0.0f;
            for (int d = 0; d < FA_DIM; d++)
                s += float(q[d]) * float(k[key * p.k_stride_s + d]);
            s *= p.scale;
        }
        const float m_new = fmaxf(m, warp_max(s)), alpha = __expf(m - m_new), weight = __expf(s - m_new);
        l = l * alpha + warp_sum(weight);
        for (int c = 0; c < CHUNKS; c++)
            out[c] *= alpha;
        const int present = min(32, keys - key0);
        for (int j = 0; j < present; j++) {
            const float w = __shfl_sync(0xffffffffu, weight, j);
            for (int c = 0; c < CHUNKS; c++)
                if (c * 32 + lane < FA_DIM)
                    out[c] += w * float(v[(key0 + j) * p.v_stride_s + c * 32 + lane]);
        }
        m = m_new;
    }
    for (int c = 0; c < CHUNKS; c++)
        if (c * 32 + lane < FA_DIM)
            o[c * 32 + lane] = fa_element(l > 0.0f ? out[c] / l : 0.0f);
    if (p.lse && lane == 0)
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] =
            l > 0.0f ? m + logf(l) : -INFINITY;
}
