/* What wgmma_fp8 and its persistent form (fp8_tickets.cuh) share: shapes, shared memory, loads, the transposition of
 * V, turns, the two products. */
#pragma once

#include "shared/fp8.cuh"
#include "shared/hopper.cuh"

static_assert(FA_FP8, "wgmma_fp8 serves --dtype e4m3 only");
static_assert(FA_DIM <= 256 && FA_DIM_V <= 256, "wgmma_fp8 serves dim and dim_v up to 256");
static_assert(FA_MAXREG == 0, "wgmma_fp8: MAXREG must be 0 (the block's size fixes its registers)");
static_assert(FA_M == 128 || FA_M == 192, "wgmma_fp8: m must be 128 or 192");
static_assert(FA_WARPS == FA_M / 16, "wgmma_fp8: warps must be m / 16, warpgroups of 64 rows");
static_assert(FA_N == 64 || FA_N == 128, "n: 64 or 128, a swizzled row of V transposed");
static_assert(FA_STAGES >= 1, "stages must be 1 or more");
static_assert(FA_SPLITS == 1, "wgmma_fp8: splits must be 1");
static_assert(!FA_ACC_FP16, "wgmma accumulates in fp32 only");

constexpr int M = FA_M, N = FA_N, STAGES = FA_STAGES, CONSUMERS = FA_M / 64, RAW_STAGES = 2;
constexpr int BLOCK_THREADS = 128 * (1 + CONSUMERS);
/* Registers of a thread: at the launch 168 or, with three consumers, 128; as many in all afterwards. */
constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? 40 : 32, CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : 160;
/* Rows of Q, K and V: boxes of 64 or 128 bytes, past dim zeros. */
constexpr int ROW_BYTES = larger(FA_DIM, FA_DIM_V) <= 64 ? 64 : 128;
constexpr int BOXES = ceil_div(FA_DIM, ROW_BYTES), BOXES_V = ceil_div(FA_DIM_V, ROW_BYTES);
/* Columns of O; those of one product, which takes registers beside O. */
constexpr int DIM_N = larger(64, FA_DIM_V <= 128 ? ceil_div(FA_DIM_V, 16) * 16 : ceil_div(FA_DIM_V, 32) * 32);
constexpr int PART_COLS = DIM_N > 128 ? DIM_N / 2 : DIM_N;
constexpr int Q_BYTES = 64 * BOXES * ROW_BYTES, K_BYTES = N * BOXES * ROW_BYTES, RAW_BYTES = N * BOXES_V * ROW_BYTES;
/* Whether the bytes of P are made without exponentials (probabilities_by_bits). Eight columns more of V, of ONE_BY_4,
 * make their sums: a lane has a quarter of a row's. Where they cannot be columns of the last product they lie apart. */
constexpr bool BY_BITS = !FA_LSE;
constexpr bool SUMS_APART = BY_BITS && DIM_N != 64 && DIM_N != 128 && DIM_N != 256;
constexpr int SUM_COLS = BY_BITS && !SUMS_APART ? 8 : 0;
constexpr unsigned ONE_BY_4 = 0x28282828;
constexpr int V_BYTES = (DIM_N + SUM_COLS) * N; /* transposed: rows of N keys */
/* Named barriers: the producer's; the turns of the consumers, from BAR_TURN on. With exponentials all would fall
 * into step without turns: products of all at once, then exponentials of all at once. */
constexpr int BAR_PRODUCER = 1, BAR_TURN = 2;
/* Whether a turn is over when its products are issued: the next ones stand in line, so the tensor cores do not idle
 * while a turn changes hands. Up to dim 64 exponentials take longer than products. There a turn lasts until its
 * products are done, which keeps the consumers apart. */
constexpr bool PASSES_EARLY = FA_DIM > 64;
/* Whether blocks take several tiles of queries (wgmma/fp8_tickets.cuh). Q of the next is loaded early where it fits. */
constexpr bool TICKETS =
    (BY_BITS || (FA_DIM == 128 && FA_DIM_V == 128)) && M - 64 <= N && !HAS_VARLEN && !HAS_FIRST_KEY;
