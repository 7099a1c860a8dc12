/* wmma: both products on tensor cores through WMMA m16n16k16.
 * Idea: weights return to shared memory as halves and meet V there; outputs stay in fragments for the whole loop. Their
 *   rows are rescaled by a fragment loaded from a tile that repeats a factor along each row (fragments of one type share
 *   one layout, whatever it is), and only when a maximum has grown by more than 2^8, which is rare.
 * Predecessor: wmma_qk. Knobs: M, N, WARPS, VEC, STAGES, SWIZZLE, ACC (maxreg).
 * Shared memory: STAGES x {K, V} [N][DIM], Q [M][DIM], per warp 16 x N/KEY_GROUPS scores, overlaid by the weights; all of
 *   it used again for the parts of the output.
 * Limits: M and N multiples of 16; no more warps than 16x16 blocks of scores; outputs fit a thread's registers. */
#include "wmma_tile.cuh"

static_assert(FA_SPLITS == 1, "wmma: SPLITS must be 1");
static_assert(FA_M % 16 == 0 && FA_N % 16 == 0, "wmma: M and N must be multiples of 16");
static_assert(FA_STAGES == 1 || FA_STAGES == 2, "wmma: STAGES must be 1 or 2");
static_assert(FA_VEC == 1 || FA_VEC == 2 || FA_VEC == 4 || FA_VEC == 8, "wmma: VEC must be 1, 2, 4 or 8");
static_assert(FA_N % (16 * KEY_GROUPS) == 0, "wmma: too many WARPS, each needs a 16x16 block of the M x N scores");
static_assert(WARP_ROW_GROUPS * DIM_BLOCKS * (FA_ACC_FP16 ? 4 : 8) <= 128,
              "wmma: the outputs of M/WARPS rows do not fit a thread's registers (raise WARPS or lower M)");
static_assert(FA_THREADS * (WARP_ROW_GROUPS * DIM_BLOCKS * (FA_ACC_FP16 ? 4 : 8) + 64) <= 65536,
              "wmma: the outputs do not fit the registers of this many WARPS at this head dimension");

constexpr bool Q_IN_REGISTERS = DIM_BLOCKS <= 8;
constexpr int TILE_BYTES = fa_tile_layout::bytes(FA_N), Q_BYTES = fa_tile_layout::bytes(FA_M);
constexpr int SCRATCH_BYTES = 16 * SCORE_STRIDE * sizeof(acc_t);
/* Q is read once and makes room for the scores. */
constexpr int Q_AND_SCRATCH_BYTES =
    Q_IN_REGISTERS ? fa_max(Q_BYTES, FA_WARPS * SCRATCH_BYTES) : Q_BYTES + FA_WARPS * SCRATCH_BYTES;
constexpr int MAIN_BYTES = FA_STAGES * 2 * TILE_BYTES + Q_AND_SCRATCH_BYTES;
constexpr fa_parts PARTS(MAIN_BYTES, sizeof(acc_t));
constexpr int ALIGNMENT = 32; /* of WMMA's pointers */

FA_KERNEL_INFO(.threads = FA_THREADS, .smem_dynamic_bytes = fa_max(MAIN_BYTES, PARTS.bytes) + ALIGNMENT - 16);

struct fa_warp_rows {
    frag_acc o_r[DIM_BLOCKS];
    fa_row_state state;
};

/* Scores of the warp's 16 rows and WARP_KEYS keys, to its scratch. */
__device__ __forceinline__ void compute_scores(acc_t *score_s, const frag_rows *q_r, const __half *q_s, const __half *k_s,
                                               int row_block, int key_block)
{
#pragma unroll
    for (int j = 0; j < WARP_KEYS / 16; j++) {
        frag_acc s_r;
        wmma::fill_fragment(s_r, static_cast<acc_t>(0.0f));
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            frag_keys k_r;
            wmma::load_matrix_sync(k_r, k_s + fa_tile_layout::block(key_block + j, d), fa_tile_layout::LDM);
            if constexpr (Q_IN_REGISTERS) {
                wmma::mma_sync(s_r, q_r[d], k_r, s_r);
            } else {
                frag_rows rows_r;
                wmma::load_matrix_sync(rows_r, q_s + fa_tile_layout::block(row_block, d), fa_tile_layout::LDM);
                wmma::mma_sync(s_r, rows_r, k_r, s_r);
            }
        }
        wmma::store_matrix_sync(score_s + j * 16, s_r, SCORE_STRIDE, wmma::mem_row_major);
    }
}

