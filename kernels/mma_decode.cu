/* mma_decode: attention for few query rows over many keys, bound by the reading of K and V.
 *
 * Idea: the query heads that share a K/V head are packed into the rows of one tile, so K and V are read once for all of
 *   them. Groups of warps walk the keys of a block through a ring of cp.async tiles of their own; no barrier of the
 *   whole block stands in the loop. The keys are split over blocks as well; the last block of a tile to arrive
 *   combines.
 * Softmax: online, with the exact maximum of the keys seen so far.
 * Builds on: mma.   Knobs: m (packed rows), n (keys of a tile), warps, stages, splits.
 * Shared memory: K and V [groups][stages][2][n][dim + 8]; after the loop the parts of the groups [groups][m][dim + 8].
 * Features: what mma serves, and an FP8 cache: K and V are converted between ldmatrix and the products. ldmatrix moves
 *   pairs of bytes: of 16 columns, a lane has four neighbours of K, and two neighbours of V for two keys.
 * Limits: dim up to 256, multiples of 8. */
#include "mma/stream.cuh"

constexpr int WARPS = FA_WARPS, STAGES = FA_STAGES;
constexpr int DIM16 = (FA_DIM + 15) / 16 * 16, V_DIM16 = (FA_DIM_V + 15) / 16 * 16;
constexpr int BANDS = M / 16;         /* a warp owns a band of 16 rows */
constexpr int GROUPS = WARPS / BANDS; /* each with every row and its share of the keys */
constexpr int GROUP_THREADS = BANDS * 32, BLOCK_THREADS = WARPS * 32;

