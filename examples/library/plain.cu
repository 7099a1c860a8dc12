/* The least library: one kernel, launched through the CUDA runtime.
 *     make -C examples/library plain && ./fa_bench --library examples/library/build/plain.so */
#include <cuda_fp16.h>
#include <math_constants.h>
#include <stdio.h>

#include "fa_library.h"

enum { WARPS = 4, MAX_DIM = 256 };

/* A warp per query row; a lane per element of every 32, online softmax over the keys. */
extern "C" __global__ void plain_attention(const fa_params p)
{
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, head = blockIdx.y, batch = blockIdx.z,
              lane = threadIdx.x % 32;
    if (row >= p.seq_q)
        return;
    const int kv_head = head / (p.heads / p.kv_heads);
    const half *q = (const half *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const half *k = (const half *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const half *v = (const half *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    half *o = (half *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    const int keys = p.causal ? min(p.seq_kv, row + p.seq_kv - p.seq_q + 1) : p.seq_kv;
    float acc[MAX_DIM / 32] = {0}, sum = 0, most = -CUDART_INF_F;
    for (int key = 0; key < keys; key++, k += p.k_stride_s, v += p.v_stride_s) {
        float score = 0;
        for (int d = lane; d < p.dim; d += 32)
            score += __half2float(q[d]) * __half2float(k[d]);
        for (int step = 16; step > 0; step /= 2)
            score += __shfl_xor_sync(0xffffffff, score, step);
        score *= p.scale;
        const float before = most;
        most = fmaxf(most, score);
        const float keep = expf(before - most), weight = expf(score - most);
        sum = sum * keep + weight;
        for (int i = 0, d = lane; d < p.dim; i++, d += 32)
            acc[i] = acc[i] * keep + weight * __half2float(v[d]);
    }
    for (int i = 0, d = lane; d < p.dim; i++, d += 32)
        o[d] = __float2half(keys > 0 ? acc[i] / sum : 0.0f);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    answer->abi = FA_LIBRARY_ABI;
    snprintf(answer->name, sizeof answer->name, "plain runtime kernel");
    snprintf(answer->version, sizeof answer->version, "CUDA %d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    const fa_params *p = question->problem;
    if (p->batch > 65535 || p->heads > 65535)
        snprintf(answer->refusal, sizeof answer->refusal, "more than 65535 batches or heads");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    const dim3 grid((params->seq_q + WARPS - 1) / WARPS, params->heads, params->batch);
    plain_attention<<<grid, 32 * WARPS, 0, (cudaStream_t)stream>>>(*params);
    const cudaError_t code = cudaGetLastError();
    return code == cudaSuccess ? NULL : cudaGetErrorString(code);
}
