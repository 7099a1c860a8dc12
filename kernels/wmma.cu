/* wmma: both products on tensor cores through WMMA m16n16k16.
 *
 * Idea: the probabilities go back to shared memory as halves and are multiplied by V from there. The output stays in
 *   fragments for the whole loop. To rescale its rows, a warp writes a factor along each row of a 16x16 block and loads
 *   that as a fragment: all fragments of a type have the same layout.
 * Softmax: online, a chunk of keys at a time. The output is rescaled only when a maximum grows by more than 2^8.
 * Builds on: wmma_qk.   Knobs: M, N, WARPS, VEC (halves per load), STAGES, SWIZZLE, ACC (of both products), maxreg.
 * Shared memory: STAGES tiles of K [N][DIM], then of V; Q [M][DIM]; scores of every warp and row group
 *   [16][keys of a chunk], replaced by their probabilities. Where Q fits the registers the scores take its place. The
 *   partial outputs reuse all of it.
 * Limits: M and N multiples of 16; no more warps than 16x16 blocks of scores; outputs fit a thread's registers. */
/* The scores of one chunk of keys are computed beside the softmax of the chunk before. With several groups of warps
 * there is less memory for scores, so their chunks are smaller. */
#define MAX_CHUNK_KEYS (KEY_GROUPS > 1 ? 32 : 64)
#include "wmma/tile.cuh"

WMMA_LIMITS("wmma");
constexpr int OUTPUT_REGISTERS = WARP_ROW_GROUPS * DIM_BLOCKS * (FA_ACC_FP16 ? 4 : 8);
static_assert(OUTPUT_REGISTERS <= 128,
              "wmma: the outputs of M/WARPS rows do not fit a thread's registers (raise WARPS or lower M)");
static_assert(THREADS * (OUTPUT_REGISTERS + 64) <= 65536,
              "wmma: the outputs do not fit the registers of this many WARPS at this head dimension");

constexpr bool Q_IN_REGISTERS = WARP_ROW_GROUPS * DIM_BLOCKS <= 8;
using pipeline = key_pipeline<tile_layout>;
constexpr int Q_BYTES = tile_layout::bytes(FA_M);
constexpr int SCRATCH = 16 * SCORE_STRIDE, SCRATCH_BYTES = WARP_ROW_GROUPS * SCRATCH * sizeof(acc_t);
/* Q is read once and makes room for the scores. */
constexpr int Q_AND_SCRATCH_BYTES =
    Q_IN_REGISTERS ? larger(Q_BYTES, FA_WARPS *SCRATCH_BYTES) : Q_BYTES + FA_WARPS * SCRATCH_BYTES;
constexpr int MAIN_BYTES = pipeline::BYTES + Q_AND_SCRATCH_BYTES;
constexpr part_layout PARTS(MAIN_BYTES, sizeof(acc_t));
constexpr int ALIGNMENT = 32; /* of WMMA's pointers */

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = larger(MAIN_BYTES, PARTS.bytes) + ALIGNMENT - 16,
               .writes_lse = FA_LSE, .serves_bf16 = 1);

/* What a warp keeps from tile to tile, per row group. */
struct warp_rows {
    int row_block[WARP_ROW_GROUPS]; /* in the tile; a group past the last repeats it, and is not written */
    row_state state[WARP_ROW_GROUPS];
    frag_acc o_r[WARP_ROW_GROUPS][DIM_BLOCKS];
    frag_rows q_r[WARP_ROW_GROUPS][Q_IN_REGISTERS ? DIM_BLOCKS : 1];
};

__device__ __forceinline__ void start_rows(warp_rows &rows, const fa_element *q_s, int row_unit)
{
#pragma unroll
    for (int i = 0; i < WARP_ROW_GROUPS; i++) {
        rows.row_block[i] = min(row_unit + i * ROW_UNITS, ROW_GROUPS - 1);
        rows.state[i] = {NO_MAX, 0.0f};
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            wmma::fill_fragment(rows.o_r[i][d], static_cast<acc_t>(0.0f));
            if constexpr (Q_IN_REGISTERS)
                wmma::load_matrix_sync(rows.q_r[i][d], tile_layout::block_at(q_s, rows.row_block[i], 0, d),
                                       tile_layout::LDM);
        }
    }
}

using frag_scores = frag_acc[WARP_ROW_GROUPS][CHUNK_BLOCKS];