constexpr int TRANSPOSERS = TICKETS ? 3 : 4; /* warps of the producer; with tickets the fourth loads */
constexpr int RINGS_BYTES = STAGES * (K_BYTES + V_BYTES) + RAW_STAGES * RAW_BYTES;
constexpr int Q_STAGES = TICKETS && 2 * CONSUMERS * Q_BYTES + RINGS_BYTES <= 224 * 1024 ? 2 : 1;
constexpr int K_AT = Q_STAGES * CONSUMERS * Q_BYTES, RAW_AT = K_AT + STAGES * K_BYTES;
constexpr int V_AT = RAW_AT + RAW_STAGES * RAW_BYTES, ONES_AT = V_AT + STAGES * V_BYTES;
constexpr int BARS_AT = ONES_AT + (SUMS_APART ? 8 * N : 0);
constexpr int BARRIERS = 1 + 4 * STAGES + RAW_STAGES + (TICKETS ? 2 * Q_STAGES - 1 + RAW_STAGES : 0);
constexpr int WORDS_AT = BARS_AT + 8 * BARRIERS, WORDS = TICKETS ? 3 * Q_STAGES + RAW_STAGES : 0;
/* To begin at a multiple of 1024. Of 256 columns there are 880 bytes; without static parts it begins near one. */
constexpr int SLACK = DIM_N == 256 ? 512 : 1024 - 16;

struct shared_layout {
    static constexpr int EARLY = 1 + 4 * STAGES + RAW_STAGES; /* the first barrier that tickets need */
    unsigned base_s;
    __device__ __forceinline__ unsigned bar(int i) const { return base_s + BARS_AT + 8 * i; }
    __device__ __forceinline__ unsigned q_full(int i) const { return bar(i == 0 ? 0 : EARLY + i - 1); }
    __device__ __forceinline__ unsigned q_empty(int i) const { return bar(EARLY + Q_STAGES - 1 + i); }
    __device__ __forceinline__ unsigned raw_empty(int i) const { return bar(EARLY + 2 * Q_STAGES - 1 + i); }
    __device__ __forceinline__ unsigned place(int i) const { return base_s + WORDS_AT + 12 * i; } /* of Q's tile */
    __device__ __forceinline__ unsigned more(int i) const { return place(Q_STAGES) + 4 * i; } /* is there such a V? */
    __device__ __forceinline__ unsigned raw_full(int i) const { return bar(1 + i); }
    __device__ __forceinline__ unsigned k_full(int i) const { return bar(1 + RAW_STAGES + i); }
    __device__ __forceinline__ unsigned k_empty(int i) const { return bar(1 + RAW_STAGES + STAGES + i); }
    __device__ __forceinline__ unsigned v_full(int i) const { return bar(1 + RAW_STAGES + 2 * STAGES + i); }
    __device__ __forceinline__ unsigned v_empty(int i) const { return bar(1 + RAW_STAGES + 3 * STAGES + i); }
    __device__ __forceinline__ unsigned q(int consumer) const { return base_s + consumer * Q_BYTES; }
    __device__ __forceinline__ unsigned k(int i) const { return base_s + K_AT + i * K_BYTES; }
    __device__ __forceinline__ unsigned raw(int i) const { return base_s + RAW_AT + i * RAW_BYTES; }
    __device__ __forceinline__ unsigned v(int i) const { return base_s + V_AT + i * V_BYTES; }
    __device__ __forceinline__ unsigned ones() const { return base_s + ONES_AT; }
};

__device__ __forceinline__ void init_barriers(const shared_layout &at)
{
    for (int i = 0; i < Q_STAGES; ++i) {
        mbarrier_init(at.q_full(i), 1);
        if (TICKETS)
            mbarrier_init(at.q_empty(i), 4 * CONSUMERS);
    }
    for (int i = 0; i < RAW_STAGES; ++i) {
        mbarrier_init(at.raw_full(i), 1);
        if (TICKETS)
            mbarrier_init(at.raw_empty(i), 32 * TRANSPOSERS);
    }
    for (int i = 0; i < STAGES; ++i) {
        mbarrier_init(at.k_full(i), 1);
        mbarrier_init(at.k_empty(i), 4 * CONSUMERS);   /* a lane of every consumer warp */
        mbarrier_init(at.v_full(i), 32 * TRANSPOSERS); /* every thread, after its proxy fence */
        mbarrier_init(at.v_empty(i), 4 * CONSUMERS);
    }
    mbarrier_init_fence();
}