static_assert(M == 16 || M == 32 || M == 64, "m must be 16, 32 or 64 packed rows");
static_assert(WARPS % BANDS == 0 && WARPS <= 16, "warps must be a multiple of m / 16, 16 at most");
static_assert(N % 16 == 0 && N >= 16 && N <= 128, "n must be a multiple of 16 from 16 to 128");
static_assert(STAGES >= 2 && STAGES <= 8, "stages must be 2 to 8");
static_assert(SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not in it");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(FA_DIM_V % 8 == 0 && FA_DIM_V >= 16 && FA_DIM_V <= 256, "dim-v must be a multiple of 8 from 16 to 256");
static_assert(!FA_ACC_FP16, "mma_decode accumulates in FP32 only");

constexpr int PITCH = pitch_of(FA_DIM), V_PITCH = pitch_of(FA_DIM_V);
constexpr int SLOT = N * (PITCH + V_PITCH); /* elements */
constexpr int RING_BYTES = GROUPS * STAGES * SLOT * static_cast<int>(sizeof(fa_element_kv));
constexpr int PARTS_BYTES = GROUPS * PART_FLOATS * 4;
/* Small blocks share a multiprocessor of sm_90 in pairs, those of 64 rows in threes: the choice of splits counts on it.
 * With a third block beside a pair a grid that fills two waves of pairs would leave the second wave half empty. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr int BLOCKS_PER_SM = M == 64 && WARPS == 4 && DIM16 <= 128 ? 3 : 1;
constexpr bool MANY = WARPS == 2 && (FA_FEATURES & FA_FEATURE_WINDOW); /* a window's short loops: all that fit */
constexpr int PAIR_BYTES = WARPS <= 4 && BLOCKS_PER_SM == 1 && !MANY ? 77 * 1024 : 0;
#else
constexpr int BLOCKS_PER_SM = 1, PAIR_BYTES = 0;
#endif
constexpr int SMEM_BYTES = larger(larger(RING_BYTES, PARTS_BYTES), PAIR_BYTES);

FA_KERNEL_INFO(.threads = BLOCK_THREADS, .smem_dynamic_bytes = SMEM_BYTES, .workspace_bytes_per_block = WORKSPACE_BYTES,
               .pack_heads = 1, .writes_lse = FA_LSE, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_PAGED | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK |
                         FA_FEATURE_SOFTCAP | FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_MASK | FA_FEATURE_DIM_V |
                         FA_FEATURE_FP8_KV);

/* Columns past dim are never loaded, but multiplied. (Of an FP8 cache they are zeros of the last 16 bytes.) */
__device__ __forceinline__ void clear_last_columns(fa_element_kv *ring_s, int thread)
{
    if (FA_FP8_KV)
        return;
    if (FA_DIM == FA_DIM_V) {
        if (DIM16 != FA_DIM)
            for (int row = thread; row < STAGES * 2 * N; row += GROUP_THREADS)
                *reinterpret_cast<uint4 *>(ring_s + row * PITCH + FA_DIM) = make_uint4(0, 0, 0, 0);
    } else if (DIM16 != FA_DIM)
        for (int row = thread; row < STAGES * N; row += GROUP_THREADS)
            *reinterpret_cast<uint4 *>(ring_s + row / N * SLOT + row % N * PITCH + FA_DIM) = make_uint4(0, 0, 0, 0);
}

/* K and V of a tile into a slot. Commits once, also when no tile is left to load. */
__device__ __forceinline__ void load_keys(fa_element_kv *ring_s, const key_tiles &keys, int tile, int slot, int thread,
                                          const fa_params &p)
{
    if (tile < keys.end) {
        fa_element_kv *k_s = ring_s + slot * SLOT;
        const kv_rows k = reload_strides(keys.k, p, p.k_stride_b, p.k_stride_s);
        const kv_rows v = reload_strides(keys.v, p, p.v_stride_b, p.v_stride_s);
        load_tile<FA_DIM, GROUP_THREADS>(k_s, k, tile * N, p.seq_kv, keys.aligned, thread);
        load_tile<FA_DIM_V, GROUP_THREADS>(k_s + N * PITCH, v, tile * N, p.seq_kv, keys.aligned, thread);
    }
    cp_async_commit();
}

__device__ __forceinline__ void sync_group(int group)
{
    if constexpr (BANDS == 1)
        __syncwarp();
    else
        bar_sync(1 + group, GROUP_THREADS);
}

/* A warp's rows: outputs, maxima (in units of log2) and this lane's share of the sums. Index h: row lane / 4 + 8 h. */
struct band {
    unsigned q[DIM16 / 16][4];
    float o[V_DIM16 / 8][4], max[2], sum[2];
    int limit[2]; /* keys that each row sees */
#if FA_FEATURES
    int first[2], position[2]; /* with windows and chunks from this one on; place among the keys */
    float slope[2];
    int query[2];
#endif
};

/* Two elements of a packed row of Q, neighbours or with an FP8 cache one apart; zero past the last row and past dim. */
__device__ __forceinline__ unsigned load_q_pair(const fa_params &p, const packed_tile &tile, const packed_row &row,
                                                int column)
{
    if (!row.exists || column >= FA_DIM)
        return 0;
    const unsigned short *from_g = static_cast<const unsigned short *>(p.q) + tile.batch * p.q_stride_b +
                                   row.head * p.q_stride_h + row.query * p.q_stride_s + column;
    return from_g[0] | static_cast<unsigned>(from_g[FA_FP8_KV ? 2 : 1]) << 16;
}

__device__ __forceinline__ void begin_band(band &mine, const fa_params &p, const packed_tile &tile, int row, int lane)
{
    const packed_row rows[2] = {find_packed_row(tile, row), find_packed_row(tile, row + 8)};
#pragma unroll
    for (int step = 0; step < DIM16 / 16; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i) /* fragment layout of A: rows i % 2, columns i / 2 */
            mine.q[step][i] = load_q_pair(p, tile, rows[i % 2],
                                          step * 16 + (FA_FP8_KV ? i / 2 + lane % 4 * 4 : i / 2 * 8 + lane % 4 * 2));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        mine.max[h] = NO_MAX;
        mine.sum[h] = 0.0f;
#if FA_FEATURES
        const sequence seq = own_sequence(p, tile.batch);
        const key_range seen = keys_seen(p, seq, rows[h].query);
        mine.limit[h] = seen.end, mine.first[h] = seen.first;
        mine.position[h] = position_of(seq, rows[h].query);
        mine.slope[h] = scores_of_head(p, seq, rows[h].head).slope;
        mine.query[h] = rows[h].query;
#else
        mine.limit[h] = keys_of_row(p, rows[h].query);
#endif
    }
    clear(mine.o);
}

#if FA_FP8_KV
/* The products of 32 columns of K, or of the last 16. */
__device__ __forceinline__ void multiply_bytes_of_k(float (&s)[N / 8][4], const band &mine, const fa_element_kv *k_s,
                                                    int lane)
{
#pragma unroll
    for (int step = 0; step < DIM16 / 16; step += 2)
#pragma unroll
        for (int t = 0; t < N / 8; t += 2) {
            const int more = step + 1 < DIM16 / 16 ? lane / 8 % 2 : 0;
            unsigned k[4];
            ldmatrix_x4(k, k_s + (t * 8 + lane % 8 + lane / 16 * 8) * PITCH + (step + more) * 16);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (step + i % 2 < DIM16 / 16) {
                    unsigned b[2];
                    unpack_e4m3(b[0], b[1], k[i]);
                    mma_m16n8k16(s[t + i / 2], mine.q[step + i % 2], b);
                }
        }
}

