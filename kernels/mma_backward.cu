/* mma_backward: the gradients of attention on mma.sync, for sm_80 and later.
 *
 * Idea: a block owns N keys and meets the query tiles that see them, for all query heads of its K/V head. The scores
 *   are made transposed, S^T = K Q^T and dP^T = V dO^T: their accumulators are P^T and dS^T, the left operands of
 *   dV += P^T dO and dK += dS^T Q, which stay in registers until the last tile. dS^T goes through shared memory for
 *   the fifth product, dQ = dS K; its parts are added to FP32 sums in the workspace.
 * Warps: each takes 32 keys where it can, so that a fragment from shared memory serves two products; else 16, or more.
 *   Where WARPS are more than that, several share the same keys: each makes the scores of a part of the queries and
 *   sums a part of the columns of dK and dV; P^T goes through shared memory, too, for the others.
 * Around it: fa_before makes delta and clears the sums of dQ, fa_after rounds them (mma/gradients.cuh).
 *   --deterministic: the tiles of keys add to a tile of dQ one after the other, by a turn in the workspace.
 * Builds on: mma.   Knobs: m (queries of a step), n (keys of a block), warps, stages (of Q and dO), swizzle.
 * Limits: dim and dim-v multiples of 8 up to 256; lengths, windows, chunks, softcap, sinks, ALiBi. */
#include "mma/gradients.cuh"

constexpr int M = FA_M, N = FA_N, WARPS = FA_WARPS, STAGES = FA_STAGES;
static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "mma_backward: computes gradients, for --op backward");
static_assert(M % 16 == 0 && N % 16 == 0, "m and n must be multiples of 16: an mma takes 16 rows");
static_assert(WARPS * 16 <= N ? N % (WARPS * 16) == 0 : WARPS * 16 % N == 0,
              "warps must divide n / 16, or be a multiple of it (the extra warps share out queries and columns)");
/* 32 keys of a warp, which one warp has or several share. */
constexpr bool TWO_BANDS = N >= 64 && WARPS * 32 >= N && WARPS * 32 % N == 0 && M % (WARPS * 512 / N) == 0;
static_assert(STAGES == 1 || STAGES == 2, "mma_backward: stages must be 1 or 2");
static_assert(FA_SPLITS == 1, "mma_backward: splits must be 1");
static_assert(!FA_ACC_FP16, "mma accumulates in FP32 only");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= 256, "dim-v must be a multiple of 8 from 16 to 256");

constexpr int SHARERS = TWO_BANDS ? WARPS * 32 / N : WARPS * 16 > N ? WARPS * 16 / N : 1; /* warps with the same keys */
constexpr int BANDS = N * SHARERS / WARPS / 16;                                           /* 16-key bands of a warp */
constexpr int QUERIES = M / SHARERS; /* of which a warp makes the scores */
static_assert(M % (16 * SHARERS) == 0, "m must be a multiple of 16 for each of the warps that share the same keys");
static_assert(SHARERS == 1 || (QUERIES & (QUERIES - 1)) == 0, "m must be a power of two where warps share keys");
constexpr int K_STEPS = ceil_div(qk_row::STEPS, SHARERS), V_STEPS = ceil_div(v_row::STEPS, SHARERS); /* of 16 columns */
static_assert(BANDS * (K_STEPS + V_STEPS) * 8 + BANDS * QUERIES / 2 <= 216,
              "n / warps gives a warp more of dK and dV than its registers hold");
constexpr int QUERY_BANDS = M / 16, KEY_STEPS = N / 16;
static_assert(WARPS % QUERY_BANDS == 0 || QUERY_BANDS % WARPS == 0, "warps must divide m / 16, or be a multiple of it");

/* P^T and dS^T in shared memory: a row of M elements for each key. */
using pair_row = row_layout<M>;
static_assert(no_bank_conflicts<pair_row>(), "the layout of P and dS has bank conflicts");

