/* mma_mla: MLA's absorbed decode for sm_80 and later: V is the first 512 of the 576 columns of K, which is read once.
 *
 * Idea: all query heads are packed into tiles of m rows. O of 16 rows, 16 x 512, is too large for one warp: the warps
 *   of a band of 16 rows share it by columns. They share the scores by keys: each computes S of its own keys, and P and
 *   the maxima go to the others through shared memory. A tile of keys lies there once, for both products. The keys are
 *   split over blocks; the last block of a tile to arrive combines.
 * Softmax: online, with the exact maximum of the keys seen so far.
 * Builds on: mma_decode.   Knobs: m (packed rows), n (keys of a tile), warps, stages, splits.
 * Shared memory: a float per row and warp of its band, Q [m][dim + 8], K [stages][n][dim + 8], P [m][n + 8]; after the
 *   loop the part of the block [m][dim_v + 8] floats in place of Q and K.
 * Limits: dim 576, V in K with dim 512. */
#include "mma/stream.cuh"

constexpr int WARPS = FA_WARPS, STAGES = FA_STAGES;
constexpr int BANDS = M / 16, SHARES = WARPS / BANDS; /* warps of a band */
constexpr int BLOCK_THREADS = WARPS * 32;

static_assert(FA_DIM == 576 && FA_DIM_V == 512 && FA_V_IN_K, "mma_mla serves --dim 576 --dim-v 512 --v-in-k only");
static_assert(M == 16 || M == 32 || M == 64, "m must be 16, 32 or 64 packed rows");
static_assert(WARPS % BANDS == 0 && SHARES >= 2 && SHARES <= 8, "warps must be 2, 4 or 8 for each 16 rows of m");
static_assert(N % 16 == 0 && N % (8 * SHARES) == 0, "n must be a multiple of 16, and of 8 for each warp of 16 rows");
static_assert(STAGES >= 2 && STAGES <= 8, "stages must be 2 to 8");
static_assert(SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not in it");
static_assert(!FA_ACC_FP16, "mma_mla accumulates in FP32 only");

constexpr int KEYS = N / SHARES, COLUMNS = FA_DIM_V / SHARES; /* of a warp */
/* elements of a row in shared memory: ldmatrix reads without bank conflicts */
constexpr int PITCH = FA_DIM + 8, P_PITCH = N + 8;
constexpr int STATS_BYTES = M * SHARES * 4, LOOP_BYTES = (M * PITCH + STAGES * N * PITCH + M * P_PITCH) * 2;
constexpr int SMEM_BYTES = STATS_BYTES + larger(LOOP_BYTES, PART_FLOATS * 4);

FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .workspace_bytes_per_block = WORKSPACE_BYTES,
               .pack_heads = 1, .writes_lse = FA_LSE, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SINK |
                         FA_FEATURE_DIM_V);

/* A warp of a band: outputs of its columns, maxima (in units of log2), sums of its keys. Index h: row lane / 4 + 8 h.
 */
struct band_share {
    float o[COLUMNS / 8][4], max[2], sum[2];
    key_range seen[2];
    int band, share, lane;
};

struct shared_layout {
    fa_element *q_s, *ring_s, *p_s;
    float *stats_s; /* [m][SHARES]: maxima, and in the end sums */
};

__device__ __forceinline__ shared_layout find_layout(unsigned char *smem)
{
    shared_layout at;
    at.stats_s = reinterpret_cast<float *>(smem);
    at.q_s = reinterpret_cast<fa_element *>(smem + STATS_BYTES);
    at.ring_s = at.q_s + M * PITCH;
    at.p_s = at.ring_s + STAGES * N * PITCH;
    return at;
}

/* The packed rows of Q; zero past the last one. */
__device__ __forceinline__ void load_q(fa_element *q_s, const fa_params &p, const packed_tile &tile)
{
    const fa_element *q_g = static_cast<const fa_element *>(p.q) + tile.batch * p.q_stride_b;
    const bool aligned = (reinterpret_cast<fa_i64>(q_g) | (p.q_stride_h | p.q_stride_s) * 2) % 16 == 0;
    for (int item = threadIdx.x; item < M * (FA_DIM / 8); item += BLOCK_THREADS) {
        const int at = item / (FA_DIM / 8), chunk = item % (FA_DIM / 8);
        const packed_row row = find_packed_row(tile, tile.row0 + at);
        const fa_element *from_g = q_g + row.head * p.q_stride_h + row.query * p.q_stride_s + chunk * 8;
        fa_element *to_s = q_s + at * PITCH + chunk * 8;
        if (aligned)
            cp_async_16(to_s, from_g, row.exists ? 16 : 0);
        else
            for (int e = 0; e < 8; ++e)
                to_s[e] = row.exists ? from_g[e] : fa_element(0.0f);
    }
}

