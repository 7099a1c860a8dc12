/* Every knob of a tile: a thread per query row, K and V in a ring of stages in shared memory, keys split over blocks;
 * each leaves a part in the workspace, and the last of a tile to arrive adds the parts up. */
// FA_SPACE: m=32,64 n=32,16,64 vec=2,4,8 stages=1,2,3 swizzle=0,1 splits=1,2,3,8
#include "fa_params.h"

#include <cuda_bf16.h>

static_assert(FA_M <= 128, "knobs: M is the threads of a block, at most 128");
constexpr int PIECES = FA_DIM / FA_VEC;   /* of a row of K or V */
constexpr int PART = (FA_DIM + 2) * FA_M; /* floats: output, maximum and sum of each row */
constexpr int COUNTERS = 1 << 20;
constexpr float NONE = -1e30f;

struct alignas(FA_VEC * 2) piece {
    fa_element at[FA_VEC];
};

FA_KERNEL_INFO(.threads = FA_M, .workspace_bytes_per_block = (FA_DIM + 2) * FA_M * 4,
               .workspace_bytes_fixed = COUNTERS * 4, .writes_lse = 1, .serves_bf16 = 1);

/* Where a piece of a key's row is. */
__device__ int place(int key, int c) { return FA_SWIZZLE && PIECES % 4 == 0 ? c ^ (key & 3) : c; }

/* A tile of K or V from key0 on; zeros after the last key. */
__device__ void load_tile(piece (*to_s)[PIECES], const fa_element *from_g, fa_i64 stride, int key0, int keys)
{
    const bool aligned = ((size_t)from_g | (size_t)stride * 2) % sizeof(piece) == 0;
    for (int i = threadIdx.x; i < FA_N * PIECES; i += FA_M) {
        const int j = i / PIECES, c = i % PIECES;
        const fa_element *at_g = from_g + (key0 + j) * stride + c * FA_VEC;
        piece value = {};
        if (key0 + j < keys && aligned)
            value = *(const piece *)at_g;
        else if (key0 + j < keys)
            for (int e = 0; e < FA_VEC; e++)
                value.at[e] = at_g[e];
        to_s[j][place(j, c)] = value;
    }
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ piece k_s[FA_STAGES][FA_N][PIECES], v_s[FA_STAGES][FA_N][PIECES];
    __shared__ bool last;
    const int split = blockIdx.x % FA_SPLITS, unit = blockIdx.x / FA_SPLITS, t = threadIdx.x;
    const int tile = unit % p.tiles_m, head = unit / p.tiles_m % p.heads, batch = unit / p.tiles_m / p.heads;
    const int row0 = tile * FA_M, row = row0 + t, kv_head = head / (p.heads / p.kv_heads);
    const fa_element *q = (const fa_element *)p.q + batch * p.q_stride_b + head * p.q_stride_h;
    const fa_element *k = (const fa_element *)p.k + batch * p.k_stride_b + kv_head * p.k_stride_h;
    const fa_element *v = (const fa_element *)p.v + batch * p.v_stride_b + kv_head * p.v_stride_h;
    fa_element *o = (fa_element *)p.o + batch * p.o_stride_b + head * p.o_stride_h + row * p.o_stride_s;
    unsigned *counters = (unsigned *)p.workspace;
    float *parts = (float *)p.workspace + COUNTERS;

    /* Keys that this row sees, that every row of the tile sees, and that any row of it sees. */
    const int shift = p.seq_kv - p.seq_q, last_row = min(p.seq_q, row0 + FA_M) - 1;
    const int seen = p.causal ? min(p.seq_kv, row + shift + 1) : p.seq_kv;
    const int unmasked = p.causal ? min(p.seq_kv, row0 + shift + 1) : p.seq_kv;
    const int end = p.causal ? max(0, last_row + shift + 1) : p.seq_kv;
    const int tiles = (end + FA_N - 1) / FA_N, length = (tiles + FA_SPLITS - 1) / FA_SPLITS;
    const int first = split * length, stop = min(tiles, first + length);

    float q_r[FA_DIM], out[FA_DIM] = {}, m = NONE, l = 0.0f;
    for (int d = 0; d < FA_DIM; d++)
        q_r[d] = row < p.seq_q ? float(q[row * p.q_stride_s + d]) * p.scale : 0.0f;
    for (int i = 0; i < FA_STAGES - 1 && first + i < stop; i++) {
        load_tile(k_s[i], k, p.k_stride_s, (first + i) * FA_N, p.seq_kv);
        load_tile(v_s[i], v, p.v_stride_s, (first + i) * FA_N, p.seq_kv);
    }
    for (int at = first; at < stop; at++) {
        const int key0 = at * FA_N, stage = (at - first) % FA_STAGES;
        const int ahead = at + FA_STAGES - 1, free_stage = (ahead - first) % FA_STAGES;
        if (FA_STAGES > 1)
            __syncthreads(); /* this tile is there, and the one before has been used */
        if (ahead < stop) {
            load_tile(k_s[free_stage], k, p.k_stride_s, ahead * FA_N, p.seq_kv);
            load_tile(v_s[free_stage], v, p.v_stride_s, ahead * FA_N, p.seq_kv);
        }
        if (FA_STAGES == 1)
            __syncthreads();
        const bool masked = key0 + FA_N > unmasked;
        float s[FA_N], m_new = m;
        for (int j = 0; j < FA_N; j++) {
            float sum = 0.0f;
            for (int d = 0; d < FA_DIM; d++)
                sum += q_r[d] * float(k_s[stage][j][place(j, d / FA_VEC)].at[d % FA_VEC]);
            s[j] = masked && key0 + j >= seen ? -INFINITY : sum;
            m_new = fmaxf(m_new, s[j]);
        }
        const float alpha = __expf(m - m_new);
        m = m_new;
        l *= alpha;
        for (int d = 0; d < FA_DIM; d++)
            out[d] *= alpha;
        for (int j = 0; j < FA_N; j++) {
            const float w = __expf(s[j] - m);
            l += w;
            for (int d = 0; d < FA_DIM; d++)
                out[d] += w * float(v_s[stage][j][place(j, d / FA_VEC)].at[d % FA_VEC]);
        }
        if (FA_STAGES == 1)
            __syncthreads();
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
            l > 0.0f ? m + __logf(l) : -INFINITY;
}