/* Multiplies row r of the outputs by the factor that lanes 2r and 2r+1 hold. */
__device__ __forceinline__ void rescale(frag_acc (&o_r)[DIM_BLOCKS], float factor, acc_t *scratch_s, int lane)
{
#pragma unroll
    for (int x = 0; x < 8; x++)
        scratch_s[lane / 2 * 24 + lane % 2 * 8 + x] = static_cast<acc_t>(factor);
    __syncwarp();
    frag_acc factor_r;
    wmma::load_matrix_sync(factor_r, scratch_s, 24, wmma::mem_row_major);
#pragma unroll
    for (int d = 0; d < DIM_BLOCKS; d++)
#pragma unroll
        for (int x = 0; x < factor_r.num_elements; x++)
            o_r[d].x[x] = o_r[d].x[x] * factor_r.x[x];
    __syncwarp();
}

/* One tile for 16 rows: `keys` is how many of the warp's keys lane/2's row sees, `masked` whether any row sees fewer
 * than all. */
__device__ __forceinline__ void attend_tile(fa_warp_rows &rows, const frag_rows *q_r, const __half *q_s, const __half *k_s,
                                            const __half *v_s, acc_t *scratch_s, int row_block, int key_block, int keys,
                                            bool masked, float scale, int lane)
{
    __syncwarp(); /* the weights of the tile before have been used */
    compute_scores(scratch_s, q_r, q_s, k_s, row_block, key_block);
    __syncwarp();
    float s_r[LANE_QUADS][4];
    fa_read_scores(s_r, scratch_s, lane);
    const float m_tile = fa_mask_scores(s_r, scale, masked, keys, lane);
    __syncwarp(); /* scores are in registers */

    fa_row_state &state = rows.state;
    if (__any_sync(FA_WARP_ALL, m_tile > state.m + RESCALE_AT)) {
        const float m_new = fmaxf(state.m, m_tile), factor = exp2_approx(state.m - fa_finite_max(m_new));
        if (__any_sync(FA_WARP_ALL, state.m > -FA_INF))
            rescale(rows.o_r, factor, scratch_s, lane);
        state.l *= factor;
        state.m = m_new;
    }
    fa_exponentiate(s_r, state);
    __half *weight_s = reinterpret_cast<__half *>(scratch_s);
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
        *reinterpret_cast<uint2 *>(weight_s + lane / 2 * SCORE_STRIDE + fa_quad_col(i, lane)) =
            make_uint2(pack_half2(s_r[i][0], s_r[i][1]), pack_half2(s_r[i][2], s_r[i][3]));
    __syncwarp();

#pragma unroll
    for (int j = 0; j < WARP_KEYS / 16; j++) {
        frag_rows p_r;
        wmma::load_matrix_sync(p_r, weight_s + j * 16, SCORE_STRIDE);
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            frag_values v_r;
            wmma::load_matrix_sync(v_r, v_s + fa_tile_layout::block(key_block + j, d), fa_tile_layout::LDM);
            wmma::mma_sync(rows.o_r[d], p_r, v_r, rows.o_r[d]);
        }
    }
}

/* Parts of all warps to shared memory, and from there to the output. */
__device__ __forceinline__ void finish(const fa_params &p, const fa_unit &unit, const fa_warp_rows (&rows)[WARP_ROW_GROUPS],
                                       unsigned char *smem, int row_group, int key_group, int lane)
{
    acc_t *part_s = reinterpret_cast<acc_t *>(smem);
    float *stat_s = reinterpret_cast<float *>(part_s + KEY_GROUPS * FA_M * PARTS.stride);
    const fa_stats stats = {stat_s, stat_s + KEY_GROUPS * FA_M};
    const bool aligned = fa_rows_aligned<4>(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s);
#pragma unroll
    for (int block0 = 0; block0 < DIM_BLOCKS; block0 += PARTS.blocks) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row0 = (row_group + i * FA_WARPS) * 16;
            if (row0 >= FA_M || key_group >= KEY_GROUPS)
                continue;
            if (block0 == 0)
                stats.put(key_group, row0, rows[i].state, lane);
#pragma unroll
            for (int d = block0; d < fa_min(block0 + PARTS.blocks, DIM_BLOCKS); d++)
                wmma::store_matrix_sync(part_s + (key_group * FA_M + row0) * PARTS.stride + (d - block0) * 16, rows[i].o_r[d],
                                        PARTS.stride, wmma::mem_row_major);
        }
        __syncthreads();
        fa_write_output<PARTS.stride>(p, unit, stats, part_s, block0 * 16, fa_min(PARTS.blocks, DIM_BLOCKS - block0) * 16,
                                      aligned);
    }
}