/* A tile of keys into its slot. Commits once, also when no tile is left to load. */
__device__ __forceinline__ void load_keys(fa_element *ring_s, const key_tiles &keys, int tile, const fa_params &p)
{
    if (tile < keys.end) {
        const kv_rows k = reload_strides(keys.k, p, p.k_stride_b, p.k_stride_s);
        load_tile<FA_DIM, BLOCK_THREADS>(ring_s + (tile - keys.begin) % STAGES * N * PITCH, k, tile * N, p.seq_kv,
                                         keys.aligned, threadIdx.x);
    }
    cp_async_commit();
}

__device__ __forceinline__ void sync_band(const band_share &mine) { bar_sync(1 + mine.band, SHARES * 32); }

/* s = Q K^T of the band's rows and the warp's keys. */
__device__ __forceinline__ void multiply_qk(float (&s)[KEYS / 8][4], const band_share &mine, const fa_element *q_s,
                                            const fa_element *k_s)
{
    clear(s);
    const fa_element *row_s = q_s + (mine.band * 16 + mine.lane % 16) * PITCH + mine.lane / 16 * 8;
    const fa_element *key_s = k_s + (mine.share * KEYS + mine.lane % 8) * PITCH + mine.lane / 8 * 8;
#pragma unroll 3
    for (int column = 0; column < FA_DIM; column += 32) { /* two steps of 16 columns */
        unsigned q[2][4];
        ldmatrix_x4(q[0], row_s + column);
        ldmatrix_x4(q[1], row_s + column + 16);
#pragma unroll
        for (int t = 0; t < KEYS / 8; ++t) {
            unsigned k[4];
            ldmatrix_x4(k, key_s + t * 8 * PITCH + column);
            mma_m16n8k16(s[t], q[0], {k[0], k[1]});
            mma_m16n8k16(s[t], q[1], {k[2], k[3]});
        }
    }
}

/* s becomes P in shared memory, for the whole band; sums and outputs are brought to the band's new maximum. */
__device__ __forceinline__ void online_softmax(float (&s)[KEYS / 8][4], band_share &mine, const shared_layout &at,
                                               int key, float scale_log2)
{
    const int row = mine.band * 16 + mine.lane / 4;
    key += mine.share * KEYS + mine.lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float row_max = NO_MAX;
#pragma unroll
        for (int t = 0; t < KEYS / 8; ++t)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; ++i) {
                const int j = key + t * 8 + i % 2;
                const bool seen = j < mine.seen[h].end && (!HAS_FIRST_KEY || j >= mine.seen[h].first);
                s[t][i] = seen ? s[t][i] * scale_log2 : -INF;
                row_max = fmaxf(row_max, s[t][i]);
            }
        row_max = quad_max(row_max);
        if (mine.lane % 4 == 0)
            at.stats_s[(row + 8 * h) * SHARES + mine.share] = row_max;
    }
    sync_band(mine);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float row_max = mine.max[h];
#pragma unroll
        for (int i = 0; i < SHARES; ++i)
            row_max = fmaxf(row_max, at.stats_s[(row + 8 * h) * SHARES + i]);
        const float factor = exp2_approx(mine.max[h] - row_max);
        mine.max[h] = row_max;
        mine.sum[h] *= factor;
        unsigned *p_s =
            reinterpret_cast<unsigned *>(at.p_s + (row + 8 * h) * P_PITCH + mine.share * KEYS) + mine.lane % 4;
#pragma unroll
        for (int t = 0; t < KEYS / 8; ++t) {
            const float low = exp2_approx(s[t][2 * h] - row_max), high = exp2_approx(s[t][2 * h + 1] - row_max);
            mine.sum[h] += low + high;
            p_s[t * 4] = pack_elements(low, high);
        }
        if (__any_sync(ALL_LANES, factor != 1.0f))
#pragma unroll
            for (int t = 0; t < COLUMNS / 8; ++t) {
                mine.o[t][2 * h] *= factor;
                mine.o[t][2 * h + 1] *= factor;
            }
    }
    sync_band(mine);
}

