/* scalar: one query row per warp, one key at a time. The baseline.
 *
 * Idea: the lanes share the head dimension, so a score is a sum over the warp.
 * Softmax: online, key by key: a larger score rescales the sum and the output so far.
 * Builds on: nothing.   Knobs: M rows per block, WARPS, VEC (dimensions a lane reads at once), maxreg.
 * Shared memory: none; K and V come from the caches each time.
 * Limits: M a multiple of WARPS (a warp takes M / WARPS rows, one after another). */
#include "shared/load.cuh"
#include "shared/schedule.cuh"

static_assert(FA_M % FA_WARPS == 0, "scalar: M must be a multiple of WARPS");
static_assert(FA_N == 1, "scalar: N must be 1 (one key at a time)");
static_assert(FA_STAGES == 1, "scalar: STAGES must be 1 (no tile to buffer)");
static_assert(FA_SWIZZLE == 0, "scalar: SWIZZLE must be 0 (no shared memory)");
static_assert(FA_ACC_FP16 == 0, "scalar: ACC must be fp32");
static_assert(FA_SPLITS == 1, "scalar: SPLITS must be 1");
static_assert(FA_VEC == 1 || FA_VEC == 2 || FA_VEC == 4 || FA_VEC == 8, "scalar: VEC must be 1, 2, 4 or 8");

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = 0, .writes_lse = FA_LSE, .serves_bf16 = 1);

/* A lane holds dimensions (chunk * 32 + lane) * VEC + i. */
constexpr int CHUNKS = ceil_div(FA_DIM, WARP_SIZE *FA_VEC);

template <bool ALIGNED>
__device__ __forceinline__ void read_row(float (&row_r)[CHUNKS][FA_VEC], const fa_element *row_g, int lane)
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int col = (c * WARP_SIZE + lane) * FA_VEC;
        vec_t<FA_VEC> raw = {};
        if (col < FA_DIM && ALIGNED)
            raw = *reinterpret_cast<const vec_t<FA_VEC> *>(row_g + col);
        else if (col < FA_DIM)
            for (int i = 0; i < FA_VEC; i++)
                reinterpret_cast<fa_element *>(&raw)[i] = row_g[col + i];
#pragma unroll
        for (int i = 0; i < FA_VEC; i++)
            row_r[c][i] = static_cast<float>(reinterpret_cast<const fa_element *>(&raw)[i]);
    }
}

/* One row of the output. ALIGNED: rows of Q, K and V start at multiples of VEC elements. */
template <bool ALIGNED>
__device__ __forceinline__ void attend_row(const fa_params &p, const query_tile &tile, int row, int lane)
{
    float q_r[CHUNKS][FA_VEC], k_r[CHUNKS][FA_VEC], v_r[CHUNKS][FA_VEC], o_r[CHUNKS][FA_VEC] = {};
    read_row<ALIGNED>(q_r, tile.q_g + row * p.q_stride_s, lane);
    const float scale = p.scale * LOG2_E;
    float m = NO_MAX, l = 0.0f;

    const int keys = keys_of_row(p, tile.row0 + row);
    for (int key = 0; key < keys; key++) {
        read_row<ALIGNED>(k_r, tile.k_g + key * p.k_stride_s, lane);
        read_row<ALIGNED>(v_r, tile.v_g + key * p.v_stride_s, lane);
        float dot = 0.0f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int i = 0; i < FA_VEC; i++)
                dot += q_r[c][i] * k_r[c][i];
        const float score = warp_sum(dot) * scale, m_new = fmaxf(m, score);
        const float alpha = exp2_approx(m - m_new), weight = exp2_approx(score - m_new);
        m = m_new;
        l = l * alpha + weight;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int i = 0; i < FA_VEC; i++)
                o_r[c][i] = o_r[c][i] * alpha + weight * v_r[c][i];
    }

#if FA_LSE
    if (lane == 0)
        store_lse(p, tile, row, log_sum_exp(m, l));
#endif
    const float inverse = inverse_of_sum(l);
    fa_element *o_g = tile.o_g + row * p.o_stride_s;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int i = 0; i < FA_VEC; i++) {
            const int col = (c * WARP_SIZE + lane) * FA_VEC + i;
            if (col < FA_DIM)
                o_g[col] = fa_element(o_r[c][i] * inverse);
        }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    const query_tile tile = tile_of_block<FA_M>(p);
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const bool aligned = rows_aligned<FA_VEC>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s) &&
                         rows_aligned<FA_VEC>(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s) &&
                         rows_aligned<FA_VEC>(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s);
    for (int row = warp; row < tile.rows; row += FA_WARPS) {
        if (aligned)
            attend_row<true>(p, tile, row, lane);
        else
            attend_row<false>(p, tile, row, lane);
    }
}