/* S = Q K^T of the warp's rows and a chunk of keys. A block of K serves all row groups. */
__device__ __forceinline__ void compute_scores(frag_scores &s_r, const warp_rows &rows, const fa_element *q_s,
                                               const fa_element *k_s, int key_block, int chunk)
{
#pragma unroll
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++)
            wmma::fill_fragment(s_r[i][j], static_cast<acc_t>(0.0f));
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            frag_keys k_r;
            wmma::load_matrix_sync(k_r, tile_layout::block_at(k_s, key_block, chunk * CHUNK_BLOCKS + j, d),
                                   tile_layout::LDM);
#pragma unroll
            for (int i = 0; i < WARP_ROW_GROUPS; i++) {
                if constexpr (Q_IN_REGISTERS) {
                    wmma::mma_sync(s_r[i][j], rows.q_r[i][d], k_r, s_r[i][j]);
                } else {
                    frag_rows q_r;
                    wmma::load_matrix_sync(q_r, tile_layout::block_at(q_s, rows.row_block[i], 0, d), tile_layout::LDM);
                    wmma::mma_sync(s_r[i][j], q_r, k_r, s_r[i][j]);
                }
            }
        }
    }
}

__device__ __forceinline__ void store_scores(acc_t *scratch_s, const frag_scores &s_r)
{
#pragma unroll
    for (int i = 0; i < WARP_ROW_GROUPS; i++)
#pragma unroll
        for (int j = 0; j < CHUNK_BLOCKS; j++)
            wmma::store_matrix_sync(scratch_s + i * SCRATCH + j * 16, s_r[i][j], SCORE_STRIDE, wmma::mem_row_major);
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

/* Scores become probabilities, in scratch; the state and the outputs of their 16 rows follow.
 * keys: how many of the chunk's keys row lane / 2 sees; masked: whether any row sees fewer than all. */
__device__ __forceinline__ void online_softmax(float (&s_r)[LANE_QUADS][4], row_state &state,
                                               frag_acc (&o_r)[DIM_BLOCKS], acc_t *scratch_s, int keys, bool masked,
                                               float scale, int lane)
{
    const float m_tile = mask_scores(s_r, scale, masked, keys, lane);
    __syncwarp(); /* scores are in registers */
    if (__any_sync(ALL_LANES, m_tile > state.m + RESCALE_AT)) {
        const float m_new = fmaxf(state.m, m_tile), factor = exp2_approx(state.m - m_new);
        if (__any_sync(ALL_LANES, state.m > NO_MAX))
            rescale(o_r, factor, scratch_s, lane);
        state.l *= factor;
        state.m = m_new;
    }
    exponentiate(s_r, scale, state);
    fa_element *p_s = reinterpret_cast<fa_element *>(scratch_s);
#pragma unroll
    for (int i = 0; i < LANE_QUADS; i++)
        *reinterpret_cast<uint2 *>(p_s + lane / 2 * SCORE_STRIDE + quad_col(i, lane)) =
            make_uint2(pack_elements(s_r[i][0], s_r[i][1]), pack_elements(s_r[i][2], s_r[i][3]));
}

/* O += P V of a chunk of keys. A block of V serves all row groups. */
__device__ __forceinline__ void add_values(warp_rows &rows, const acc_t *scratch_s, const fa_element *v_s,
                                           int key_block, int chunk)
{
#pragma unroll
    for (int j = 0; j < CHUNK_BLOCKS; j++) {
        frag_rows p_r[WARP_ROW_GROUPS];
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++)
            wmma::load_matrix_sync(p_r[i], reinterpret_cast<const fa_element *>(scratch_s + i * SCRATCH) + j * 16,
                                   SCORE_STRIDE);
#pragma unroll
        for (int d = 0; d < DIM_BLOCKS; d++) {
            frag_values v_r;
            wmma::load_matrix_sync(v_r, tile_layout::block_at(v_s, key_block, chunk * CHUNK_BLOCKS + j, d),
                                   tile_layout::LDM);
#pragma unroll
            for (int i = 0; i < WARP_ROW_GROUPS; i++)
                wmma::mma_sync(rows.o_r[i][d], p_r[i], v_r, rows.o_r[i][d]);
        }
    }
}