extern "C" __global__ void __launch_bounds__(FA_THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, raw_s);
    unsigned char *smem = raw_s + (reinterpret_cast<unsigned long long>(raw_s) & (ALIGNMENT - 1));
    const int warp = threadIdx.x / FA_WARP_SIZE, lane = threadIdx.x % FA_WARP_SIZE;
    /* Warps past ROW_GROUPS * KEY_GROUPS only copy. */
    const int row_group = FA_WARPS >= ROW_GROUPS ? warp % ROW_GROUPS : warp;
    const int key_group = FA_WARPS >= ROW_GROUPS ? warp / ROW_GROUPS : 0;
    __half *tile_s = reinterpret_cast<__half *>(smem); /* K of each stage, then V of each stage */
    __half *q_s = tile_s + FA_STAGES * TILE_BYTES;
    acc_t *scratch_s = reinterpret_cast<acc_t *>(reinterpret_cast<unsigned char *>(q_s) + (Q_IN_REGISTERS ? 0 : Q_BYTES) +
                                                 warp * SCRATCH_BYTES);
    const fa_unit unit = fa_unit_of_block<FA_M>(p);
    const bool k_aligned = fa_rows_aligned<FA_VEC>(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s);
    const bool v_aligned = fa_rows_aligned<FA_VEC>(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s);
    const float scale = p.scale * FA_LOG2_E;

    const auto load_tile = [&](int key0, int stage) {
        __half *k_s = tile_s + stage * (TILE_BYTES / 2), *v_s = k_s + FA_STAGES * (TILE_BYTES / 2);
        fa_fill_tile<FA_N>(unit.k_g + key0 * p.k_stride_s, p.k_stride_s, unit.keys - key0, k_aligned,
                           [=](int row, int col) { return k_s + fa_tile_layout::offset(row, col); });
        fa_fill_tile<FA_N>(unit.v_g + key0 * p.v_stride_s, p.v_stride_s, unit.keys - key0, v_aligned,
                           [=](int row, int col) { return v_s + fa_tile_layout::offset(row, col); });
        if constexpr (FA_STAGES == 2)
            cp_async_commit();
    };

    for (int tile = 0; tile < FA_STAGES * 2; tile++)
        fa_clear_padding(tile_s + tile * (TILE_BYTES / 2), FA_N);
    fa_clear_padding(q_s, FA_M);
    fa_fill_tile<FA_M>(unit.q_g, p.q_stride_s, unit.rows, fa_rows_aligned<FA_VEC>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s),
                       [=](int row, int col) { return q_s + fa_tile_layout::offset(row, col); });
    if constexpr (FA_STAGES == 2) {
        cp_async_commit();
        if (unit.keys > 0)
            load_tile(0, 0);
        cp_async_wait<0>();
    }
    __syncthreads();
    frag_rows q_r[WARP_ROW_GROUPS][Q_IN_REGISTERS ? DIM_BLOCKS : 1];
    fa_warp_rows rows[WARP_ROW_GROUPS];
#pragma unroll
    for (int i = 0; i < WARP_ROW_GROUPS; i++) {
        rows[i].state = {-FA_INF, 0.0f};
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            wmma::fill_fragment(rows[i].o_r[d], static_cast<acc_t>(0.0f));
            if (Q_IN_REGISTERS && row_group + i * FA_WARPS < ROW_GROUPS)
                wmma::load_matrix_sync(q_r[i][Q_IN_REGISTERS ? d : 0],
                                       q_s + fa_tile_layout::block(row_group + i * FA_WARPS, d), fa_tile_layout::LDM);
        }
    }

    for (int key0 = 0, stage = 0; key0 < unit.keys; key0 += FA_N, stage ^= FA_STAGES - 1) {
        if constexpr (FA_STAGES == 2)
            cp_async_wait<0>();
        __syncthreads(); /* two stages: this tile has landed; always: the tile before (or Q) has been used */
        if constexpr (FA_STAGES == 1) {
            load_tile(key0, 0);
            __syncthreads();
        } else if (key0 + FA_N < unit.keys) {
            load_tile(key0 + FA_N, stage ^ 1);
        }
        const __half *k_s = tile_s + stage * (TILE_BYTES / 2), *v_s = k_s + FA_STAGES * (TILE_BYTES / 2);
        const int warp_key0 = key0 + key_group * WARP_KEYS;
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row_block = row_group + i * FA_WARPS, row0 = unit.row0 + row_block * 16;
            if (row_block >= ROW_GROUPS || key_group >= KEY_GROUPS || fa_keys_of_row(p, row0 + 15) <= warp_key0)
                continue;
            attend_tile(rows[i], q_r[i], q_s, k_s, v_s, scratch_s, row_block, key_group * (WARP_KEYS / 16),
                        fa_keys_of_row(p, row0 + lane / 2) - warp_key0, fa_keys_of_row(p, row0) - warp_key0 < WARP_KEYS, scale,
                        lane);
        }
    }
    finish(p, unit, rows, smem, row_group, key_group, lane);
}
