/* Tiles of K and V in shared memory, a thread per query row; blocks take more than one tile of queries. */
#include "fa_params.h"

#include <cuda_bf16.h>

static_assert(FA_M <= 256 && FA_M % 32 == 0, "tiled: M is the threads of a block, a multiple of 32 up to 256");
constexpr int KEYS = 16; /* of a tile */
constexpr float NONE = -1e30f;

FA_KERNEL_INFO(.threads = FA_M, .grid = FA_GRID_PERSISTENT, .blocks_per_sm = 1, .writes_lse = 1, .serves_bf16 = 1);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float k_s[KEYS][FA_DIM], v_s[KEYS][FA_DIM];
    float m = NONE, l = 0.0f; /* of a row: its maximum, its sum */
    for (int unit = blockIdx.x; unit < p.tiles; unit += gridDim.x) {
        const int tile = unit % p.tiles_m, head = unit / p.tiles_m % p.heads, batch = unit / p.tiles_m / p.heads;
        const int row = tile * FA_M + threadIdx.x, kv_head = head / (p.heads / p.kv_heads);
        const bool present = row < p.seq_q;
        const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h;
        const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
        const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
        fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h;
        float q_r[FA_DIM], out[FA_DIM] = {};
        m = NONE, l = 0.0f;
        for (int d = 0; d < FA_DIM; d++)
            q_r[d] = present ? float(q[row * p.q_stride_s + d]) * p.scale : 0.0f;
        const int shift = p.seq_kv - p.seq_q;
        const int last_row = min(p.seq_q, tile * FA_M + FA_M) - 1;
        const int end = p.causal ? min(p.seq_kv, last_row + shift + 1) : p.seq_kv;
        for (int key0 = 0; key0 < end; key0 += KEYS) {
            for (int i = threadIdx.x; i < KEYS * FA_DIM; i += FA_M) {
                const int j = i / FA_DIM, d = i % FA_DIM;
                const bool there = key0 + j < p.seq_kv;
                k_s[j][d] = there ? float(k[(key0 + j) * p.k_stride_s + d]) : 0.0f;
                v_s[j][d] = there ? float(v[(key0 + j) * p.v_stride_s + d]) : 0.0f;
            }
            __syncthreads();
            float s[KEYS], m_new = m;
            for (int j = 0; j < KEYS; j++) {
                float sum = 0.0f;
                for (int d = 0; d < FA_DIM; d++)
                    sum += q_r[d] * k_s[j][d];
                const bool seen = key0 + j < p.seq_kv && (!p.causal || key0 + j <= row + shift);
                s[j] = seen ? sum : -INFINITY;
                m_new = fmaxf(m_new, s[j]);
            }
            const float alpha = __expf(m - m_new);
            m = m_new;
            l *= alpha;
            for (int d = 0; d < FA_DIM; d++)
                out[d] *= alpha;
            for (int j = 0; j < KEYS; j++) {
                const float w = __expf(s[j] - m);
                l += w;
                for (int d = 0; d < FA_DIM; d++)
                    out[d] += w * v_s[j][d];
            }
            __syncthreads();
        }
        if (present) {
            const float inverse = l > 0.0f ? 1.0f / l : 0.0f;
            for (int d = 0; d < FA_DIM; d++)
                o[row * p.o_stride_s + d] = fa_element(out[d] * inverse);
            if (p.lse)
                p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] =
                    l > 0.0f ? m + __logf(l) : -INFINITY;
        }
    }
}