/* The warp's rows against its keys of one tile, which start at key `key0`. */
__device__ __forceinline__ void attend_tile(warp_rows &rows, const fa_params &p, const query_tile &tile,
                                            const fa_element *q_s, const fa_element *k_s, const fa_element *v_s,
                                            acc_t *scratch_s, int key_block, int key0, float scale, int lane)
{
    frag_scores next_r;
    compute_scores(next_r, rows, q_s, k_s, key_block, 0);
#pragma unroll
    for (int chunk = 0; chunk < WARP_KEYS / CHUNK_KEYS; chunk++) {
        const int chunk_key0 = key0 + chunk * CHUNK_KEYS;
        __syncwarp(); /* the probabilities before have been used */
        store_scores(scratch_s, next_r);
        __syncwarp();
        float s_r[WARP_ROW_GROUPS][LANE_QUADS][4];
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++)
            read_scores(s_r[i], scratch_s + i * SCRATCH, lane);
        if (chunk + 1 < WARP_KEYS / CHUNK_KEYS)
            compute_scores(next_r, rows, q_s, k_s, key_block, chunk + 1);
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row0 = tile.row0 + rows.row_block[i] * 16;
            online_softmax(s_r[i], rows.state[i], rows.o_r[i], scratch_s + i * SCRATCH,
                           keys_of_row(p, row0 + lane / 2) - chunk_key0, keys_of_row(p, row0) - chunk_key0 < CHUNK_KEYS,
                           scale, lane);
        }
        __syncwarp();
        add_values(rows, scratch_s, v_s, key_block, chunk);
    }
}

/* The parts of all warps go to shared memory, and from there to the output. */
__device__ __forceinline__ void store_output(const fa_params &p, const query_tile &tile, const warp_rows &rows,
                                             unsigned char *smem, int row_unit, int key_group, int lane)
{
    acc_t *part_s = reinterpret_cast<acc_t *>(smem);
    float *stat_s = reinterpret_cast<float *>(part_s + KEY_GROUPS * FA_M * PARTS.stride);
    const part_stats stats = {stat_s, stat_s + KEY_GROUPS * FA_M};
    const bool aligned = rows_aligned<4>(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s);
#pragma unroll
    for (int block0 = 0; block0 < DIM_BLOCKS; block0 += PARTS.blocks) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < WARP_ROW_GROUPS; i++) {
            const int row0 = (row_unit + i * ROW_UNITS) * 16;
            if (row0 >= FA_M || key_group >= KEY_GROUPS)
                continue;
            if (block0 == 0)
                stats.put(key_group, row0, rows.state[i], lane);
#pragma unroll
            for (int d = block0; d < smaller(block0 + PARTS.blocks, DIM_BLOCKS); d++)
                wmma::store_matrix_sync(part_s + (key_group * FA_M + row0) * PARTS.stride + (d - block0) * 16,
                                        rows.o_r[i][d], PARTS.stride, wmma::mem_row_major);
        }
        __syncthreads();
        write_output<PARTS.stride>(p, tile, stats, part_s, block0 * 16, smaller(PARTS.blocks, DIM_BLOCKS - block0) * 16,
                                   aligned);
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, raw_s);
    unsigned char *smem = raw_s + (reinterpret_cast<unsigned long long>(raw_s) & (ALIGNMENT - 1));
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const int row_unit = warp % ROW_UNITS, key_group = warp / ROW_UNITS;
    fa_element *tiles_s = reinterpret_cast<fa_element *>(smem), *q_s = tiles_s + pipeline::BYTES / 2;
    acc_t *scratch_s = reinterpret_cast<acc_t *>(reinterpret_cast<unsigned char *>(q_s) +
                                                 (Q_IN_REGISTERS ? 0 : Q_BYTES) + warp * SCRATCH_BYTES);
    const query_tile tile = tile_of_block<FA_M>(p);
    const pipeline tiles(p, tile, tiles_s, key_group);
    const float scale = p.scale * LOG2_E;

    tiles.start(q_s);
    warp_rows rows;
    start_rows(rows, q_s, row_unit);
    if constexpr (Q_IN_REGISTERS)
        __syncthreads(); /* the scores take the place of Q */
    const int last_row = tile.row0 + rows.row_block[WARP_ROW_GROUPS - 1] * 16 + 15;
    tiles.start_late_groups();

    for (int key0 = tiles.row0, stage = 0; key0 < tiles.end; key0 += FA_N, stage ^= FA_STAGES - 1) {
        tiles.wait(key0, stage); /* K and V of this tile are here, those of the next on their way */
        if constexpr (IDLE_THREADS > 0)
            if (key_group >= KEY_GROUPS)
                continue;
        if (key0 < keys_of_row(p, last_row)) /* Q K^T, online softmax, P V */
            attend_tile(rows, p, tile, q_s, tiles.k_s(stage), tiles.v_s(stage), scratch_s, tiles.row0 / 16, key0, scale,
                        lane);
    }
    store_output(p, tile, rows, smem, row_unit, key_group, lane);
}