constexpr int K_BYTES = N * qk_row::ROW_BYTES, V_BYTES = N * v_row::ROW_BYTES;
constexpr int Q_BYTES = M * qk_row::ROW_BYTES, DO_BYTES = M * v_row::ROW_BYTES;
constexpr int STAGE_BYTES = Q_BYTES + DO_BYTES + M * 8; /* then the rows' log-sum-exp, and delta */
constexpr int PAIR_BYTES = N * pair_row::ROW_BYTES;
constexpr int V_AT = K_BYTES, STAGES_AT = V_AT + V_BYTES, DS_AT = STAGES_AT + STAGES * STAGE_BYTES;
constexpr int P_AT = DS_AT + PAIR_BYTES, SMEM_BYTES = P_AT + (SHARERS > 1 ? PAIR_BYTES : 0);

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_KEYS,
               .workspace_bytes_per_block = static_cast<fa_i64>(M) * WORKSPACE_BYTES_PER_ROW,
               .nondeterministic = !DETERMINISTIC, .pack_heads = 1, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC);

__device__ __forceinline__ void load_keys(const fa_params &p, const key_block &block, unsigned char *smem)
{
    const sequence &seq = block.seq;
    load_tile<N, FA_DIM, true>(
        smem_address(smem),
        head_rows{key_rows(p.k, seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, block.kv_head), p.k_stride_s},
        block.key0, seq.seq_kv, block.aligned, threadIdx.x);
    load_tile<N, FA_DIM_V, true>(
        smem_address(smem + V_AT),
        head_rows{key_rows(p.v, seq, p.v_stride_b, p.v_stride_h, p.v_stride_s, block.kv_head), p.v_stride_s},
        block.key0, seq.seq_kv, block.aligned, threadIdx.x);
}

/* Q, dO, and the numbers of M rows; all of a row that is not there are 0, and so is what it adds. */
__device__ __forceinline__ void load_queries(const fa_params &p, const key_block &block, unsigned char *stage_s,
                                             int head, int tile)
{
    const sequence &seq = block.seq;
    const fa_i64 *of_dout = p.grad_stride[0];
    const gradient_rows rows = gradients_of(p, seq, head);
    load_tile<M, FA_DIM, true>(
        smem_address(stage_s),
        head_rows{query_rows(p.q, seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, head), p.q_stride_s}, tile * M,
        seq.seq_q, block.aligned, threadIdx.x);
    load_tile<M, FA_DIM_V, true>(
        smem_address(stage_s + Q_BYTES),
        head_rows{query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], head), of_dout[2]}, tile * M, seq.seq_q,
        block.aligned, threadIdx.x);
    for (int i = threadIdx.x; i < 2 * M; i += THREADS) {
        const float *from_g = i < M ? rows.lse2_g : rows.delta_g;
        const int row = tile * M + i % M;
        cp_async_4(stage_s + Q_BYTES + DO_BYTES + i * 4, from_g + (row < seq.seq_q ? row : 0), row < seq.seq_q ? 4 : 0);
    }
    cp_async_commit();
}

/* A warp's part of the work, and its sums. */
struct warp_state {
    int key, query, k_step, v_step; /* first key, query, and 16 columns of dK and dV, of the tiles */
    float dk[BANDS][K_STEPS * 2][4], dv[BANDS][V_STEPS * 2][4];
};

