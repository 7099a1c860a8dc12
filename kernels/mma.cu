/* mma: attention on mma.sync m16n8k16 with FP32 accumulators; scores and probabilities never leave registers.
 * Predecessor: wmma. Idea: K and V through cp.async and ldmatrix, the accumulators of Q K^T packed in place as the A operand of P V,
 *   and while a tile's exponentials feed P V, the next tile's Q K^T runs in the gaps; the row maximum moves only when it grew by 2^8.
 * Knobs: m query rows and n keys of a tile; m / warps rows per warp, 16 or 32; warps beyond m / 16 form groups that share out the keys;
 *   stages K/V buffers; swizzle XOR or padded rows; splits blocks share out the keys, the last to arrive combines.
 * Shared memory: Q [m] rows, then [stages] slots of V and of the next K, [groups * n] rows each; partial results reuse it all.
 * Limits: m a multiple of 16, n of 16. */
#include "mma_tile.cuh"

constexpr int M = FA_M, N = FA_N, WARPS = FA_WARPS, STAGES = FA_STAGES, SPLITS = FA_SPLITS;
static_assert(M % 16 == 0, "m must be a multiple of 16: one mma takes 16 query rows");
static_assert(N % 16 == 0, "n must be a multiple of 16: one mma of P V takes 16 keys");
static_assert(WARPS * 16 <= M ? M % (WARPS * 16) == 0 : WARPS * 16 % M == 0,
              "warps must divide m / 16, or be a multiple of it (the extra warps share out the keys)");
static_assert(SPLITS >= 1, "splits 0 is chosen by the rules of the kernel, not inside it");
static_assert(FA_DIM % 8 == 0 && FA_DIM >= 16 && FA_DIM <= 256, "dim must be a multiple of 8 from 16 to 256");
static_assert(!FA_ACC_FP16, "mma accumulates in FP32 only");

constexpr int GROUPS = WARPS * 16 > M ? WARPS * 16 / M : 1; /* warp groups, each with every query row and its share of the keys */
constexpr int ROWS = M * GROUPS / WARPS;                    /* query rows of a warp */
constexpr int BANDS = ROWS / 16;                            /* 16-row bands of a warp: each fragment of K or V serves all of them */
constexpr int STEPS = DIM16 / 16, TILES8 = N / 8, CHUNKS16 = N / 16;
static_assert(BANDS <= 4 && BANDS * DIM16 <= 256, "m / warps gives a warp more output than its registers hold");

#ifndef FA_MMA_Q_STEPS
#define FA_MMA_Q_STEPS (BANDS * DIM16 <= 128 ? STEPS : 0)
#endif
constexpr int Q_STEPS = FA_MMA_Q_STEPS; /* k16 steps of Q kept in registers; the others are read again for every tile */
constexpr bool Q_IN_REGISTERS = Q_STEPS == STEPS;
#ifndef FA_MMA_PREFETCH
#define FA_MMA_PREFETCH 0
#endif
constexpr int ROUND_KEYS = GROUPS * N;
constexpr int Q_BYTES = M * ROW_BYTES, TILE_BYTES = ROUND_KEYS * ROW_BYTES, SLOT_BYTES = 2 * TILE_BYTES;
constexpr int ROUND_BYTES = ROUND_KEYS * FA_DIM * 2; /* of global memory; TILE_BYTES is its image */
constexpr int PIPELINE_BYTES = Q_BYTES + STAGES * SLOT_BYTES;
constexpr bool PARTIAL = GROUPS > 1 || SPLITS > 1;
constexpr int PARTIAL_STRIDE = DIM16 + 8; /* floats; 4 rows of a store's half warp fall in different banks */
constexpr int PARTIAL_BYTES = PARTIAL ? GROUPS * M * (PARTIAL_STRIDE + 2) * 4 : 0;
constexpr int MAIN_BYTES = PIPELINE_BYTES > PARTIAL_BYTES ? PIPELINE_BYTES : PARTIAL_BYTES;
constexpr int SMEM_BYTES = MAIN_BYTES + SMEM_ALIGN - 16;

/* Workspace of a split block: a counter, then M rows of output, and their maxima and sums. */
constexpr int WORKSPACE_FLOATS = M * (DIM16 + 2);

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES,
               .workspace_bytes_per_block = SPLITS > 1 ? 16 + WORKSPACE_FLOATS * 4 : 0);