/* The products of 16 keys of V, whose probabilities are in p: of 16 columns the even ones, then the odd ones. */
__device__ __forceinline__ void multiply_bytes_of_v(band &mine, const unsigned (&p)[4], const fa_element_kv *v_s,
                                                    int lane)
{
#pragma unroll
    for (int t = 0; t < V_DIM16 / 16; t += 2) {
        const int more = t + 1 < V_DIM16 / 16 ? lane / 16 : 0;
        unsigned v[4];
        ldmatrix_x4_trans(v, v_s + lane % 16 * V_PITCH + (t + more) * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (t + i < V_DIM16 / 16) {
                unsigned even[2], odd[2];
                unpack_e4m3(even[0], odd[0], v[2 * i]);
                unpack_e4m3(even[1], odd[1], v[2 * i + 1]);
                mma_m16n8k16(mine.o[2 * (t + i)], p, even);
                mma_m16n8k16(mine.o[2 * (t + i) + 1], p, odd);
            }
    }
}
#endif

/* s = Q K^T of the warp's 16 rows and the tile's N keys. */
__device__ __forceinline__ void multiply_qk(float (&s)[N / 8][4], const band &mine, const fa_element_kv *k_s, int lane)
{
    clear(s);
#if FA_FP8_KV
    multiply_bytes_of_k(s, mine, k_s, lane);
#else
    const fa_element_kv *row_s = k_s + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8;
#pragma unroll
    for (int step = 0; step < DIM16 / 16; ++step)
#pragma unroll
        for (int t = 0; t < N / 8; t += 2) {
            unsigned k[4];
            ldmatrix_x4(k, row_s + t * 8 * PITCH + step * 16);
            mma_m16n8k16(s[t], mine.q[step], {k[0], k[1]});
            mma_m16n8k16(s[t + 1], mine.q[step], {k[2], k[3]});
        }
#endif
}

/* Softcap and ALiBi, as modified_score has them: a row's heads differ in slope. */
__device__ __forceinline__ float changed_score(float score, const head_scores &scores, float slope, int distance)
{
    if constexpr (HAS_SOFTCAP)
        score = accurate_tanh(score * scores.to_cap);
    if constexpr (HAS_ALIBI)
        score = fmaf(-slope, fabsf(static_cast<float>(distance)), score);
    return score;
}

/* s becomes P = exp2(s - max); sums and outputs are brought to the new maximum. */
__device__ __forceinline__ void online_softmax(float (&s)[N / 8][4], band &mine, int key, const head_scores &scores,
                                               int lane)
{
    const float scale_log2 = scores.scale_log2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float row_max = mine.max[h];
#pragma unroll
        for (int t = 0; t < N / 8; ++t)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; ++i) {
#if FA_FEATURES
                const int at = key + t * 8 + lane % 4 * 2 + i % 2;
                const bool seen = at < mine.limit[h] && (!HAS_FIRST_KEY || at >= mine.first[h]) &&
                                  (!HAS_MASK || mask_shows(scores, mine.query[h], at));
                s[t][i] =
                    seen ? changed_score(s[t][i], scores, mine.slope[h], mine.position[h] - at) * scale_log2 : -INF;
#else
                const bool seen = key + t * 8 + lane % 4 * 2 + i % 2 < mine.limit[h];
                s[t][i] = seen ? s[t][i] * scale_log2 : -INF;
#endif
                row_max = fmaxf(row_max, s[t][i]);
            }
        row_max = quad_max(row_max);
        const float factor = exp2_approx(mine.max[h] - row_max);
        mine.max[h] = row_max;
        mine.sum[h] *= factor;
#pragma unroll
        for (int t = 0; t < N / 8; ++t)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; ++i) {
                s[t][i] = exp2_approx(s[t][i] - row_max);
                mine.sum[h] += s[t][i];
            }
        if (__any_sync(ALL_LANES, factor != 1.0f))
#pragma unroll
            for (int t = 0; t < V_DIM16 / 8; ++t) {
                mine.o[t][2 * h] *= factor;
                mine.o[t][2 * h + 1] *= factor;
            }
    }
}