/* s = keys times queries, transposed scores: rows are keys. */
template <class ROW>
__device__ __forceinline__ void multiply_rows(float (&s)[BANDS][QUERIES / 8][4], smem_addr keys_at,
                                              smem_addr queries_at)
{
    const unsigned lane = threadIdx.x % WARP_SIZE;
    const smem_addr a_at = keys_at + v_lane_offset<ROW>(lane), b_at = queries_at + k_lane_offset<ROW>(lane);
    clear(s);
#pragma unroll
    for (int step = 0; step < ROW::STEPS; ++step) {
        unsigned a[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
            ldmatrix_x4_at(a[b], fragment<ROW>(a_at, step, b));
#pragma unroll
        for (int c = 0; c < QUERIES / 16; ++c) {
            unsigned q[4];
            ldmatrix_x4_at(q, fragment<ROW>(b_at, step, c));
            const unsigned lo[2] = {q[0], q[1]}, hi[2] = {q[2], q[3]};
#pragma unroll
            for (int b = 0; b < BANDS; ++b) {
                mma_m16n8k16(s[b][2 * c], a[b], lo);
                mma_m16n8k16(s[b][2 * c + 1], a[b], hi);
            }
        }
    }
}

/* sums += pairs times rows: P^T dO or dS^T Q. OWN: over the warp's own part of the queries, whose pairs are registers;
 * else over those of the warps with the same keys, in shared memory. first_step: of the warp's columns. */
template <bool OWN, class ROW, int COUNT>
__device__ __forceinline__ void add_rows(float (&sums)[BANDS][COUNT * 2][4],
                                         const unsigned (&own)[QUERIES / 16][BANDS][4], smem_addr pairs_at,
                                         smem_addr rows_at, int first_step, int part)
{
    const unsigned lane = threadIdx.x % WARP_SIZE;
    const smem_addr a_at = pairs_at + v_lane_offset<pair_row>(lane), b_at = rows_at + v_lane_offset<ROW>(lane);
#pragma unroll
    for (int k = OWN ? 0 : QUERIES / 16; k < (OWN ? QUERIES : M) / 16; ++k) {
        constexpr int STEPS = QUERIES / 16; /* of a part */
        const int first = SHARERS > 1 ? (part + k / STEPS) % SHARERS * STEPS : 0;
        unsigned pairs[BANDS][4];
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
            if (!OWN)
                ldmatrix_x4_at(pairs[b], fragment<pair_row>(fragment<pair_row>(a_at, first, 0), k % STEPS, b));
            else
                pairs[b][0] = own[k][b][0], pairs[b][1] = own[k][b][1], pairs[b][2] = own[k][b][2],
                pairs[b][3] = own[k][b][3];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (COUNT * SHARERS > ROW::STEPS && first_step + i >= ROW::STEPS)
                continue;
            unsigned columns[4];
            ldmatrix_x4_trans_at(columns, fragment<ROW>(b_at + first * 16 * ROW::ROW_BYTES, first_step + i, k % STEPS));
            const unsigned lo[2] = {columns[0], columns[1]}, hi[2] = {columns[2], columns[3]};
#pragma unroll
            for (int b = 0; b < BANDS; ++b) {
                mma_m16n8k16(sums[b][2 * i], pairs[b], lo);
                mma_m16n8k16(sums[b][2 * i + 1], pairs[b], hi);
            }
        }
    }
}

__device__ __forceinline__ void store_pairs(unsigned char *pairs_s, const unsigned (&pairs)[QUERIES / 16][BANDS][4],
                                            const warp_state &w)
{
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int i = 0; i < QUERIES / 16 * BANDS * 4; ++i) {
        const int chunk16 = i / (BANDS * 4), b = i / 4 % BANDS, r = i % 4;
        const int key = w.key + b * 16 + r % 2 * 8 + lane / 4, query = w.query + chunk16 * 16 + r / 2 * 8;
        *reinterpret_cast<unsigned *>(pairs_s + pair_row::offset(key, query / 8) + lane % 4 * 4) = pairs[chunk16][b][r];
    }
}

/* dQ of the tile's rows += dS K. A warp takes 32 rows, or 16, and every so many 32 or 16 columns. */
constexpr int DQ_BANDS =
    QUERY_BANDS % 2 == 0 && (WARPS * 2 % QUERY_BANDS == 0 || QUERY_BANDS % (WARPS * 2) == 0) ? 2 : 1;
constexpr int DQ_GROUPS = QUERY_BANDS / DQ_BANDS, COLUMN_WARPS = larger(WARPS / DQ_GROUPS, 1);
constexpr int DQ_STEPS = qk_row::STEPS >= 2 * COLUMN_WARPS ? 2 : 1;