/* By all threads, before the block's first barrier. */
__device__ __forceinline__ void init_sums(const shared_layout &at, int thread)
{
    for (int i = 0; i < STAGES; ++i)
        for (int word = thread; word < SUM_COLS * N / 4; word += BLOCK_THREADS)
            st_shared_at(at.v(i) + DIM_N * N + 4 * word, __uint_as_float(ONE_BY_4));
    if (SUMS_APART && thread < 2 * N)
        st_shared_at(at.ones() + 4 * thread, __uint_as_float(ONE_BY_4));
    fence_async_proxy();
}

/* The tiles of keys of a block, from first_key on. */
struct key_tiles {
    int first_key, count, kv_head;
};

__device__ __forceinline__ key_tiles keys_of_tile(const fa_params &p, const query_tile &tile)
{
    const int first_key = tile.first_key / N * N;
    return {first_key, tile.keys > first_key ? ceil_div(tile.keys - first_key, N) : 0,
            tile.head / (p.heads / p.kv_heads)};
}

/* Coordinates of a box: with lengths a map ends where the sequence does (fa_kernel_info). */
__device__ __forceinline__ int row_of_map(int longest, int length, int row)
{
    return HAS_VARLEN ? longest - length + row : row;
}

/* The first ROWS rows of a tensor from `row` on; `bar` expects their bytes. For one thread. */
template <int ROWS, int BOXES_OF>
__device__ __forceinline__ void load_boxes(unsigned to_s, const fa_tensor_map *map, unsigned bar, int row, int head,
                                           int batch)
{
#pragma unroll
    for (int box = 0; box < BOXES_OF; ++box)
        tma_load(to_s + box * ROWS * ROW_BYTES, map, bar, box * ROW_BYTES, row, head, batch);
}

__device__ __forceinline__ void load_queries(const shared_layout &at, const fa_params &p, const query_tile &tile,
                                             int slot = 0)
{
    /* With lengths no box is out of bounds as a whole. */
    const int parts = HAS_VARLEN ? ceil_div(tile.rows, 64) : CONSUMERS;
    mbarrier_arrive_expect(at.q_full(slot), parts * Q_BYTES);
    for (int i = 0; i < parts; ++i)
        load_boxes<64, BOXES>(at.q(slot * CONSUMERS + i), &p.q_map, at.q_full(slot),
                              row_of_map(p.seq_q, tile.seq.seq_q, tile.row0 + 64 * i), tile.head,
                              HAS_VARLEN ? tile.seq.first_q + tile.seq.seq_q : tile.seq.batch);
}

/* K or V of tile i to its slot. */
template <int BOXES_OF>
__device__ __forceinline__ void load_keys(unsigned to_s, unsigned bar, const fa_tensor_map *map, const fa_params &p,
                                          const query_tile &tile, const key_tiles &keys, int i)
{
    mbarrier_arrive_expect(bar, N * BOXES_OF * ROW_BYTES);
    load_boxes<N, BOXES_OF>(to_s, map, bar, row_of_map(p.seq_kv, tile.seq.seq_kv, keys.first_key + i * N), keys.kv_head,
                            HAS_VARLEN ? tile.seq.first_kv + tile.seq.seq_kv : tile.seq.batch);
}

/* Where a row of SPAN bytes, swizzled, has its 16-byte chunk. */
template <int SPAN>
__device__ __forceinline__ unsigned chunk_place(int row, int chunk)
{
    return row * SPAN + (chunk ^ (SPAN == 128 ? row % 8 : row / 2 % 4)) * 16;
}

