/* wmma_qk: Q K^T on tensor cores through WMMA m16n16k16, P V on CUDA cores.
 *
 * Idea: a warp owns groups of 16 query rows. WMMA does not say which thread holds which score, so a warp writes its
 *   scores to memory of its own in shared memory and reads them back by rows. The rest is as in light: lanes share the
 *   softmax of a row, then the head dimension of V. Warps beyond one per 16 rows share out the keys of a tile.
 * Softmax: online, a tile of keys at a time. The output is rescaled only when a maximum grows by more than 2^8.
 * Builds on: light.
 * Knobs: M, N, WARPS, VEC (halves per load), STAGES, SWIZZLE (of Q and K), ACC (of Q K^T), maxreg.
 * Shared memory: Q [M][DIM]; STAGES tiles of K [N][DIM], then of V [N][DIM] without padding; scores of every warp
 *   [16][N / KEY_GROUPS], replaced by their probabilities. The partial outputs reuse all of it.
 * Limits: M and N multiples of 16; no more warps than 16x16 blocks of scores; outputs fit a thread's registers. */
#include "wmma/tile.cuh"

WMMA_LIMITS("wmma_qk");

/* For P V: a lane has 8 dimensions of every second row, so that each probability it reads meets 8 values; lanes left
 * over share the keys. */
constexpr int DIM_LANES = FA_DIM <= 16 ? 2 : FA_DIM <= 32 ? 4 : FA_DIM <= 64 ? 8 : 16;
constexpr int ROW_SPLIT = 2;
constexpr int LANE_KEY_GROUPS = WARP_SIZE / (ROW_SPLIT * DIM_LANES), LANE_ROWS = 16 / ROW_SPLIT;
constexpr int CHUNKS = ceil_div(FA_DIM, 8 * DIM_LANES);
static_assert(WARP_ROW_GROUPS * CHUNKS <= 2,
              "wmma_qk: the outputs of M/WARPS rows do not fit a thread's registers (raise WARPS or lower M)");
static_assert(THREADS * (WARP_ROW_GROUPS * CHUNKS * 64 + 56) <= 65536,
              "wmma_qk: the outputs do not fit the registers of this many WARPS at this head dimension");

/* The layout of V. No fragment reads it, so its rows need no padding. */
struct value_rows {
    static constexpr bool PADDED = false;
    __host__ __device__ static constexpr int bytes(int rows) { return rows * FA_DIM * 2; }
    __device__ static int offset(int row, int col) { return row * FA_DIM + col; }
};
using pipeline = key_pipeline<value_rows>;
constexpr int Q_BYTES = tile_layout::bytes(FA_M);
constexpr int SCRATCH_BYTES = 16 * SCORE_STRIDE * 4;
constexpr int MAIN_BYTES = pipeline::BYTES + Q_BYTES + FA_WARPS * SCRATCH_BYTES;
constexpr part_layout PARTS(MAIN_BYTES, sizeof(float));
constexpr int ALIGNMENT = 32; /* of WMMA's pointers */

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = larger(MAIN_BYTES, PARTS.bytes) + ALIGNMENT - 16,
               .writes_lse = FA_LSE, .serves_bf16 = 1);

struct warp_rows {
    float o_r[LANE_ROWS][CHUNKS][8]; /* of rows lane_row(r, lane), columns lane_col(c, lane) + x */
    row_state state;                 /* of row lane / 2 */
};

__device__ __forceinline__ int lane_row(int r, int lane) { return r * ROW_SPLIT + lane / DIM_LANES % ROW_SPLIT; }

__device__ __forceinline__ int lane_col(int c, int lane) { return (c * DIM_LANES + lane % DIM_LANES) * 8; }

