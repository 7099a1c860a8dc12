/* The warps of a block share the keys of a row: each takes every eighth, and their parts are added in order. */
#include "fa_params.h"

#include <cuda_fp16.h>

constexpr int WARPS = 8, CHUNKS = (FA_DIM + 31) / 32;
constexpr float NONE = -1e30f;

FA_KERNEL_INFO(.threads = WARPS * 32, .writes_lse = 1);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float part_s[WARPS][FA_DIM], m_s[WARPS], l_s[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x % p.tiles_m;
    const int head = blockIdx.x / p.tiles_m % p.heads, batch = blockIdx.x / p.tiles_m / p.heads;
    const int kv_head = head / (p.heads / p.kv_heads);
    const half *k = (const half *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const half *v = (const half *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    for (int row = tile * FA_M; row < min(tile * FA_M + FA_M, p.seq_q); row++) {
        const half *q = (const half *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
        half *o = (half *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
        const int keys = FA_CAUSAL ? min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q) : p.seq_kv;
        float m = NONE, l = 0.0f, out[CHUNKS] = {};
        for (int j = warp; j < keys; j += WARPS) {
            float s = 0.0f;
            for (int d = lane; d < FA_DIM; d += 32)
                s += __half2float(q[d]) * __half2float(k[j * p.k_stride_s + d]);
            for (int step = 16; step > 0; step /= 2)
                s += __shfl_xor_sync(0xffffffffu, s, step);
            s *= p.scale;
            const float m_new = fmaxf(m, s), alpha = __expf(m - m_new), weight = __expf(s - m_new);
            l = l * alpha + weight;
            for (int c = 0; c < CHUNKS && c * 32 + lane < FA_DIM; c++)
                out[c] = out[c] * alpha + weight * __half2float(v[j * p.v_stride_s + c * 32 + lane]);
            m = m_new;
        }
        if (lane == 0) {
            m_s[warp] = m;
            l_s[warp] = l;
        }
        __syncthreads();
        float m_all = NONE, l_all = 0.0f;
        for (int i = 0; i < WARPS; i++)
            m_all = fmaxf(m_all, m_s[i]);
        for (int i = 0; i < WARPS; i++)
            l_all += l_s[i] * __expf(m_s[i] - m_all);
        const float factor = l_all > 0.0f ? __expf(m - m_all) / l_all : 0.0f;
        for (int c = 0; c < CHUNKS && c * 32 + lane < FA_DIM; c++)
            part_s[warp][c * 32 + lane] = out[c] * factor;
        __syncthreads();
        for (int d = threadIdx.x; d < FA_DIM; d += WARPS * 32) {
            float sum = 0.0f;
            for (int i = 0; i < WARPS; i++)
                sum += part_s[i][d];
            o[d] = __float2half(sum);
        }
        if (p.lse && threadIdx.x == 0)
            p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] = m_all + logf(l_all);
    }
}