/* V [key][column] to V [column][key], by the producer's warps: 32 keys and 16 columns at a time. Even columns of the 16
 * come before the odd ones; the keys of 32 stand as in shared/fp8.cuh. */
__device__ __forceinline__ void transpose_values(unsigned raw_s, unsigned v_s, int warp, int lane)
{
    constexpr int CHUNKS = DIM_N / 16, BOX_CHUNKS = ROW_BYTES / 16;
#pragma unroll 1
    for (int chunk = warp; chunk < CHUNKS; chunk += TRANSPOSERS) {
        const unsigned from =
            raw_s + chunk / BOX_CHUNKS * N * ROW_BYTES + chunk_place<ROW_BYTES>(lane, chunk % BOX_CHUNKS);
#pragma unroll
        for (int keys = 0; keys < N / 32; ++keys) {
            unsigned v[4];
            ldmatrix_x4_trans_at(v, from + keys * 32 * ROW_BYTES);
            const unsigned rows[4] = {__byte_perm(v[0], v[1], 0x6420), __byte_perm(v[2], v[3], 0x6420),
                                      __byte_perm(v[0], v[1], 0x7531), __byte_perm(v[2], v[3], 0x7531)};
            stmatrix_x4_at(v_s + chunk_place<N>(chunk * 16 + lane / 16 * 8 + lane % 8, keys * 2 + lane / 8 % 2), rows);
        }
    }
}

/* A consumer thread's output, and the probabilities of a tile, in fragments as in shared/fp8.cuh. alpha: the factor of
 * what has been summed before them. */
struct consumer_state {
    float o[DIM_N / 16][2][4], m[2], l[2], alpha[2];
    unsigned p[N / 8];
};

__device__ __forceinline__ void take_turn(int consumer)
{
    if (!BY_BITS)
        bar_sync(BAR_TURN + consumer, 256);
}

__device__ __forceinline__ void pass_turn(int consumer)
{
    if (!BY_BITS)
        bar_arrive(BAR_TURN + (consumer + 1 == CONSUMERS ? 0 : consumer + 1), 256);
}

/* S = Q K^T, the end of a turn. q, k: descriptor words. */
__device__ __forceinline__ void score_tile(float (&tile)[N / 8][4], unsigned q, unsigned k, int consumer)
{
    constexpr int STEPS = ceil_div(FA_DIM, 32), BOX_STEPS = ROW_BYTES / 32;
    float(&s)[N / 2] = reinterpret_cast<float(&)[N / 2]>(tile);
    fence_operand(s);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const unsigned box = step / BOX_STEPS, more = step % BOX_STEPS * 2;
        wgmma_e4m3<N>::ss(s, wgmma_descriptor<ROW_BYTES>(q + box * (64 * ROW_BYTES / 16) + more),
                          wgmma_descriptor<ROW_BYTES>(k + box * (N * ROW_BYTES / 16) + more), step > 0);
    }
    wgmma_commit();
    if (PASSES_EARLY)
        pass_turn(consumer);
    wgmma_wait<0>();
    if (!PASSES_EARLY)
        pass_turn(consumer);
    fence_operand(s);
}

/* O = alpha O + P V, PART columns' part of it. v: descriptor word. */
template <int PART>
__device__ __forceinline__ void value_part(consumer_state &c, unsigned v, const shared_layout &at)
{
    constexpr bool LAST = PART == DIM_N / PART_COLS - 1;
    constexpr int COLS = PART_COLS + (LAST ? SUM_COLS : 0);
    float(&o)[PART_COLS / 2] = reinterpret_cast<float(&)[DIM_N / PART_COLS][PART_COLS / 2]>(c.o)[PART];
    float sum[COLS / 2], apart[4];
    fence_operand(sum);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < N / 32; ++step)
        wgmma_e4m3<COLS>::rs(sum, &c.p[4 * step], wgmma_descriptor<N>(v + PART * (PART_COLS * N / 16) + step * 2),
                             step > 0);