/* The maximum of a row before its first key: finite, so that differences of two such are 0 and exp2(this - real) is 0. */
constexpr float NO_MAX = -1e30f;
/* A row's maximum may lag behind by this many powers of two: probabilities up to 2^8 cost halves no precision. */
constexpr float SLACK = 8.0f;

/* Whether value_tile leaves w.p for the next tile, if that needs no mask and no row outgrows its maximum. */
#ifndef FA_MMA_EARLY
#define FA_MMA_EARLY 1
#endif
constexpr bool EARLY = FA_MMA_EARLY && Q_IN_REGISTERS && CHUNKS16 > 1;

/* What a warp keeps. Fragments as the mma wants them: of a 16x8 accumulator, element 2 h + e is row lane / 4 + 8 h, column lane % 4 * 2 + e. */
struct warp_state {
    float o[BANDS][STEPS * 2][4];
    float s[TILES8][BANDS][4];
    float max[BANDS][2], sum[BANDS][2]; /* max in powers of two (scaled by scale * log2 e); sum of this lane's columns only */
    unsigned q[Q_STEPS > 0 ? Q_STEPS : 1][BANDS][4];
    unsigned p[BANDS][4];       /* probabilities of the tile's first 16 keys, */
    float p_sum[BANDS][2];      /* and their sums, not in `sum` yet */
    smem_at q_at; /* this lane's address in the warp's rows of Q */
    float scale_log2;
};

__device__ __forceinline__ void load_q(unsigned (&q)[BANDS][4], const warp_state &w, int step)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
        ldmatrix_x4_at(q[b], fragment_at(w.q_at, step, b));
}

/* Scores of 16 keys, one k16 step; k: fragment of the keys. */
__device__ __forceinline__ void score_mma(warp_state &w, const unsigned (&q)[BANDS][4], const unsigned (&k)[4], int chunk)
{
    const unsigned keys_lo[2] = {k[0], k[1]}, keys_hi[2] = {k[2], k[3]};
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        mma_m16n8k16(w.s[2 * chunk][b], q[b], keys_lo);
        mma_m16n8k16(w.s[2 * chunk + 1][b], q[b], keys_hi);
    }
}

/* Output of 16 keys' probabilities, 16 columns; v: fragment of the values. */
__device__ __forceinline__ void value_mma(warp_state &w, const unsigned (&p)[BANDS][4], const unsigned (&v)[4], int step)
{
    const unsigned columns_lo[2] = {v[0], v[1]}, columns_hi[2] = {v[2], v[3]};
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        mma_m16n8k16(w.o[b][2 * step], p[b], columns_lo);
        mma_m16n8k16(w.o[b][2 * step + 1], p[b], columns_hi);
    }
}

__device__ __forceinline__ void clear_scores(warp_state &w, int chunk)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int r = 0; r < 4; ++r)
            w.s[2 * chunk][b][r] = w.s[2 * chunk + 1][b][r] = 0.0f;
}

__device__ __forceinline__ void score_tile(warp_state &w, smem_at k_at)
{
    unsigned k[2][4], q[2][BANDS][4];
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS16; ++chunk)
        clear_scores(w, chunk);
    auto load = [&](int i) {
        const int step = i / CHUNKS16, chunk = i % CHUNKS16;
        if (i >= STEPS * CHUNKS16)
            return;
        if (chunk == 0 && step >= Q_STEPS)
            load_q(q[step % 2], w, step);
        ldmatrix_x4_at(k[i % 2], fragment_at(k_at, step, chunk));
    };
    if (FA_MMA_PREFETCH)
        load(0);
#pragma unroll
    for (int i = 0; i < STEPS * CHUNKS16; ++i) {
        const int step = i / CHUNKS16, chunk = i % CHUNKS16;
        load(i + FA_MMA_PREFETCH);
        score_mma(w, step < Q_STEPS ? w.q[step] : q[step % 2], k[i % 2], chunk);
    }
}

/* Scores of keys a row does not see become -inf. last_key: per row the last key it sees, counted from the tile's first. */
__device__ __forceinline__ void mask_scores(warp_state &w, const int (&last_key)[BANDS][2])
{
    const int column = thread_anew() % 4 * 2;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int t = 0; t < TILES8; ++t)
                if (t * 8 + r % 2 > last_key[b][r / 2] - column)
                    w.s[t][b][r] = -FA_INF;
}

