/* light: a flash-attention tile in shared memory, on CUDA cores.
 *
 * Idea: M query rows meet N keys in shared memory. A warp owns M / WARPS rows. For Q K^T each lane takes keys of its
 *   own, so a score needs no reduction; for P V the lanes share the head dimension. Two barriers per tile.
 * Softmax: online, a tile of keys at a time. The maximum takes five shuffles per row and tile; the sum is reduced once,
 *   at the end.
 * Features: all of forward attention, FP8 tensors too: they become floats where they are used. What a row sees is in
 *   shared/sequence.cuh, what changes its scores in shared/score.cuh; feature_scores and store_output use them.
 * Builds on: scalar.   Knobs: M, N, WARPS, VEC (elements per global load), maxreg.
 * Shared memory: Q [M][DIM] (floats up to DIM 128), K [N][DIM + padding] (lanes on neighbouring keys read different
 *   banks), V [N][DIM_V], P [M][N] floats (each row is written and read by one warp).
 * Limits: M a multiple of WARPS, N of 32; scores and outputs of M / WARPS rows fit a thread's registers. */
#include "shared/load.cuh"
#include "shared/schedule.cuh"
#include "shared/score.cuh"

static_assert(FA_STAGES == 1, "light: STAGES must be 1 (one K/V tile in shared memory)");
static_assert(FA_SWIZZLE == 0, "light: SWIZZLE must be 0 (rows of K are padded)");
static_assert(FA_ACC_FP16 == 0, "light: ACC must be fp32");
static_assert(FA_SPLITS == 1, "light: SPLITS must be 1");
static_assert(FA_M % FA_WARPS == 0, "light: M must be a multiple of WARPS");
static_assert(FA_N % WARP_SIZE == 0, "light: N must be a multiple of 32 (one key per lane)");
static_assert(FA_VEC == 1 || FA_VEC == 2 || FA_VEC == 4 || FA_VEC == 8, "light: VEC must be 1, 2, 4 or 8");

constexpr int ROWS = FA_M / FA_WARPS;                                                         /* per warp */
constexpr int LANE_KEYS = FA_N / WARP_SIZE;                                                   /* lane + 32 * j */
constexpr int DIM_LANES = FA_DIM_V <= 16 ? 4 : FA_DIM_V <= 32 ? 8 : FA_DIM_V <= 64 ? 16 : 32; /* of 4 dims, P V */
constexpr int KEY_GROUPS = WARP_SIZE / DIM_LANES; /* lanes left over share the keys */
constexpr int CHUNKS = ceil_div(FA_DIM_V, 4 * DIM_LANES);
static_assert(
    ROWS * (LANE_KEYS + 4 * CHUNKS) <= 160,
    "light: scores and outputs of M/WARPS rows do not fit a thread's registers (raise WARPS, or lower M or N)");

#if FA_DIM <= 128
using q_smem = float;
#else
using q_smem = fa_element_q;
#endif
constexpr int K_STRIDE = (FA_DIM / 8 | 1) * 8; /* an odd number of units of 8 elements */
constexpr int KV_BYTES = sizeof(fa_element_kv);
constexpr int Q_BYTES = FA_M * FA_DIM * sizeof(q_smem), K_BYTES = FA_N * K_STRIDE * KV_BYTES,
              V_BYTES = FA_N * FA_DIM_V * KV_BYTES;
constexpr int P_BYTES = FA_M * FA_N * 4;

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = Q_BYTES + K_BYTES + V_BYTES + P_BYTES, .writes_lse = FA_LSE,
               .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK |
                         FA_FEATURE_SOFTCAP | FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_BIAS | FA_FEATURE_MASK |
                         FA_FEATURE_DIM_V | FA_FEATURE_FP8 | FA_FEATURE_FP8_KV);

/* Q to shared memory; rows past the last become zero. */
__device__ __forceinline__ void load_q(const fa_params &p, const query_tile &tile, q_smem *q_s)
{
    using piece_type = vec_t<FA_VEC, fa_element_q>;
    const bool aligned = rows_aligned<FA_VEC, fa_element_q>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s);
    for (int piece = threadIdx.x; piece < FA_M * FA_DIM / FA_VEC; piece += THREADS) {
        const int row = piece / (FA_DIM / FA_VEC), col = piece % (FA_DIM / FA_VEC) * FA_VEC;
        const fa_element_q *src_g = tile.q_g + row * p.q_stride_s + col;
        piece_type raw = {};
        if (row < tile.rows && aligned)
            raw = *reinterpret_cast<const piece_type *>(src_g);
        else if (row < tile.rows)
            for (int i = 0; i < FA_VEC; i++)
                reinterpret_cast<fa_element_q *>(&raw)[i] = src_g[i];
#pragma unroll
        for (int i = 0; i < FA_VEC; i++)
            q_s[row * FA_DIM + col + i] = static_cast<q_smem>(reinterpret_cast<const fa_element_q *>(&raw)[i]);
    }
}