#pragma unroll
    for (int step = 0; SUMS_APART && LAST && step < N / 32; ++step)
        wgmma_e4m3<8>::rs(apart, &c.p[4 * step], wgmma_descriptor<N>(uniform_by_shuffle(descriptor_start(at.ones()))),
                          step > 0);
    wgmma_commit();
    wgmma_wait<0>();
    fence_operand(sum);
#pragma unroll
    for (int i = 0; i < PART_COLS / 2; ++i)
        o[i] = fmaf(o[i], c.alpha[i / 2 % 2], sum[i]);
#pragma unroll
    for (int h = 0; BY_BITS && LAST && h < 2; ++h)
        c.l[h] = fmaf(c.l[h], c.alpha[h], SUMS_APART ? apart[2 * h] : sum[(COLS - 8) / 2 + 2 * h]);
}

/* raise_maxima, of scores as integers, which Hopper compares three at a time. Of negative ones alone that is the least:
 * then they are compared as floats. */
__device__ __forceinline__ void raise_maxima_by_bits(const float (&s)[N / 8][4], float (&m)[2], float (&alpha)[2],
                                                     float scale_log2)
{
    int largest[2][2];
#pragma unroll
    for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int a = __float_as_int(s[t][2 * h]), b = __float_as_int(s[t][2 * h + 1]);
            largest[h][t % 2] = t < 2 ? max(a, b) : max(max(largest[h][t % 2], a), b);
        }
    float most[2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
        most[h] = quad_max(__int_as_float(max(largest[h][0], largest[h][1])));
    if (__any_sync(ALL_LANES, (__float_as_int(most[0]) | __float_as_int(most[1])) < 0)) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int i = 0; i < N / 4; ++i)
                most[h] = fmaxf(most[h], s[i / 2][2 * h + i % 2]);
            most[h] = quad_max(most[h]);
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
        raise_maximum(most[h], m[h], alpha[h], scale_log2);
}

/* P = exp2(S - maximum + P_EXPONENT) as bytes, without exponentials. An E4M3 byte is 8 log2 of its number plus 56, less
 * what a mantissa is below its logarithm, at most 0.69: MIDDLE makes P right in the mean. As subnormal halves these are
 * integers: the conversion rounds them, and those below 0 become 0. */
__device__ __forceinline__ void probabilities_by_bits(consumer_state &c, const float (&s)[N / 8][4], float scale_log2)
{
    constexpr float MIDDLE = 0.46f, UNIT = 1.0f / (1 << 24);
    const float factor = 8.0f * UNIT * scale_log2;
    raise_maxima_by_bits(s, c.m, c.alpha, scale_log2);
#pragma unroll
    for (int i = 0; i < N / 8; ++i) {
        const float term = fmaf(c.m[i % 2], -8.0f * UNIT, (8.0f * P_EXPONENT + 56.0f - MIDDLE) * UNIT);
        unsigned two[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const float *pair = &s[i / 2 * 2 + j][i % 2 * 2];
            asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;"
                : "=r"(two[j])
                : "f"(fmaf(pair[1], factor, term)), "f"(fmaf(pair[0], factor, term)));
        }
        c.p[i] = __byte_perm(two[0], two[1], 0x6420);
    }
}

/* From the scores of a tile of keys to its part of O, in the consumer's turn. */
__device__ __forceinline__ void finish_tile(consumer_state &c, float (&s)[N / 8][4], const shared_layout &at,
                                            const head_scores &scores, int stage, int phase, int consumer, int lane)
{
    if (BY_BITS) {
        probabilities_by_bits(c, s, scores.scale_log2);
    } else {
        online_softmax(s, c.m, c.l, c.alpha, scores.scale_log2);
#pragma unroll
        for (int i = 0; i < N / 8; ++i)
            c.p[i] = probabilities(s, i / 4 * 4, i % 4);
    }
    mbarrier_wait(at.v_full(stage), phase);
    take_turn(consumer);
    const unsigned v = uniform_by_shuffle(descriptor_start(at.v(stage)));
    value_part<0>(c, v, at);
    if constexpr (PART_COLS < DIM_N)
        value_part<1>(c, v, at);
    if (lane == 0)
        mbarrier_arrive(at.v_empty(stage));
}