/* Probabilities of two neighbouring keys, packed: register `r` of the A operand of `chunk`, band b. */
__device__ __forceinline__ unsigned probability_pair(const warp_state &w, float (&sum)[BANDS][2], int chunk, int b, int r)
{
    const int t = 2 * chunk + r / 2, h = r % 2;
    const float lo = exp2_approx(fmaf(w.s[t][b][2 * h], w.scale_log2, -w.max[b][h]));
    const float hi = exp2_approx(fmaf(w.s[t][b][2 * h + 1], w.scale_log2, -w.max[b][h]));
    sum[b][h] += lo + hi;
    return pack_half2(lo, hi);
}

__device__ __forceinline__ void first_probabilities(warp_state &w)
{
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        w.p_sum[b][0] = w.p_sum[b][1] = 0.0f;
#pragma unroll
        for (int r = 0; r < 4; ++r)
            w.p[b][r] = probability_pair(w, EARLY ? w.p_sum : w.sum, 0, b, r);
    }
}

/* Moves the maxima, and what was summed under the old ones, where a score outgrew its row's maximum by more than SLACK, and makes w.p good,
 * which `fresh` says it is but for that. The common case is one vote and no shuffle. */
__device__ __forceinline__ void raise_max(warp_state &w, bool fresh)
{
    float top[BANDS][2];
    bool outgrown = false;
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            top[b][h] = fmaxf(w.s[0][b][2 * h], w.s[0][b][2 * h + 1]);
#pragma unroll
            for (int t = 1; t < TILES8; ++t)
                top[b][h] = fmaxf(top[b][h], fmaxf(w.s[t][b][2 * h], w.s[t][b][2 * h + 1]));
            top[b][h] *= w.scale_log2;
            outgrown |= top[b][h] > w.max[b][h] + SLACK;
        }
    const bool raise = __any_sync(FA_WARP_ALL, outgrown);
    if (raise)
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float m = fmaxf(top[b][h], w.max[b][h]);
                m = fmaxf(m, __shfl_xor_sync(FA_WARP_ALL, m, 1));
                m = fmaxf(m, __shfl_xor_sync(FA_WARP_ALL, m, 2));
                const float shrink = exp2_approx(w.max[b][h] - m);
                w.max[b][h] = m;
                w.sum[b][h] *= shrink;
#pragma unroll
                for (int t = 0; t < STEPS * 2; ++t) {
                    w.o[b][t][2 * h] *= shrink;
                    w.o[b][t][2 * h + 1] *= shrink;
                }
            }
    if (raise || !fresh)
        first_probabilities(w);
}

/* O += P V of the tile whose scores are in w.s. With NEXT, also the scores of the next tile. The exponentials of a chunk of 16 keys are
 * dealt out over the mma of the chunk before; with Q in registers the next tile's scores take the place of a chunk as it is used up, and
 * the exponentials of its first chunk go with the mma of this tile's last. */
template <bool NEXT> __device__ __forceinline__ void value_tile(warp_state &w, smem_at v_at, smem_at k_next_at)
{
    constexpr int PAIRS = BANDS * 4;
    unsigned p[CHUNKS16 + 1][BANDS][4];
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
#pragma unroll
        for (int r = 0; r < 4; ++r)
            p[0][b][r] = w.p[b][r];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (EARLY)
                w.sum[b][h] += w.p_sum[b][h];
            w.p_sum[b][h] = 0.0f;
        }
    }
    unsigned v[2][4], k[2][4];
    auto load = [&](int i) {
        const int step = i % STEPS, chunk = i / STEPS;
        if (i >= STEPS * CHUNKS16)
            return;
        ldmatrix_x4_trans_at(v[i % 2], fragment_at(v_at, step, chunk));
        if (NEXT && Q_IN_REGISTERS)
            ldmatrix_x4_at(k[i % 2], fragment_at(k_next_at, step, chunk));
    };
    if (FA_MMA_PREFETCH)
        load(0);
