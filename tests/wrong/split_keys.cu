/* split_keys: right, and the base of wrong kernels whose fault lies in a combination. Four threads share a query row;
 * each takes a quarter of the keys. A block is one warp, so on a GPU its threads mostly run in step: a missing barrier
 * tends to pass there. */
#include "fa_params.h"

#include <cuda_fp16.h>

static_assert(FA_M == 8, "split_keys: a block is 8 rows of 4 threads, one warp");
#define NONE __int_as_float(0xff800000) /* -inf: no key yet */
constexpr int SPLIT = 4, THREADS = FA_M * SPLIT;

FA_KERNEL_INFO(.threads = THREADS, .writes_lse = 1);

/* The maximum, the sum and the output of one thread's keys. */
struct part {
    float m, l, sum[FA_DIM];
};

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float m_s[THREADS], l_s[THREADS], sum_s[THREADS][FA_DIM + 1];
    const int tile = blockIdx.x % p.tiles_m, head = blockIdx.x / p.tiles_m % p.heads,
              batch = blockIdx.x / p.tiles_m / p.heads;
    const int split = threadIdx.x % SPLIT, row = tile * FA_M + threadIdx.x / SPLIT;
    const bool present = row < p.seq_q;
    const int kv_head = head / (p.heads / p.kv_heads), read_row = present ? row : 0;
    const half *q = (const half *)p.q + batch * p.q_stride_b + head * p.q_stride_h + read_row * p.q_stride_s;
    const half *k = (const half *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const half *v = (const half *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;

    const int last = row + p.seq_kv - p.seq_q;
    const int keys = max(0, FA_CAUSAL && last + 1 < p.seq_kv ? last + 1 : p.seq_kv);
    const int each = (keys + SPLIT - 1) / SPLIT, begin = min(split * each, keys), end = min(begin + each, keys);
    part mine = {NONE, 0.0f, {}};
    for (int j = begin; j < end; j++) {
        float s = 0.0f;
        for (int d = 0; d < FA_DIM; d++)
            s += __half2float(q[d]) * __half2float(k[j * p.k_stride_s + d]);
        s *= p.scale;
        const float m_new = fmaxf(mine.m, s), alpha = expf(mine.m - m_new), weight = expf(s - m_new);
        mine.l = mine.l * alpha + weight;
        for (int d = 0; d < FA_DIM; d++)
            mine.sum[d] = mine.sum[d] * alpha + weight * __half2float(v[j * p.v_stride_s + d]);
        mine.m = m_new;
    }
    m_s[threadIdx.x] = mine.m;
    l_s[threadIdx.x] = mine.l;
    for (int d = 0; d < FA_DIM; d++)
        sum_s[threadIdx.x][d] = mine.sum[d];
    __syncthreads();

    const int first = threadIdx.x / SPLIT * SPLIT;
    float m = NONE, l = 0.0f;
    for (int i = 0; i < SPLIT; i++)
        m = fmaxf(m, m_s[first + i]);
    for (int i = 0; i < SPLIT; i++)
        l += m_s[first + i] > NONE ? l_s[first + i] * expf(m_s[first + i] - m) : 0.0f;
    half *o = (half *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    for (int d = split; present && d < FA_DIM; d += SPLIT) {
        float sum = 0.0f;
        for (int i = 0; i < SPLIT; i++)
            sum += m_s[first + i] > NONE ? sum_s[first + i][d] * expf(m_s[first + i] - m) : 0.0f;
        o[d] = __float2half(l > 0.0f ? sum / l : 0.0f);
    }
    if (p.lse && present && split == 0)
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] = m + logf(l);
}