/* o += P V. The accumulators of P are, packed in pairs, the fragments of A. */
__device__ __forceinline__ void multiply_pv(band &mine, const float (&s)[N / 8][4], const fa_element_kv *v_s, int lane)
{
#pragma unroll
    for (int step = 0; step < N / 16; ++step) {
        const unsigned p[4] = {pack_elements(s[2 * step][0], s[2 * step][1]),
                               pack_elements(s[2 * step][2], s[2 * step][3]),
                               pack_elements(s[2 * step + 1][0], s[2 * step + 1][1]),
                               pack_elements(s[2 * step + 1][2], s[2 * step + 1][3])};
#if FA_FP8_KV
        multiply_bytes_of_v(mine, p, v_s + step * 16 * V_PITCH, lane);
#else
#pragma unroll
        for (int t = 0; t < V_DIM16 / 8; t += 2) {
            unsigned v[4];
            ldmatrix_x4_trans(v, v_s + lane % 16 * V_PITCH + lane / 16 * 8 + step * 16 * V_PITCH + t * 8);
            mma_m16n8k16(mine.o[t], p, {v[0], v[1]});
            mma_m16n8k16(mine.o[t + 1], p, {v[2], v[3]});
        }
#endif
    }
}

__device__ __forceinline__ void keep_band(float *part_s, const band &mine, int row, int lane)
{
#pragma unroll
    for (int h = 0; h < 2; ++h)
        put_part_row(part_s + (row + 8 * h) * PART_PITCH, mine.o, h, mine.max[h], quad_sum(mine.sum[h]), lane);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(BLOCK_THREADS, BLOCKS_PER_SM)
    fa_kernel(const __grid_constant__ fa_params launch)
{
    FA_SHARED(unsigned char, smem);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp / BANDS, warp_row = warp % BANDS * 16;
    const int group_thread = threadIdx.x % GROUP_THREADS;
    head_scores scores = {launch.scale * LOG2_E};
#if FA_FEATURES & FA_FEATURE_VARLEN
    fa_params p = launch;
    packed_tile tile;
    if (!find_packed_tile_of_sequence(tile, p, blockIdx.x))
        return;
#else
    const fa_params &p = launch;
    const packed_tile tile = find_packed_tile(p, blockIdx.x);
#endif
    if constexpr (CHANGES_SCORES || FA_FP8_KV) /* of any of the packed heads: their slopes are in `band` */
        scores = scores_of_head(p, own_sequence(p, tile.batch), tile.kv_head * tile.group);
    const key_tiles keys = find_keys(p, tile);
    fa_element_kv *ring_s = reinterpret_cast<fa_element_kv *>(smem) + group * STAGES * SLOT;
    clear_last_columns(ring_s, group_thread);

    /* Load: the ring holds the group's next STAGES - 1 tiles. */
    for (int i = 0; i < STAGES - 1; ++i)
        load_keys(ring_s, keys, keys.begin + group + i * GROUPS, i, group_thread, p);
    band mine;
    begin_band(mine, p, tile, tile.row0 + warp_row + lane / 4, lane);
    int slot = 0;
    for (int n = keys.begin + group; n < keys.end; n += GROUPS) {
        cp_async_wait<STAGES - 2>();
        sync_group(group); /* the tile has arrived for all, and all are done with the slot before it */
        load_keys(ring_s, keys, n + (STAGES - 1) * GROUPS, slot == 0 ? STAGES - 1 : slot - 1, group_thread, p);
        const fa_element_kv *k_s = ring_s + slot * SLOT;
        float s[N / 8][4];
        multiply_qk(s, mine, k_s, lane);
        online_softmax(s, mine, n * N, scores, lane);
        multiply_pv(mine, s, k_s + N * PITCH, lane);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    cp_async_wait<0>();
    __syncthreads(); /* the ring is used up: the parts take its place */
    float *parts_s = reinterpret_cast<float *>(smem);
    keep_band(parts_s + group * PART_FLOATS, mine, warp_row + lane / 4, lane);
    __syncthreads();
    /* Without the mask the tile, kept through the loop, would make it spill; with the mask, found again. */
    const packed_tile done = FA_CAUSAL || HAS_VARLEN ? tile : find_packed_tile(p, reload_block_index());
    store_combined<GROUPS, BLOCK_THREADS>(p, parts_s, done);
}