#pragma unroll
    for (int i = 0; i < STEPS * CHUNKS16; ++i) {
        const int step = i % STEPS, chunk = i / STEPS;
        if (NEXT && Q_IN_REGISTERS && step == 0)
            clear_scores(w, chunk);
        load(i + FA_MMA_PREFETCH);
        value_mma(w, p[chunk], v[i % 2], step);
        if (NEXT && Q_IN_REGISTERS)
            score_mma(w, w.q[step], k[i % 2], chunk);
#pragma unroll
        for (int j = step * PAIRS / STEPS; j < (step + 1) * PAIRS / STEPS; ++j)
            if (chunk + 1 < CHUNKS16)
                p[chunk + 1][j / 4][j % 4] = probability_pair(w, w.sum, chunk + 1, j / 4, j % 4);
            else if (NEXT && EARLY)
                w.p[j / 4][j % 4] = probability_pair(w, w.p_sum, 0, j / 4, j % 4);
    }
    if (NEXT && !Q_IN_REGISTERS)
        score_tile(w, k_next_at);
}

__device__ __forceinline__ head_rows head_of(const void *data, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s, int batch,
                                             int head)
{
    return {static_cast<__half *>(const_cast<void *>(data)) + batch * stride_b + head * stride_h, stride_s};
}

/* Every row at a multiple of 16 bytes: what 16-byte copies need. */
__device__ __forceinline__ bool is_aligned(const fa_params &p)
{
    const fa_i64 pointers = reinterpret_cast<fa_i64>(p.q) | reinterpret_cast<fa_i64>(p.k) | reinterpret_cast<fa_i64>(p.v) |
                            reinterpret_cast<fa_i64>(p.o);
    const fa_i64 strides = p.q_stride_b | p.q_stride_h | p.q_stride_s | p.k_stride_b | p.k_stride_h | p.k_stride_s |
                           p.v_stride_b | p.v_stride_h | p.v_stride_s | p.o_stride_b | p.o_stride_h | p.o_stride_s;
    return (pointers | strides * 2) % 16 == 0;
}

/* Row i sees keys 0 .. i + ahead, no further than the last. Round r of the block covers GROUPS tiles of N keys, one per group. */
struct block_state {
    const unsigned char *k_g, *v_g; /* first key of the head */
    int first_row, head, batch, split;
    int ahead;
    int begin, end; /* rounds */
    int fast_end;   /* rounds whose tiles load_tile can load */
    bool aligned;
};

/* Where a block works. Full: the tiles of a head are neighbours, so that its K and V stay in L2. Causal: in sections of heads whose K and V
 * fit there together, the longest tiles (the last rows) of all heads come first. */
__device__ __forceinline__ void find_work(block_state &block, const fa_params &p)
{
    constexpr fa_i64 SECTION_BYTES = 24 << 20;
    const int unit = blockIdx.x / SPLITS;
    int tile, index; /* index: head + batch * heads */
    if (FA_CAUSAL) {
        const int all = p.batch * p.heads;
        const fa_i64 fit = SECTION_BYTES * (p.heads / p.kv_heads) / (static_cast<fa_i64>(p.seq_kv) * DIM16 * 4);
        const int section = fit < 1 ? 1 : fit < all ? static_cast<int>(fit) : all;
        const int first = unit / (section * p.tiles_m) * section;
        const int width = min(section, all - first), rest = unit - first * p.tiles_m;
        tile = p.tiles_m - 1 - rest / width;
        index = first + rest % width;
    } else {
        index = unit / p.tiles_m;
        tile = unit - index * p.tiles_m;
    }
    block.first_row = tile * M;
    block.batch = index / p.heads;
    block.head = index - block.batch * p.heads;
    block.split = blockIdx.x % SPLITS;
}

__device__ __forceinline__ block_state plan_block(const fa_params &p)
{
    block_state block;
    find_work(block, p);
    block.aligned = is_aligned(p);
    block.ahead = FA_CAUSAL ? p.seq_kv - p.seq_q : p.seq_kv;
    const int keys = min(block.first_row + M + block.ahead, p.seq_kv);
    const int rounds = keys > 0 ? (keys + ROUND_KEYS - 1) / ROUND_KEYS : 0;
    const int share = (rounds + SPLITS - 1) / SPLITS;
    block.begin = SPLITS == 1 ? 0 : block.split * share;
    block.end = uniform(min(block.begin + share, rounds));
    const bool fast = block.aligned && p.k_stride_s == FA_DIM && p.v_stride_s == FA_DIM;
    block.fast_end = uniform(fast ? min(block.end, p.seq_kv / ROUND_KEYS) : 0);
    const int kv_head = block.head / (p.heads / p.kv_heads);
    block.k_g = uniform(head_of(p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, block.batch, kv_head).data_g);
    block.v_g = uniform(head_of(p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, block.batch, kv_head).data_g);
    return block;
}