__device__ __forceinline__ void add_to_dq(const gradient_rows &rows, int row0, int seq_q, smem_addr ds_at,
                                          smem_addr k_at)
{
    const unsigned lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    const smem_addr a_at = ds_at + k_lane_offset<pair_row>(lane), b_at = k_at + v_lane_offset<qk_row>(lane);
    for (int group = warp % DQ_GROUPS; group < DQ_GROUPS; group += WARPS) {
#pragma unroll 1
        for (int step = warp / DQ_GROUPS * DQ_STEPS; step < qk_row::STEPS; step += COLUMN_WARPS * DQ_STEPS) {
            float sums[DQ_BANDS][DQ_STEPS * 2][4] = {};
#pragma unroll
            for (int k = 0; k < KEY_STEPS; ++k) {
                unsigned ds[DQ_BANDS][4];
#pragma unroll
                for (int b = 0; b < DQ_BANDS; ++b)
                    ldmatrix_x4_trans_at(ds[b], fragment<pair_row>(a_at, group * DQ_BANDS + b, k));
#pragma unroll
                for (int j = 0; j < DQ_STEPS; ++j) {
                    if (qk_row::STEPS % DQ_STEPS != 0 && step + j >= qk_row::STEPS)
                        continue;
                    unsigned columns[4];
                    ldmatrix_x4_trans_at(columns, fragment<qk_row>(b_at, step + j, k));
                    const unsigned lo[2] = {columns[0], columns[1]}, hi[2] = {columns[2], columns[3]};
#pragma unroll
                    for (int b = 0; b < DQ_BANDS; ++b) {
                        mma_m16n8k16(sums[b][2 * j], ds[b], lo);
                        mma_m16n8k16(sums[b][2 * j + 1], ds[b], hi);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < DQ_BANDS * 2; ++i) {
                const int row = row0 + group * DQ_BANDS * 16 + i * 8 + lane / 4;
                float *row_g = rows.dq_g + row * static_cast<fa_i64>(DIM16) + step * 16 + lane % 4 * 2;
                if (row < seq_q)
#pragma unroll
                    for (int t = 0; t < DQ_STEPS * 2; ++t)
                        if (qk_row::STEPS % DQ_STEPS == 0 || step * 2 + t < qk_row::STEPS * 2)
                            red_add_2(row_g + t * 8, sums[i / 2][t][i % 2 * 2], sums[i / 2][t][i % 2 * 2 + 1]);
            }
        }
    }
}

/* add_to_dq, with --deterministic when the tiles of keys before this one have added theirs. */
__device__ __forceinline__ void add_in_turn(const fa_params &p, const key_block &block, const gradient_rows &rows,
                                            int row0, unsigned char *smem)
{
    const sequence &seq = block.seq;
    unsigned *turn_g = rows.turn_g + row0;
    if constexpr (DETERMINISTIC) {
        if (threadIdx.x == 0)
            wait_for_turn(turn_g, turn_of(p, block, row0));
        __syncthreads();
    }
    add_to_dq(rows, row0, seq.seq_q, smem_address(smem + DS_AT), smem_address(smem));
    if constexpr (DETERMINISTIC) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            add_release(turn_g, 1);
    }
}

/* dK or dV of the warp's keys, `factor` times the sums. */
template <int COLUMNS, int COUNT>
__device__ __forceinline__ void store_sums(const float (&sums)[BANDS][COUNT * 2][4], float factor, fa_element *head_g,
                                           fa_i64 stride, int first_key, int keys, int first_step)
{
    const int lane = threadIdx.x % WARP_SIZE;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int key = first_key + b * 16 + h * 8 + lane / 4;
#pragma unroll
            for (int t = 0; t < COUNT * 2; ++t) {
                const int col = first_step * 16 + t * 8;
                if (key < keys && col < COLUMNS)
                    store_pair(head_g + key * stride + col + lane % 4 * 2, sums[b][t][2 * h] * factor,
                               sums[b][t][2 * h + 1] * factor);
            }
        }
}

__device__ __forceinline__ void store_gradients(const fa_params &p, const key_block &block, const warp_state &w)
{
    const fa_i64 *of_dk = p.grad_stride[2], *of_dv = p.grad_stride[3];
    const sequence &seq = block.seq;
    store_sums<FA_DIM, K_STEPS>(w.dk, p.scale, key_rows(p.dk, seq, of_dk[0], of_dk[1], of_dk[2], block.kv_head),
                                of_dk[2], block.key0 + w.key, seq.seq_kv, w.k_step);
    store_sums<FA_DIM_V, V_STEPS>(w.dv, 1.0f, key_rows(p.dv, seq, of_dv[0], of_dv[1], of_dv[2], block.kv_head),
                                  of_dv[2], block.key0 + w.key, seq.seq_kv, w.v_step);
}

