/* light_backward: the gradients of attention, on CUDA cores.
 *
 * Idea: two passes, each over the tiles of its own rows, each row with one writer. A block that owns keys meets the
 *   query rows that see them and sums dK and dV; a block that owns query rows meets their keys and sums dQ. Both make
 *   P and dS again: seven products in place of five. In return nothing is added by atomics or in a workspace, so a
 *   repeat gives the same bits, and the query heads of a K/V head are a loop.
 * Products: S = Q K^T and dP = dO V^T with a lane to each row of the other side; P = e^(S - LSE), dS = P (dP - D);
 *   dV += P dO, dK += dS Q, dQ += dS K with the lanes on the columns. fa_before makes D, a row's sum of dO O.
 * Features: lengths, window, chunk, softcap (its derivative is score_slope), sinks (fa_after sums dsinks), ALiBi.
 * Builds on: light.   Knobs: M (query rows of a tile), N (keys of a tile), WARPS, VEC, maxreg.
 * Shared memory: a tile's own rows, 32 rows of the other side (Q with dO, or K with V), P and dS of them.
 * Limits: M and N multiples of WARPS. */
#include "shared/load.cuh"
#include "shared/score.cuh"

static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, "light_backward: computes gradients, for --op backward");
static_assert(FA_STAGES == 1, "light_backward: STAGES must be 1");
static_assert(FA_SWIZZLE == 0, "light_backward: SWIZZLE must be 0 (rows are padded)");
static_assert(FA_ACC_FP16 == 0, "light_backward: ACC must be fp32");
static_assert(FA_SPLITS == 1, "light_backward: SPLITS must be 1");
static_assert(FA_M % FA_WARPS == 0 && FA_N % FA_WARPS == 0, "light_backward: M and N must be multiples of WARPS");
static_assert(FA_VEC == 1 || FA_VEC == 2 || FA_VEC == 4 || FA_VEC == 8, "light_backward: VEC must be 1, 2, 4 or 8");

constexpr int A_CHUNKS = ceil_div(FA_DIM, WARP_SIZE), B_CHUNKS = ceil_div(FA_DIM_V, WARP_SIZE); /* columns of a lane */
constexpr int A_STRIDE = (FA_DIM / 8 | 1) * 8, B_STRIDE = (FA_DIM_V / 8 | 1) * 8; /* odd numbers of 16-byte units */
constexpr int OWN = larger(FA_M, FA_N), OTHER = WARP_SIZE;
constexpr int TILE_BYTES = (OWN + OTHER) * (A_STRIDE + B_STRIDE) * 2;
static_assert(OWN / FA_WARPS * (A_CHUNKS + B_CHUNKS) <= 160,
              "light_backward: sums of M/WARPS or N/WARPS rows do not fit a thread's registers (raise WARPS)");

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = TILE_BYTES + 2 * OWN * OTHER * 4, .grid = FA_GRID_KEYS,
               .workspace_bytes_per_block = FA_M * 4, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC);

/* Rows of a sequence and head: of Q and dO, or of K and V. */
struct rows_g {
    const fa_element *a, *b;
    fa_i64 a_stride, b_stride;
    bool a_aligned, b_aligned;
};

__device__ __forceinline__ rows_g queries_of(const fa_params &p, const sequence &seq, int head)
{
    const fa_i64 *of_dout = p.grad_stride[0];
    return {query_rows(p.q, seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, head),
            query_rows(p.dout, seq, of_dout[0], of_dout[1], of_dout[2], head),
            p.q_stride_s,
            of_dout[2],
            rows_aligned<FA_VEC>(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s),
            rows_aligned<FA_VEC>(p.dout, of_dout[0], of_dout[1], of_dout[2])};
}

__device__ __forceinline__ rows_g keys_of(const fa_params &p, const sequence &seq, int kv_head)
{
    return {key_rows(p.k, seq, p.k_stride_b, p.k_stride_h, p.k_stride_s, kv_head),
            key_rows(p.v, seq, p.v_stride_b, p.v_stride_h, p.v_stride_s, kv_head),
            p.k_stride_s,
            p.v_stride_s,
            rows_aligned<FA_VEC>(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s),
            rows_aligned<FA_VEC>(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s)};
}

/* COUNT rows in shared memory; those past the last are zero. */
struct rows_s {
    fa_element *a, *b;
};