/* Load `round` fills a slot with V of that round and K of the next; one commit each, also when nothing is left to load. */
__device__ __forceinline__ void load_round(unsigned char *slot_s, int round, const block_state &block, thread_share &share,
                                           const fa_params &p)
{
    hide(share.global_offset);
    if (round + 1 < block.fast_end)
        load_tile<ROUND_KEYS>(slot_s + TILE_BYTES, block.k_g, share.global_offset + ROUND_BYTES, share.smem_offset);
    else if (round + 1 < block.end)
        load_tile_slowly<ROUND_KEYS>(slot_s + TILE_BYTES, {(__half *)block.k_g, p.k_stride_s}, (round + 1) * ROUND_KEYS, p.seq_kv,
                                     block.aligned);
    if (round >= block.begin && round < block.fast_end)
        load_tile<ROUND_KEYS>(slot_s, block.v_g, share.global_offset, share.smem_offset);
    else if (round >= block.begin && round < block.end)
        load_tile_slowly<ROUND_KEYS>(slot_s, {(__half *)block.v_g, p.v_stride_s}, round * ROUND_KEYS, p.seq_kv, block.aligned);
    share.global_offset += ROUND_BYTES;
    cp_async_commit();
}

/* Where a block's results go. */
struct output {
    head_rows head;
    int first_row, rows; /* of the block; of the tensor */
    bool aligned;
};

/* One output row's 8 columns, its row maximum and sum: what groups of warps and split blocks hand on. */
struct partial {
    float o[8], max, sum;
};

/* Partial results lie as [part][M rows][stride] floats, their maxima and sums as [part][M][2]. Combines `parts` of them for a row. */
__device__ __forceinline__ partial combine(const float *o, const float *stats, int parts, fa_i64 part_o, fa_i64 part_stats,
                                           int row, int stride, int chunk)
{
    partial sum = {{0, 0, 0, 0, 0, 0, 0, 0}, NO_MAX, 0};
    for (int i = 0; i < parts; ++i)
        sum.max = fmaxf(sum.max, stats[i * part_stats + row * 2]);
    for (int i = 0; i < parts; ++i) {
        const float weight = exp2_approx(stats[i * part_stats + row * 2] - sum.max);
        const float4 *o4 = reinterpret_cast<const float4 *>(o + i * part_o + row * stride + chunk * 8);
        const float4 lo = o4[0], hi = o4[1];
        const float values[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        sum.sum += weight * stats[i * part_stats + row * 2 + 1];
        for (int e = 0; e < 8; ++e)
            sum.o[e] += weight * values[e];
    }
    return sum;
}

/* 0 for a row that saw no key. */
__device__ __forceinline__ float inverse(float sum)
{
    return sum > 0.0f ? 1.0f / sum : 0.0f;
}

__device__ __forceinline__ void store_partial(const output &out, int row, int chunk, const partial &value)
{
    if (out.first_row + row >= out.rows || chunk * 8 >= FA_DIM)
        return;
    const float factor = inverse(value.sum);
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        words[i] = pack_half2(value.o[2 * i] * factor, value.o[2 * i + 1] * factor);
    store_chunk(out.head.data_g + (out.first_row + row) * out.head.stride + chunk * 8,
                make_uint4(words[0], words[1], words[2], words[3]), out.aligned);
}

/* The warp's rows, normalised, through its own rows of Q in shared memory to 16-byte stores. */
__device__ __forceinline__ void store_rows(const warp_state &w, unsigned char *rows_s, const output &out, int warp_row)
{
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float factor = inverse(w.sum[b][h]);
#pragma unroll
            for (int t = 0; t < STEPS * 2; ++t)
                *reinterpret_cast<unsigned *>(rows_s + tile_offset(b * 16 + h * 8 + lane / 4, t) + lane % 4 * 4) =
                    pack_half2(w.o[b][t][2 * h] * factor, w.o[b][t][2 * h + 1] * factor);
        }
    __syncwarp();
#pragma unroll 4
    for (int item = lane; item < ROWS * CHUNKS; item += 32) {
        const int row = item / CHUNKS, chunk = item % CHUNKS, global_row = out.first_row + warp_row + row;
        if (global_row < out.rows && chunk * 8 < FA_DIM)
            store_chunk(out.head.data_g + global_row * out.head.stride + chunk * 8,
                        *reinterpret_cast<const uint4 *>(rows_s + tile_offset(row, chunk)), out.aligned);
    }
}

