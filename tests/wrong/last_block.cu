/* Keys split over blocks; each leaves a part in the workspace, and the last of a tile to arrive adds the parts up. */
#include "fa_params.h"

#include <cuda_bf16.h>

static_assert(FA_M <= 128, "last_block: M is the threads of a block, at most 128");
constexpr int PART = (FA_DIM + 2) * FA_M; /* floats: output, maximum and sum of each row */
constexpr int COUNTERS = 1 << 20;
constexpr float NONE = -1e30f;

FA_KERNEL_INFO(.threads = FA_M, .workspace_bytes_per_block = (FA_DIM + 2) * FA_M * 4,
               .workspace_bytes_fixed = COUNTERS * 4, .writes_lse = 1, .serves_bf16 = 1);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ bool last;
    const int split = blockIdx.x % FA_SPLITS, unit = blockIdx.x / FA_SPLITS, t = threadIdx.x;
    const int tile = unit % p.tiles_m, head = unit / p.tiles_m % p.heads, batch = unit / p.tiles_m / p.heads;
    const int row = tile * FA_M + t, kv_head = head / (p.heads / p.kv_heads);
    const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    unsigned *counters = (unsigned *)p.workspace;
    float *parts = (float *)p.workspace + COUNTERS;
    const int length = (p.seq_kv + FA_SPLITS - 1) / FA_SPLITS;
    int end = min(p.seq_kv, (split + 1) * length);
    if (p.causal)
        end = min(end, row + 1 + p.seq_kv - p.seq_q);
    float m = NONE, l = 0.0f, out[FA_DIM] = {};
    for (int key = split * length; row < p.seq_q && key < end; key++) {
        float s = 0.0f;
        for (int d = 0; d < FA_DIM; d++)
            s += float(q[d]) * float(k[key * p.k_stride_s + d]);
        s *= p.scale;
        const float m_new = fmaxf(m, s), alpha = __expf(m - m_new), w = __expf(s - m_new);
        l = l * alpha + w;
        for (int d = 0; d < FA_DIM; d++)
            out[d] = out[d] * alpha + w * float(v[key * p.v_stride_s + d]);
        m = m_new;
    }
    float *mine = parts + ((fa_i64)unit * FA_SPLITS + split) * PART;
    for (int d = 0; d < FA_DIM; d++)
        mine[d * FA_M + t] = out[d];
    mine[FA_DIM * FA_M + t] = m;
    mine[(FA_DIM + 1) * FA_M + t] = l;
    __threadfence();
    __syncthreads();
    if (t == 0)
        last = atomicAdd(&counters[unit], 1u) == FA_SPLITS - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    if (t == 0)
        counters[unit] = 0;
    if (row >= p.seq_q)
        return;
    const float *all = parts + (fa_i64)unit * FA_SPLITS * PART;
    m = NONE;
    for (int i = 0; i < FA_SPLITS; i++)
        m = fmaxf(m, all[i * PART + FA_DIM * FA_M + t]);
    l = 0.0f;
    for (int d = 0; d < FA_DIM; d++)
        out[d] = 0.0f;
    for (int i = 0; i < FA_SPLITS; i++) {
        const float w = __expf(all[i * PART + FA_DIM * FA_M + t] - m);
        l += w * all[i * PART + (FA_DIM + 1) * FA_M + t];
        for (int d = 0; d < FA_DIM; d++)
            out[d] += w * all[i * PART + d * FA_M + t];
    }
    for (int d = 0; d < FA_DIM; d++)
        o[d] = fa_element(l > 0.0f ? out[d] / l : 0.0f);
    if (p.lse)
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] =
            l > 0.0f ? m + logf(l) : -INFINITY;
}