/* A tile of keys from `key0` on out of pages, to `place(row, col)`; keys past the last become zero. */
template <int COLS, class PLACE>
__device__ __forceinline__ void load_from_pages(const query_tile &tile, const paged_rows &rows, int key0, bool aligned,
                                                const PLACE &place)
{
    using piece_type = vec_t<FA_VEC, fa_element_kv>;
    for (int piece = threadIdx.x; piece < FA_N * COLS / FA_VEC; piece += THREADS) {
        const int row = piece / (COLS / FA_VEC), col = piece % (COLS / FA_VEC) * FA_VEC;
        piece_type raw = {};
        if (key0 + row < tile.keys) {
            const fa_element_kv *row_g = row_at(rows, key0 + row, col);
            if (aligned)
                raw = *reinterpret_cast<const piece_type *>(row_g);
            for (int i = 0; !aligned && i < FA_VEC; i++)
                reinterpret_cast<fa_element_kv *>(&raw)[i] = row_g[i];
        }
        *reinterpret_cast<piece_type *>(place(row, col)) = raw;
    }
}

__device__ __forceinline__ void read_queries(float (&f)[8], const float *src_s)
{
    read_floats(reinterpret_cast<float(&)[4]>(f[0]), src_s);
    read_floats(reinterpret_cast<float(&)[4]>(f[4]), src_s + 4);
}

__device__ __forceinline__ void read_queries(float (&f)[8], const fa_element_q *src_s) { read_floats(f, src_s); }

/* S = Q K^T: lane l computes the products of keys l, l + 32, ... */
__device__ __forceinline__ void products_of_tile(float (&s_r)[ROWS][LANE_KEYS], const q_smem *q_s,
                                                 const fa_element_kv *k_s, int lane)
{
    clear(s_r);
#pragma unroll 2
    for (int d = 0; d < FA_DIM; d += 8) {
        float k_r[LANE_KEYS][8];
#pragma unroll
        for (int j = 0; j < LANE_KEYS; j++)
            read_floats(k_r[j], k_s + (lane + j * WARP_SIZE) * K_STRIDE + d);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float q_r[8];
            read_queries(q_r, q_s + r * FA_DIM + d);
#pragma unroll
            for (int j = 0; j < LANE_KEYS; j++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    s_r[r][j] += q_r[i] * k_r[j][i];
        }
    }
}

/* O += P V. Lanes with equal dimensions and different keys hold parts of a sum; store_output adds them. */
__device__ __forceinline__ void add_values(float (&o_r)[ROWS][CHUNKS][4], const float *p_s, const fa_element_kv *v_s,
                                           int lane)
{
    const int group = lane / DIM_LANES;
#pragma unroll 2
    for (int key = group * 4; key < FA_N; key += KEY_GROUPS * 4) {
        float v_r[4][CHUNKS][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                const int col = (c * DIM_LANES + lane % DIM_LANES) * 4;
                read_floats(v_r[i][c], v_s + (key + i) * FA_DIM_V + min(col, FA_DIM_V - 4));
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float p_r[4];
            read_floats(p_r, p_s + r * FA_N + key);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                    for (int x = 0; x < 4; x++)
                        o_r[r][c][x] += p_r[i] * v_r[i][c][x];
        }
    }
}

/* The score, in units of log2, of a row and key whose q.k is `product`; -inf where the row does not see the key. */
__device__ __forceinline__ float feature_score(const fa_params &p, const query_tile &tile, const head_scores &scores,
                                               float product, int row, int key)
{
    const key_range seen = keys_seen(p, tile.seq, row);
    const bool sees = row < tile.seq.seq_q && seen.first <= key && key < seen.end;
    return sees ? modified_score(p, tile.seq, scores, product, row, key) * scores.scale_log2 : -INF;
}

/* Scores become probabilities, in shared memory; the maximum m, the sum l and the output o of each row follow. A lane
 * holds parts of l and o. */
__device__ __forceinline__ void online_softmax(float (&m_r)[ROWS], float (&l_r)[ROWS], float (&o_r)[ROWS][CHUNKS][4],
                                               float (&s_r)[ROWS][LANE_KEYS], float *p_s, const head_scores &scores,
                                               const fa_params &p, const query_tile &tile, int row0, int key0, int lane)
{
    const int first_row = tile.row0 + row0;
    const bool masked = keys_of_row(p, first_row) < key0 + FA_N;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int keys = keys_of_row(p, first_row + r) - key0;
        float m_tile = NO_MAX;
#pragma unroll
        for (int j = 0; j < LANE_KEYS; j++) {
#if FA_FEATURES
            s_r[r][j] = feature_score(p, tile, scores, s_r[r][j], first_row + r, key0 + lane + j * WARP_SIZE);
#else
            s_r[r][j] = masked && lane + j * WARP_SIZE >= keys ? -INF : s_r[r][j] * scores.scale_log2;
#endif
            m_tile = fmaxf(m_tile, s_r[r][j]);
        }
        const float m_new = fmaxf(m_r[r], warp_max(m_tile)), alpha = exp2_approx(m_r[r] - m_new);
        m_r[r] = m_new;
        l_r[r] *= alpha;
#pragma unroll
        for (int j = 0; j < LANE_KEYS; j++) {
            const float weight = exp2_approx(s_r[r][j] - m_new);
            l_r[r] += weight;
            p_s[r * FA_N + lane + j * WARP_SIZE] = weight;
        }
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                o_r[r][c][x] *= alpha;
    }
}

