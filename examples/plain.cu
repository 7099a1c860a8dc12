/* A whole kernel in forty lines: one thread per query row, online softmax, nothing clever. Try it:
 *     ./fa_bench --source examples/plain.cu --m 64 */
#include "fa_params.h"

#include <cuda_bf16.h>

// EVOLVE-BLOCK-START (a search edits from here; scripts/evaluate.sh takes the tile from the next line)
// fa_bench: --m 64
static_assert(FA_M <= 1024, "plain: M is the threads of a block, at most 1024");
constexpr float NO_MAX = -1e30f; /* the maximum of a row that has seen no key */

FA_KERNEL_INFO(.threads = FA_M, .writes_lse = 1, .serves_bf16 = 1);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const int tile = blockIdx.x % p.tiles_m, head = blockIdx.x / p.tiles_m % p.heads,
              batch = blockIdx.x / p.tiles_m / p.heads;
    const int row = tile * FA_M + threadIdx.x, kv_head = head / (p.heads / p.kv_heads);
    if (row >= p.seq_q)
        return;
    const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h + row * p.q_stride_s;
    const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;

    const int last = row + p.seq_kv - p.seq_q; /* causal, bottom-right aligned */
    const int keys = FA_CAUSAL && last + 1 < p.seq_kv ? last + 1 : p.seq_kv;
    float m = NO_MAX, l = 0.0f, sum[FA_DIM] = {};
    for (int j = 0; j < keys; j++) {
        float s = 0.0f;
        for (int d = 0; d < FA_DIM; d++)
            s += float(q[d]) * float(k[j * p.k_stride_s + d]);
        s *= p.scale;
        const float m_new = fmaxf(m, s), alpha = expf(m - m_new), weight = expf(s - m_new);
        l = l * alpha + weight;
        for (int d = 0; d < FA_DIM; d++)
            sum[d] = sum[d] * alpha + weight * float(v[j * p.v_stride_s + d]);
        m = m_new;
    }
    for (int d = 0; d < FA_DIM; d++)
        o[d] = fa_element(l > 0.0f ? sum[d] / l : 0.0f);
    if (p.lse) /* --lse; log 0 is -inf: the row sees no key */
        p.lse[batch * p.lse_stride_b + head * p.lse_stride_h + row * p.lse_stride_s] = m + logf(l);
}
// EVOLVE-BLOCK-END