template <int COUNT>
__device__ __forceinline__ void load_tile(const rows_s &to, const rows_g &from, int first, int rows)
{
    const auto a_place = [=](int row, int col) { return to.a + row * A_STRIDE + col; };
    const auto b_place = [=](int row, int col) { return to.b + row * B_STRIDE + col; };
    load_rows<COUNT, FA_DIM>(from.a + first * from.a_stride, from.a_stride, rows, from.a_aligned, a_place);
    load_rows<COUNT, FA_DIM_V>(from.b + first * from.b_stride, from.b_stride, rows, from.b_aligned, b_place);
}

/* D of a query row, and its log-sum-exp. */
__device__ __forceinline__ float *delta_of(const fa_params &p, const sequence &seq, int head)
{
    float *deltas_g = static_cast<float *>(p.workspace);
    if constexpr (HAS_VARLEN)
        return deltas_g + head * p.total_q + seq.first_q;
    return deltas_g + (static_cast<fa_i64>(seq.batch) * p.heads + head) * p.seq_q;
}

__device__ __forceinline__ float lse_of(const fa_params &p, const sequence &seq, int head, int row)
{
    return p.lse[(HAS_VARLEN ? 0 : seq.batch * p.lse_stride_b) + head * p.lse_stride_h +
                 (seq.first_q + row) * p.lse_stride_s];
}

template <int COLS>
__device__ __forceinline__ float product(const fa_element *left_s, const fa_element *right_s)
{
    float sum = 0.0f;
    for (int d = 0; d < COLS; d += 8) {
        float left[8], right[8];
        read_floats(left, left_s + d);
        read_floats(right, right_s + d);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum = fmaf(left[i], right[i], sum);
    }
    return sum;
}

/* P and dS of a query row and a key. */
struct pair_weights {
    float p, ds;
};

__device__ __forceinline__ pair_weights weights_of(const fa_params &p, const sequence &seq, const head_scores &scores,
                                                   int row, int key, float lse, float delta, const rows_s &query_s,
                                                   const rows_s &key_s)
{
    const key_range seen = keys_seen(p, seq, row);
    if (row >= seq.seq_q || key < seen.first || key >= seen.end)
        return {0.0f, 0.0f};
    const float s = product<FA_DIM>(query_s.a, key_s.a), dp = product<FA_DIM_V>(query_s.b, key_s.b);
    const float score = modified_score(p, seq, scores, s, row, key);
    const float weight = exp2_approx(score * scores.scale_log2 - lse * LOG2_E);
    return {weight, weight * (dp - delta) * score_slope(scores, s)};
}

/* sums += weights times rows, over the other side's rows; a lane has columns lane, lane + 32, ... */
template <int ROWS, int COLS, int STRIDE, int CHUNKS>
__device__ __forceinline__ void add_rows(float (&sums)[ROWS][CHUNKS], const float *weights_s, const fa_element *rows_s,
                                         int lane)
{
    for (int i = 0; i < OTHER; i++)
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int col = c * WARP_SIZE + lane;
            const float x = col < COLS ? static_cast<float>(rows_s[i * STRIDE + col]) : 0.0f;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sums[r][c] = fmaf(weights_s[r * OTHER + i], x, sums[r][c]);
        }
}

template <int ROWS, int COLS, int CHUNKS>
__device__ __forceinline__ void store_rows(const float (&sums)[ROWS][CHUNKS], float factor, fa_element *to_g,
                                           fa_i64 stride, int first, int end, int lane)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (first + r < end && c * WARP_SIZE + lane < COLS)
                to_g[(first + r) * stride + c * WARP_SIZE + lane] = static_cast<fa_element>(sums[r][c] * factor);
}

struct block_smem {
    rows_s own, other;
    float *p, *ds; /* [OWN][OTHER] */
};

__device__ __forceinline__ block_smem memory_of(unsigned char *smem)
{
    fa_element *own = reinterpret_cast<fa_element *>(smem), *other = own + OWN * (A_STRIDE + B_STRIDE);
    float *weights = reinterpret_cast<float *>(smem + TILE_BYTES);
    return {{own, own + OWN * A_STRIDE}, {other, other + OTHER * A_STRIDE}, weights, weights + OWN * OTHER};
}