/* Adds the lanes' parts of each row, normalises and stores. */
__device__ __forceinline__ void store_output(const float (&m_r)[ROWS], const float (&l_r)[ROWS],
                                             const float (&o_r)[ROWS][CHUNKS][4], const fa_params &p,
                                             const query_tile &tile, int row0, int lane)
{
    const bool aligned = rows_aligned<4>(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s);
    const float value_scale = value_scale_of_head(p, tile.seq.batch, tile.head);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float sum = warp_sum(l_r[r]), m = m_r[r];
        const float weight = add_sink(p, tile.head, m, sum), inverse = inverse_of_sum(sum) * weight * value_scale;
#if FA_LSE
        if (lane == 0 && row0 + r < tile.rows)
            store_lse(p, tile, row0 + r, log_sum_exp(m, sum));
#endif
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int col = (c * DIM_LANES + lane % DIM_LANES) * 4;
            float out_r[4];
#pragma unroll
            for (int x = 0; x < 4; x++) {
                float out = o_r[r][c][x];
#pragma unroll
                for (int mask = DIM_LANES; mask < WARP_SIZE; mask *= 2)
                    out += __shfl_xor_sync(ALL_LANES, out, mask);
                out_r[x] = out * inverse;
            }
            if (lane < DIM_LANES && col < FA_DIM_V && row0 + r < tile.rows)
                write_elements(tile.o_g + (row0 + r) * p.o_stride_s + col, out_r, aligned);
        }
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, smem);
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE, row0 = warp * ROWS;
    q_smem *q_s = reinterpret_cast<q_smem *>(smem);
    fa_element_kv *k_s = reinterpret_cast<fa_element_kv *>(smem + Q_BYTES), *v_s = k_s + K_BYTES / KV_BYTES;
    float *p_s = reinterpret_cast<float *>(smem + Q_BYTES + K_BYTES + V_BYTES) + row0 * FA_N;

    const query_tile tile = tile_of_block<FA_M>(p);
    if (HAS_VARLEN && tile.rows == 0)
        return;
    const bool k_aligned = rows_aligned<FA_VEC, fa_element_kv>(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s);
    const bool v_aligned = rows_aligned<FA_VEC, fa_element_kv>(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s);
    const head_scores scores = scores_of_head(p, tile.seq, tile.head);
    load_q(p, tile, q_s);
#if FA_FEATURES & FA_FEATURE_PAGED
    const int kv_head = tile.head / (p.heads / p.kv_heads);
    const paged_rows k_rows = kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile.seq.batch, kv_head);
    const paged_rows v_rows = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile.seq.batch, kv_head);
#endif

    float m_r[ROWS], l_r[ROWS], o_r[ROWS][CHUNKS][4] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        m_r[r] = NO_MAX;
        l_r[r] = 0.0f;
    }
    const auto k_place = [=](int row, int col) { return k_s + row * K_STRIDE + col; };
    const auto v_place = [=](int row, int col) { return v_s + row * FA_DIM_V + col; };
    for (int key0 = tile.first_key; key0 < tile.keys; key0 += FA_N) {
        const int keys = tile.keys - key0;
        __syncthreads(); /* the previous tile has been used */
#if FA_FEATURES & FA_FEATURE_PAGED
        load_from_pages<FA_DIM>(tile, k_rows, key0, k_aligned, k_place);
        load_from_pages<FA_DIM_V>(tile, v_rows, key0, v_aligned, v_place);
#else
        load_rows<FA_N, FA_DIM>(tile.k_g + key0 * p.k_stride_s, p.k_stride_s, keys, k_aligned, k_place);
        load_rows<FA_N, FA_DIM_V>(tile.v_g + key0 * p.v_stride_s, p.v_stride_s, keys, v_aligned, v_place);
#endif
        __syncthreads();

        float s_r[ROWS][LANE_KEYS];
        products_of_tile(s_r, q_s + row0 * FA_DIM, k_s, lane);
        online_softmax(m_r, l_r, o_r, s_r, p_s, scores, p, tile, row0, key0, lane);
        __syncwarp();
        add_values(o_r, p_s, v_s, lane);
    }
    store_output(m_r, l_r, o_r, p, tile, row0, lane);
}