/* Results of the groups meet in shared memory, those of the splits in the workspace: [blocks] counters of 16 bytes, then per block
 * M rows of output, maxima and sums. The last block of a tile to arrive combines and leaves the counter zero. */
__device__ __forceinline__ void store_combined(const warp_state &w, unsigned char *smem, const output &out, int group,
                                               int warp_row, const fa_params &p)
{
    const int lane = threadIdx.x % 32;
    float *o_s = reinterpret_cast<float *>(smem), *stats_s = o_s + GROUPS * M * PARTIAL_STRIDE;
    __syncthreads(); /* K and V are used up */
#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = group * M + warp_row + b * 16 + h * 8 + lane / 4;
            if (lane % 4 == 0) {
                stats_s[row * 2] = w.max[b][h];
                stats_s[row * 2 + 1] = w.sum[b][h];
            }
#pragma unroll
            for (int t = 0; t < STEPS * 2; ++t)
                *reinterpret_cast<float2 *>(o_s + row * PARTIAL_STRIDE + t * 8 + lane % 4 * 2) =
                    make_float2(w.o[b][t][2 * h], w.o[b][t][2 * h + 1]);
        }
    __syncthreads();
    const int unit = blockIdx.x / SPLITS, split = blockIdx.x % SPLITS;
    int *counters_g = static_cast<int *>(p.workspace);
    float *parts_g = reinterpret_cast<float *>(static_cast<char *>(p.workspace) + gridDim.x * 16ll);
    float *part_g = parts_g + (static_cast<fa_i64>(unit) * SPLITS + split) * WORKSPACE_FLOATS;
    for (int item = threadIdx.x; item < M * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        const partial sum = combine(o_s, stats_s, GROUPS, M * PARTIAL_STRIDE, M * 2, row, PARTIAL_STRIDE, chunk);
        if (SPLITS == 1) {
            store_partial(out, row, chunk, sum);
            continue;
        }
        float4 *o4 = reinterpret_cast<float4 *>(part_g + row * DIM16 + chunk * 8);
        o4[0] = make_float4(sum.o[0], sum.o[1], sum.o[2], sum.o[3]);
        o4[1] = make_float4(sum.o[4], sum.o[5], sum.o[6], sum.o[7]);
        if (chunk == 0) {
            part_g[M * DIM16 + row * 2] = sum.max;
            part_g[M * DIM16 + row * 2 + 1] = sum.sum;
        }
    }
    if (SPLITS == 1)
        return;
    __threadfence();
    __syncthreads();
    int *arrived_s = reinterpret_cast<int *>(smem);
    if (threadIdx.x == 0)
        *arrived_s = atomicAdd(&counters_g[unit * 4], 1);
    __syncthreads();
    if (*arrived_s != SPLITS - 1)
        return;
    __threadfence();
    parts_g += static_cast<fa_i64>(unit) * SPLITS * WORKSPACE_FLOATS;
    for (int item = threadIdx.x; item < M * CHUNKS; item += THREADS) {
        const int row = item / CHUNKS, chunk = item % CHUNKS;
        store_partial(out, row, chunk,
                      combine(parts_g, parts_g + M * DIM16, SPLITS, WORKSPACE_FLOATS, WORKSPACE_FLOATS, row, DIM16, chunk));
    }
    if (threadIdx.x == 0)
        counters_g[unit * 4] = 0;
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, smem_unaligned);
    unsigned char *const smem = smem_unaligned + (-reinterpret_cast<unsigned long long>(smem_unaligned) & (SMEM_ALIGN - 1));
    unsigned char *const slots_s = smem + Q_BYTES;
    const int warp = uniform(static_cast<int>(threadIdx.x / 32)), lane = threadIdx.x % 32;
    const int group = warp / (WARPS / GROUPS), warp_row = warp % (WARPS / GROUPS) * ROWS;

    const block_state block = plan_block(p);
    thread_share share = find_share();
    share.global_offset += (block.begin - 1) * ROUND_BYTES;
    if (block.begin < block.end) {
        const head_rows q = head_of(p.q, p.q_stride_b, p.q_stride_h, p.q_stride_s, block.batch, block.head);
        load_tile_slowly<M>(smem, q, block.first_row, p.seq_q, block.aligned);
    }
    load_round(slots_s + (STAGES - 1) * SLOT_BYTES, block.begin - 1, block, share, p);
    for (int i = 0; i < STAGES - 1; ++i)
        load_round(slots_s + i * SLOT_BYTES, block.begin + i, block, share, p);

    /* Of the block's rounds, the warp's rows need those before warp_end, and those before warp_whole without a mask. */
    const int first_row = uniform(block.first_row + warp_row);
    const int keys_all = min(first_row + ROWS + block.ahead, p.seq_kv) - group * N;
    const int keys_whole = min(first_row + 1 + block.ahead, p.seq_kv) - group * N;
    const int warp_end = min(block.end, keys_all > 0 ? (keys_all + ROUND_KEYS - 1) / ROUND_KEYS : 0);
    const int warp_whole = keys_whole > 0 ? (keys_whole + ROUND_KEYS - N) / ROUND_KEYS : 0;

    warp_state w;
    w.scale_log2 = __int_as_float(uniform(__float_as_int(p.scale * 1.44269504088896341f)));
    w.q_at = smem_at_of(smem + warp_row * ROW_BYTES + v_lane_offset(lane));