/* dK and dV of keys first_key .. first_key + N - 1 of a K/V head. */
__device__ __forceinline__ void keys_tile(const fa_params &p, const sequence &seq, int kv_head, int first_key,
                                          const block_smem &s)
{
    constexpr int KEYS = FA_N / FA_WARPS;
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE, own = warp * KEYS;
    const int group = p.heads / p.kv_heads, last_key = min(first_key + FA_N, seq.seq_kv) - 1;
    const key_range rows = rows_that_see(p, seq, first_key, last_key);
    float dk[KEYS][A_CHUNKS] = {}, dv[KEYS][B_CHUNKS] = {};
    __syncthreads(); /* the tile before has been used */
    load_tile<FA_N>(s.own, keys_of(p, seq, kv_head), first_key, seq.seq_kv - first_key);
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        const head_scores scores = scores_of_head(p, seq, head);
        const rows_g queries = queries_of(p, seq, head);
        const float *delta_g = delta_of(p, seq, head);
        for (int row0 = rows.first; row0 < rows.end; row0 += OTHER) {
            __syncthreads();
            load_tile<OTHER>(s.other, queries, row0, seq.seq_q - row0);
            __syncthreads();
            const int row = row0 + lane;
            const float lse = row < seq.seq_q ? lse_of(p, seq, head, row) : 0.0f;
            const float delta = row < seq.seq_q ? delta_g[row] : 0.0f;
            for (int r = 0; r < KEYS; r++) {
                const int at = own + r;
                const pair_weights weights = weights_of(p, seq, scores, row, first_key + at, lse, delta,
                                                        {s.other.a + lane * A_STRIDE, s.other.b + lane * B_STRIDE},
                                                        {s.own.a + at * A_STRIDE, s.own.b + at * B_STRIDE});
                s.p[at * OTHER + lane] = weights.p;
                s.ds[at * OTHER + lane] = weights.ds;
            }
            __syncwarp();
            add_rows<KEYS, FA_DIM_V, B_STRIDE>(dv, s.p + own * OTHER, s.other.b, lane);
            add_rows<KEYS, FA_DIM, A_STRIDE>(dk, s.ds + own * OTHER, s.other.a, lane);
        }
    }
    const fa_i64 *of_dk = p.grad_stride[2], *of_dv = p.grad_stride[3];
    store_rows<KEYS, FA_DIM>(dk, p.scale, key_rows(p.dk, seq, of_dk[0], of_dk[1], of_dk[2], kv_head), of_dk[2],
                             first_key + own, seq.seq_kv, lane);
    store_rows<KEYS, FA_DIM_V>(dv, 1.0f, key_rows(p.dv, seq, of_dv[0], of_dv[1], of_dv[2], kv_head), of_dv[2],
                               first_key + own, seq.seq_kv, lane);
}

/* dQ of query rows first_row .. first_row + M - 1 of a head. */
__device__ __forceinline__ void queries_tile(const fa_params &p, const sequence &seq, int head, int first_row,
                                             const block_smem &s)
{
    constexpr int ROWS = FA_M / FA_WARPS;
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE, own = warp * ROWS;
    const int last_row = min(first_row + FA_M, seq.seq_q) - 1;
    const key_range seen = keys_seen_by_any(p, seq, first_row, last_row);
    const head_scores scores = scores_of_head(p, seq, head);
    const rows_g keys = keys_of(p, seq, head / (p.heads / p.kv_heads));
    float dq[ROWS][A_CHUNKS] = {};
    __syncthreads(); /* the tile before has been used */
    load_tile<FA_M>(s.own, queries_of(p, seq, head), first_row, seq.seq_q - first_row);
    for (int key0 = seen.first; key0 < seen.end; key0 += OTHER) {
        __syncthreads();
        load_tile<OTHER>(s.other, keys, key0, seq.seq_kv - key0);
        __syncthreads();
        for (int r = 0; r < ROWS; r++) {
            const int at = own + r, row = min(first_row + at, last_row);
            const pair_weights weights =
                weights_of(p, seq, scores, first_row + at, key0 + lane, lse_of(p, seq, head, row),
                           delta_of(p, seq, head)[row], {s.own.a + at * A_STRIDE, s.own.b + at * B_STRIDE},
                           {s.other.a + lane * A_STRIDE, s.other.b + lane * B_STRIDE});
            s.ds[at * OTHER + lane] = weights.ds;
        }
        __syncwarp();
        add_rows<ROWS, FA_DIM, A_STRIDE>(dq, s.ds + own * OTHER, s.other.a, lane);
    }
    const fa_i64 *of_dq = p.grad_stride[1];
    store_rows<ROWS, FA_DIM>(dq, p.scale, query_rows(p.dq, seq, of_dq[0], of_dq[1], of_dq[2], head), of_dq[2],
                             first_row + own, seq.seq_q, lane);
}

