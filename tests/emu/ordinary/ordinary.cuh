/* Each file here uses one construct of ordinary CUDA as people write it. What it computed is compared with what it must
 * be (EXPECT); then plain attention follows, and a thread that saw a difference spoils the output. */
#pragma once

#include "fa_params.h"

#include <cuda_fp16.h>

#define THREADS 64
static_assert(FA_M == THREADS, "--m 64");
#ifndef SMEM_BYTES
#define SMEM_BYTES 0
#endif
FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES);

#define EXPECT(condition) good = (condition) && good

static __device__ void attend(const fa_params &p, bool good)
{
    const bool all_good = __syncthreads_and(good);
    const int tile = blockIdx.x % p.tiles_m, head = blockIdx.x / p.tiles_m % p.heads,
              batch = blockIdx.x / p.tiles_m / p.heads;
    const int row = tile * THREADS + threadIdx.x, kv_head = head / (p.heads / p.kv_heads);
    if (row >= p.seq_q)
        return;
    const half *q = (const half *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const half *k = (const half *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const half *v = (const half *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    half *o = (half *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    float m = -3e38f, l = 0.0f, sum[FA_DIM] = {};
    for (int j = 0; j < p.seq_kv; j++) {
        float s = 0.0f;
        for (int d = 0; d < FA_DIM; d++)
            s += __half2float(q[d]) * __half2float(k[j * p.k_stride_s + d]);
        s *= p.scale;
        const float m_new = fmaxf(m, s), alpha = expf(m - m_new), weight = expf(s - m_new);
        l = l * alpha + weight;
        for (int d = 0; d < FA_DIM; d++)
            sum[d] = sum[d] * alpha + weight * __half2float(v[j * p.v_stride_s + d]);
        m = m_new;
    }
    for (int d = 0; d < FA_DIM; d++)
        o[d] = __float2half(all_good ? sum[d] / l : 1000.0f);
}