/* S = Q K^T of the warp's 16 rows and WARP_KEYS keys, to its scratch. */
__device__ __forceinline__ void compute_scores(acc_t *score_s, const fa_element *q_s, const fa_element *k_s,
                                               int row_block, int key_block)
{
    frag_acc s_r[WARP_KEYS / 16];
#pragma unroll
    for (int j = 0; j < WARP_KEYS / 16; j++)
        wmma::fill_fragment(s_r[j], static_cast<acc_t>(0.0f));
#pragma unroll 4
    for (int d = 0; d < DIM_BLOCKS; d++) {
        frag_rows q_r;
        wmma::load_matrix_sync(q_r, tile_layout::block_at(q_s, row_block, 0, d), tile_layout::LDM);
#pragma unroll
        for (int j = 0; j < WARP_KEYS / 16; j++) {
            frag_keys k_r;
            wmma::load_matrix_sync(k_r, tile_layout::block_at(k_s, key_block, j, d), tile_layout::LDM);
            wmma::mma_sync(s_r[j], q_r, k_r, s_r[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < WARP_KEYS / 16; j++)
        wmma::store_matrix_sync(score_s + j * 16, s_r[j], SCORE_STRIDE, wmma::mem_row_major);
}

/* O += P V. Lanes with equal rows and dimensions and different keys hold parts of a sum, added once at the end. */
__device__ __forceinline__ void add_values(float (&o_r)[LANE_ROWS][CHUNKS][8], const float *p_s, const fa_element *v_s,
                                           int lane)
{
#pragma unroll 1
    for (int key = lane / (ROW_SPLIT * DIM_LANES) * 4; key < WARP_KEYS; key += LANE_KEY_GROUPS * 4) {
        float v_r[4][CHUNKS][8];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                read_floats(v_r[i][c], v_s + (key + i) * FA_DIM + min(lane_col(c, lane), FA_DIM - 8));
        float p_r[LANE_ROWS][4];
#pragma unroll
        for (int r = 0; r < LANE_ROWS; r++)
            read_floats(p_r[r], p_s + lane_row(r, lane) * SCORE_STRIDE + key);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                for (int x = 0; x < 8; x++)
#pragma unroll
                    for (int r = 0; r < LANE_ROWS; r++)
                        o_r[r][c][x] += p_r[r][i] * v_r[i][c][x];
    }
}

/* Scores become probabilities; the state and the outputs of their 16 rows follow. */
__device__ __forceinline__ void online_softmax(float (&s_r)[LANE_QUADS][4], warp_rows &rows, float m_tile, float scale,
                                               int lane)
{
    row_state &state = rows.state;
    if (__any_sync(ALL_LANES, m_tile > state.m + RESCALE_AT)) {
        const float m_new = fmaxf(state.m, m_tile), factor = exp2_approx(state.m - m_new);
#pragma unroll
        for (int r = 0; r < LANE_ROWS; r++) {
            const float row_factor = __shfl_sync(ALL_LANES, factor, lane_row(r, lane) * 2);
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                for (int x = 0; x < 8; x++)
                    rows.o_r[r][c][x] *= row_factor;
        }
        state.l *= factor;
        state.m = m_new;
    }
    exponentiate(s_r, scale, state);
}

/* One tile for 16 rows. keys: how many of the warp's keys row lane / 2 sees; all_keys: how many every row sees. */
__device__ __forceinline__ void attend_tile(warp_rows &rows, const fa_element *q_s, const fa_element *k_s,
                                            const fa_element *v_s, float *scratch_s, int row_block, int key_block,
                                            int keys, int all_keys, float scale, int lane)
{
    acc_t *score_s = reinterpret_cast<acc_t *>(scratch_s);
    __syncwarp(); /* the probabilities before have been used */
    compute_scores(score_s, q_s, k_s, row_block, key_block);
    __syncwarp();
    float s_r[LANE_QUADS][4];
    read_scores(s_r, score_s, lane);
    online_softmax(s_r, rows, mask_scores(s_r, scale, all_keys < WARP_KEYS, keys, lane), scale, lane);
    if constexpr (FA_ACC_FP16)
        __syncwarp(); /* a probability is wider than a score and lies over another lane's score */
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
        *reinterpret_cast<float4 *>(scratch_s + lane / 2 * SCORE_STRIDE + quad_col(i, lane)) =
            make_float4(s_r[i][0], s_r[i][1], s_r[i][2], s_r[i][3]);
    __syncwarp();
    add_values(rows.o_r, scratch_s, v_s + key_block * 16 * FA_DIM, lane);
}

/* Eight columns of one row, summed over the lanes that share them, if they are among the `cols` of this pass. */
__device__ __forceinline__ void put_part(const float (&sum)[8], float *row_s, int col, int cols, int lane)
{
    float sum_r[8];
#pragma unroll
    for (int x = 0; x < 8; x++) {
        sum_r[x] = sum[x];
#pragma unroll
        for (int mask = ROW_SPLIT * DIM_LANES; mask < WARP_SIZE; mask *= 2)
            sum_r[x] += __shfl_xor_sync(ALL_LANES, sum_r[x], mask);
    }
    if (lane >= ROW_SPLIT * DIM_LANES || col < 0 || col >= cols)
        return;
    *reinterpret_cast<float4 *>(row_s + col) = make_float4(sum_r[0], sum_r[1], sum_r[2], sum_r[3]);
    *reinterpret_cast<float4 *>(row_s + col + 4) = make_float4(sum_r[4], sum_r[5], sum_r[6], sum_r[7]);
}

/* The parts of all warps go to shared memory, and from there to the output. */
__device__ __forceinline__ void store_output(const fa_params &p, const query_tile &tile,
                                             warp_rows (&rows)[WARP_ROW_GROUPS], unsigned char *smem, int row_unit,
                                             int key_group, int lane)
{
    float *part_s = reinterpret_cast<float *>(smem), *stat_s = part_s + KEY_GROUPS * FA_M * PARTS.stride;
    const part_stats stats = {stat_s, stat_s + KEY_GROUPS * FA_M};
    const bool aligned = rows_aligned<4>(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s);
    for (int col0 = 0; col0 < FA_DIM; col0 += PARTS.blocks * 16) {
        const int cols = min(PARTS.blocks * 16, FA_DIM - col0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row0 = (row_unit + i * ROW_UNITS) * 16;
            if (row0 >= FA_M || key_group >= KEY_GROUPS)
                continue;
            if (col0 == 0)
                stats.put(key_group, row0, rows[i].state, lane);
#pragma unroll
            for (int r = 0; r < LANE_ROWS; r++)
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
                    put_part(rows[i].o_r[r][c], part_s + (key_group * FA_M + row0 + lane_row(r, lane)) * PARTS.stride,
                             lane_col(c, lane) - col0, cols, lane);
        }
        __syncthreads();
        write_output<PARTS.stride>(p, tile, stats, part_s, col0, cols, aligned);
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, raw_s);
    unsigned char *smem = raw_s + (reinterpret_cast<unsigned long long>(raw_s) & (ALIGNMENT - 1));
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const int row_unit = warp % ROW_UNITS, key_group = warp / ROW_UNITS;
    fa_element *q_s = reinterpret_cast<fa_element *>(smem), *tiles_s = q_s + Q_BYTES / 2;
    float *scratch_s = reinterpret_cast<float *>(tiles_s + pipeline::BYTES / 2) + warp * (SCRATCH_BYTES / 4);
    const query_tile tile = tile_of_block<FA_M>(p);
    const pipeline tiles(p, tile, tiles_s, key_group);
    const float scale = p.scale * LOG2_E;

    tiles.start(q_s);
    warp_rows rows[WARP_ROW_GROUPS] = {};
#pragma unroll
    for (int i = 0; i < WARP_ROW_GROUPS; i++)
        rows[i].state.m = NO_MAX;
    tiles.start_late_groups();

    for (int key0 = tiles.row0, stage = 0; key0 < tiles.end; key0 += FA_N, stage ^= FA_STAGES - 1) {
        tiles.wait(key0, stage); /* K and V of this tile are here, those of the next on their way */
        if constexpr (IDLE_THREADS > 0)
            if (key_group >= KEY_GROUPS)
                continue;
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row_block = row_unit + i * ROW_UNITS, row0 = tile.row0 + row_block * 16;
            if (row_block < ROW_GROUPS && key0 < keys_of_row(p, row0 + 15)) /* Q K^T, online softmax, P V */
                attend_tile(rows[i], q_s, tiles.k_s(stage), tiles.v_s(stage), scratch_s, row_block, tiles.row0 / 16,
                            keys_of_row(p, row0 + lane / 2) - key0, keys_of_row(p, row0) - key0, scale, lane);
        }
    }
    store_output(p, tile, rows, smem, row_unit, key_group, lane);
}