#pragma unroll
    for (int b = 0; b < BANDS; ++b) {
        w.max[b][0] = w.max[b][1] = NO_MAX;
        w.sum[b][0] = w.sum[b][1] = 0.0f;
#pragma unroll
        for (int t = 0; t < STEPS * 2; ++t)
            w.o[b][t][0] = w.o[b][t][1] = w.o[b][t][2] = w.o[b][t][3] = 0.0f;
    }
    auto mask = [&](int round) {
        const int row = first_row + thread_anew() % 32 / 4, last = p.seq_kv - 1, key = round * ROUND_KEYS + group * N;
        int last_key[BANDS][2];
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                last_key[b][h] = min(row + b * 16 + h * 8 + block.ahead, last) - key;
        mask_scores(w, last_key);
    };

    const smem_at k_at = smem_at_of(slots_s + TILE_BYTES + group * N * ROW_BYTES + k_lane_offset(lane));
    const smem_at v_at = smem_at_of(slots_s + group * N * ROW_BYTES + v_lane_offset(lane));
    cp_async_wait<STAGES - 1>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < Q_STEPS; ++step)
        load_q(w.q[step], w, step);
    if (block.begin < warp_end) {
        score_tile(w, k_at + (STAGES - 1) * SLOT_BYTES);
        if (block.begin >= warp_whole)
            mask(block.begin);
        raise_max(w, false);
    }
    /* Every warp goes through every round of the block, for its share of the loads, also after its own last. */
    int slot = 0;
    auto start_round = [&](int round) {
        if (STAGES == 1) {
            __syncthreads();
            load_round(slots_s, round, block, share, p);
            cp_async_wait<0>();
            __syncthreads();
        } else {
            cp_async_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
            __syncthreads();
            load_round(slots_s + (slot == 0 ? (STAGES - 1) * SLOT_BYTES : slot - SLOT_BYTES), round + STAGES - 1, block, share, p);
        }
    };
    auto next_slot = [&] { slot = slot == (STAGES - 1) * SLOT_BYTES ? 0 : slot + SLOT_BYTES; };
    int round = block.begin;
#pragma unroll 1
    for (; round + 1 < warp_end; ++round, next_slot()) {
        start_round(round);
        value_tile<true>(w, v_at + slot, k_at + slot);
        if (round + 1 >= warp_whole)
            mask(round + 1);
        raise_max(w, EARLY && round + 1 < warp_whole);
    }
    if (round < warp_end) {
        start_round(round);
        value_tile<false>(w, v_at + slot, k_at);
        ++round;
        next_slot();
    }
#pragma unroll 1
    for (; round < block.end; ++round, next_slot())
        start_round(round);

#pragma unroll
    for (int b = 0; b < BANDS; ++b)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            w.sum[b][h] += __shfl_xor_sync(FA_WARP_ALL, w.sum[b][h], 1);
            w.sum[b][h] += __shfl_xor_sync(FA_WARP_ALL, w.sum[b][h], 2);
        }
    const output out = {head_of(p.o, p.o_stride_b, p.o_stride_h, p.o_stride_s, block.batch, block.head), block.first_row, p.seq_q,
                        block.aligned};
    if (PARTIAL)
        store_combined(w, smem, out, group, warp_row, p);
    else
        store_rows(w, smem + warp_row * ROW_BYTES, out, warp_row);
}
