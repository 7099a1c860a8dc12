/* A block per query row, two passes over pieces of the keys, scores in shared memory. */
#include "fa_params.h"

#include <cuda_bf16.h>

static_assert(FA_M == 1, "block_row: M must be 1");
static_assert(FA_WARPS == 2, "block_row: WARPS must be 2");
constexpr int THREADS = FA_WARPS * 32, PIECE = 2 * THREADS;
constexpr int DIMS = 4; /* of a thread: t, t + THREADS, ... */

FA_KERNEL_INFO(.threads = THREADS, .writes_lse = 1, .serves_bf16 = 1);

/* The largest of a value of each thread, or their sum. */
__device__ float over_block(float x, bool largest)
{
    __shared__ float of_warp[FA_WARPS];
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_down_sync(0xffffffffu, x, step);
        x = largest ? fmaxf(x, other) : x + other;
    }
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = of_warp[0];
    for (int i = 1; i < FA_WARPS; i++)
        x = largest ? fmaxf(x, of_warp[i]) : x + of_warp[i];
    __syncthreads();
    return x;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float q_s[FA_DIM], w_s[PIECE];
    const int row = blockIdx.x % p.tiles_m, head = blockIdx.x / p.tiles_m % p.heads;
    const int batch = blockIdx.x / p.tiles_m / p.heads, kv_head = head / (p.heads / p.kv_heads), t = threadIdx.x;
    const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    for (int d = t; d < FA_DIM; d += THREADS)
        q_s[d] = float(q[d]);
    __syncthreads();
    const int keys = p.causal ? max(0, min(p.seq_kv, row + 1 + p.seq_kv - p.seq_q)) : p.seq_kv;
    float m = -INFINITY, l = 0.0f, out[DIMS] = {};
    for (int key0 = 0; key0 < keys; key0 += PIECE) {
        const int count = min(PIECE, keys - key0);
        float largest = -INFINITY;
        for (int j = t; j < count; j += THREADS) {
            float s = 0.0f;
            for (int d = 0; d < FA_DIM; d++)
                s += q_s[d] * float(k[(key0 + j) * p.k_stride_s + d]);
            w_s[j] = s * p.scale;
            largest = fmaxf(largest, w_s[j]);
        }
        const float m_new = fmaxf(m, over_block(largest, true));
        float sum = 0.0f;
        for (int j = t; j < count; j += THREADS) {
            w_s[j] = __expf(w_s[j] - m_new);
            sum += w_s[j];
        }
        const float alpha = __expf(m - m_new);
        l = l * alpha + over_block(sum, false);
        for (int i = 0; i < DIMS; i++) {
            const int d = t + i * THREADS;
            if (d < FA_DIM) {
                out[i] *= alpha;
                for (int j = 0; j < count; j++)
                    out[i] += w_s[j] * float(v[(key0 + j) * p.v_stride_s + d]);
            }
        }
        m = m_new;
        __syncthreads();
    }
    for (int i = 0; i < DIMS; i++)
        if (t + i * THREADS < FA_DIM)
            o[t + i * THREADS] = fa_element(keys > 0 ? out[i] / l : 0.0f);
    if (p.lse && t == 0)
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] =
            keys > 0 ? m + logf(l) : -INFINITY;
}