/* o += P V of the band's rows, all keys of the tile, the warp's columns. */
__device__ __forceinline__ void multiply_pv(band_share &mine, const fa_element *p_s, const fa_element *k_s)
{
    const fa_element *row_s = p_s + (mine.band * 16 + mine.lane % 16) * P_PITCH + mine.lane / 16 * 8;
    const fa_element *v_s = k_s + mine.lane % 16 * PITCH + mine.lane / 16 * 8 + mine.share * COLUMNS;
#pragma unroll
    for (int step = 0; step < N / 16; ++step) {
        unsigned p[4];
        ldmatrix_x4(p, row_s + step * 16);
#pragma unroll
        for (int t = 0; t < COLUMNS / 8; t += 2) {
            unsigned v[4];
            ldmatrix_x4_trans(v, v_s + step * 16 * PITCH + t * 8);
            mma_m16n8k16(mine.o[t], p, {v[0], v[1]});
            mma_m16n8k16(mine.o[t + 1], p, {v[2], v[3]});
        }
    }
}

/* The block's part, where Q and the ring were: the columns of the warp, and by the first of a band the sums. */
__device__ __forceinline__ void keep_part(float *part_s, const band_share &mine, const shared_layout &at)
{
    const int row = mine.band * 16 + mine.lane / 4;
    float sum[2] = {quad_sum(mine.sum[0]), quad_sum(mine.sum[1])};
#pragma unroll
    for (int h = 0; h < 2; ++h)
        if (mine.lane % 4 == 0)
            at.stats_s[(row + 8 * h) * SHARES + mine.share] = sum[h];
    __syncthreads(); /* and all are done with the ring */
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float *row_s = part_s + (row + 8 * h) * PART_PITCH;
        if (mine.share == 0 && mine.lane % 4 == 0) {
            sum[h] = 0.0f;
            for (int i = 0; i < SHARES; ++i)
                sum[h] += at.stats_s[(row + 8 * h) * SHARES + i];
            row_s[MAX_AT] = mine.max[h];
            row_s[SUM_AT] = sum[h];
        }
#pragma unroll
        for (int t = 0; t < COLUMNS / 8; ++t)
            *reinterpret_cast<float2 *>(row_s + mine.share * COLUMNS + t * 8 + mine.lane % 4 * 2) =
                make_float2(mine.o[t][2 * h], mine.o[t][2 * h + 1]);
    }
    __syncthreads();
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(BLOCK_THREADS, 1) fa_kernel(const __grid_constant__ fa_params launch)
{
    FA_SHARED(unsigned char, smem);
    const shared_layout at = find_layout(smem);
    const int warp = threadIdx.x / 32;
#if FA_FEATURES & FA_FEATURE_VARLEN
    fa_params p = launch;
    packed_tile tile;
    if (!find_packed_tile_of_sequence(tile, p, blockIdx.x))
        return;
#else
    const fa_params &p = launch;
    const packed_tile tile = find_packed_tile(p, blockIdx.x);
#endif
    const key_tiles keys = find_keys(p, tile);
    load_q(at.q_s, p, tile);
    for (int i = 0; i < STAGES - 1; ++i)
        load_keys(at.ring_s, keys, keys.begin + i, p);
    band_share mine;
    mine.band = warp / SHARES, mine.share = warp % SHARES, mine.lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = tile.row0 + mine.band * 16 + mine.lane / 4 + 8 * h;
        mine.seen[h] = keys_seen(p, own_sequence(p, tile.batch), find_packed_row(tile, row).query);
        mine.max[h] = NO_MAX, mine.sum[h] = 0.0f;
    }
    clear(mine.o);

    for (int n = keys.begin; n < keys.end; ++n) {
        cp_async_wait<STAGES - 2>();
        __syncthreads(); /* the tile has arrived for all, and all are done with the slot and P before it */
        load_keys(at.ring_s, keys, n + STAGES - 1, p);
        const fa_element *k_s = at.ring_s + (n - keys.begin) % STAGES * N * PITCH;
        float s[KEYS / 8][4];
        multiply_qk(s, mine, at.q_s, k_s);
        online_softmax(s, mine, at, n * N, p.scale * LOG2_E);
        multiply_pv(mine, at.p_s, k_s);
    }
    cp_async_wait<0>();
    float *part_s = reinterpret_cast<float *>(smem + STATS_BYTES);
    keep_part(part_s, mine, at);
    store_combined<1, BLOCK_THREADS>(p, part_s, tile);
}