/* The five products of a query tile, which is in stage_s. */
__device__ __forceinline__ void add_tile(const fa_params &p, const key_block &block, warp_state &w, unsigned char *smem,
                                         unsigned char *stage_s, int head, int tile)
{
    const head_scores scores = scores_of_head(p, block.seq, head);
    const smem_addr k_at = smem_address(smem), v_at = k_at + V_AT, q_at = smem_address(stage_s), do_at = q_at + Q_BYTES;
    unsigned p_r[QUERIES / 16][BANDS][4], ds_r[QUERIES / 16][BANDS][4];
    {
        float s[BANDS][QUERIES / 8][4], dp[BANDS][QUERIES / 8][4];
        multiply_rows<qk_row>(s, k_at + w.key * qk_row::ROW_BYTES, q_at + w.query * qk_row::ROW_BYTES);
        multiply_rows<v_row>(dp, v_at + w.key * v_row::ROW_BYTES, do_at + w.query * v_row::ROW_BYTES);
        make_pairs<BANDS, QUERIES / 8>(
            p, block, scores, w.key, tile * M, w.query, reinterpret_cast<const float *>(stage_s + Q_BYTES + DO_BYTES),
            [&](int b, int t, int i) { return s[b][t][i]; }, [&](int b, int t, int i) { return dp[b][t][i]; },
            [&](int b, int t, int h, unsigned p_pair, unsigned ds_pair) {
                p_r[t / 2][b][t % 2 * 2 + h] = p_pair;
                ds_r[t / 2][b][t % 2 * 2 + h] = ds_pair;
            });
    }
    store_pairs(smem + DS_AT, ds_r, w);
    if (SHARERS > 1)
        store_pairs(smem + P_AT, p_r, w);
    const smem_addr p_at = k_at + P_AT + w.key * pair_row::ROW_BYTES, ds_at = p_at + DS_AT - P_AT;
    add_rows<true, v_row, V_STEPS>(w.dv, p_r, p_at, do_at, w.v_step, w.query / QUERIES);
    add_rows<true, qk_row, K_STEPS>(w.dk, ds_r, ds_at, q_at, w.k_step, w.query / QUERIES);
    __syncthreads();
    add_rows<false, v_row, V_STEPS>(w.dv, p_r, p_at, do_at, w.v_step, w.query / QUERIES);
    add_rows<false, qk_row, K_STEPS>(w.dk, ds_r, ds_at, q_at, w.k_step, w.query / QUERIES);
    add_in_turn(p, block, gradients_of(p, block.seq, head, block.kv_head, p.heads / p.kv_heads), tile * M, smem);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, 128);
    key_block block;
    if (!find_keys(block, p, [](unsigned, unsigned, unsigned, unsigned, int) {}))
        return;
    const int warp = threadIdx.x / WARP_SIZE, part = warp % SHARERS, group = p.heads / p.kv_heads;
    warp_state w = {warp / SHARERS * BANDS * 16, part * QUERIES, part * K_STEPS, part * V_STEPS, {}, {}};

    const int tiles = block.end - block.begin, count = tiles * group;
    int head = block.kv_head * group, tile = block.begin, stage = 0;
    if (count > 0) {
        load_keys(p, block, smem);
        load_queries(p, block, smem + STAGES_AT, head, tile);
    }
    for (int i = 0; i < count; ++i) {
        const int next_tile = tile + 1 < block.end ? tile + 1 : block.begin, next_head = head + (tile + 1 == block.end);
        unsigned char *stage_s = smem + STAGES_AT + stage * STAGE_BYTES;
        cp_async_wait<0>();
        __syncthreads(); /* the tile has landed, and the one before has been used */
        stage = STAGES - 1 - stage;
        if (STAGES > 1 && i + 1 < count)
            load_queries(p, block, smem + STAGES_AT + stage * STAGE_BYTES, next_head, next_tile);
        add_tile(p, block, w, smem, stage_s, head, tile);
        if (STAGES == 1 && i + 1 < count) {
            __syncthreads();
            load_queries(p, block, smem + STAGES_AT, next_head, next_tile);
        }
        head = next_head, tile = next_tile;
    }
    store_gradients(p, block, w);
}