/* D of every query row, a warp to each. */
extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_before(const __grid_constant__ fa_params p)
{
    const int lane = threadIdx.x % WARP_SIZE;
    const fa_i64 warps = static_cast<fa_i64>(gridDim.x) * FA_WARPS, first = static_cast<fa_i64>(blockIdx.x) * FA_WARPS;
    const fa_i64 rows = static_cast<fa_i64>(p.batch) * p.heads * p.seq_q;
    for (fa_i64 i = first + threadIdx.x / WARP_SIZE; i < rows; i += warps) {
        const int row = static_cast<int>(i % p.seq_q), head = static_cast<int>(i / p.seq_q % p.heads);
        const sequence seq = sequence_of(p, static_cast<int>(i / p.seq_q / p.heads));
        if (row >= seq.seq_q)
            continue;
        const fa_element *dout_g =
            query_rows(p.dout, seq, p.grad_stride[0][0], p.grad_stride[0][1], p.grad_stride[0][2], head);
        const fa_element *o_g = query_rows(p.o, seq, p.o_stride_b, p.o_stride_h, p.o_stride_s, head);
        float sum = 0.0f;
        for (int d = lane; d < FA_DIM_V; d += WARP_SIZE)
            sum = fmaf(static_cast<float>(dout_g[row * p.grad_stride[0][2] + d]),
                       static_cast<float>(o_g[row * p.o_stride_s + d]), sum);
        sum = warp_sum(sum);
        if (lane == 0)
            delta_of(p, seq, head)[row] = sum;
    }
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, smem);
    const block_smem s = memory_of(smem);
    const int key_tiles = ceil_div(p.seq_kv, FA_N), row_tiles = ceil_div(p.seq_q, FA_M);
    const fa_i64 key_units = static_cast<fa_i64>(p.batch) * p.kv_heads * key_tiles;
    const fa_i64 units = key_units + static_cast<fa_i64>(p.batch) * p.heads * row_tiles;
    for (fa_i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const bool keys = unit < key_units;
        const fa_i64 at = keys ? unit : unit - key_units;
        const int tiles = keys ? key_tiles : row_tiles, heads = keys ? p.kv_heads : p.heads;
        const int tile = static_cast<int>(at % tiles), head = static_cast<int>(at / tiles % heads);
        const sequence seq = sequence_of(p, static_cast<int>(at / tiles / heads));
        if (keys && tile * FA_N < seq.seq_kv)
            keys_tile(p, seq, head, tile * FA_N, s);
        else if (!keys && tile * FA_M < seq.seq_q)
            queries_tile(p, seq, head, tile * FA_M, s);
    }
}

#if FA_FEATURES & FA_FEATURE_SINK
/* dsinks: - the sum of e^(sink - LSE) D over all rows of a head, a block to each head, always in the same order. */
extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_after(const __grid_constant__ fa_params p)
{
    __shared__ float sums_s[FA_WARPS];
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    for (int head = blockIdx.x; head < p.heads; head += gridDim.x) {
        float sum = 0.0f;
        for (int batch = 0; batch < p.batch; batch++) {
            const sequence seq = sequence_of(p, batch);
            for (int row = threadIdx.x; row < seq.seq_q; row += THREADS)
                sum -= exp2_approx((p.sinks[head] - lse_of(p, seq, head, row)) * LOG2_E) * delta_of(p, seq, head)[row];
        }
        sum = warp_sum(sum);
        if (lane == 0)
            sums_s[warp] = sum;
        __syncthreads();
        float all = 0.0f;
        for (int w = 0; w < FA_WARPS; w++)
            all += sums_s[w];
        if (threadIdx.x == 0)
            p.dsinks[head] = all;
        __syncthreads();
    }
}
#endif
