/* What one warp of `mma` does: scores, softmax and output of its query rows over one tile of keys, all in registers.
 * Included by mma.cu after its constants; K, V and Q come from shared memory as mma_tile.cuh lays them out. */
#ifndef FA_MMA_WARP_CUH
#define FA_MMA_WARP_CUH

/* The maximum of a row before its first key: finite, so that differences of two such are 0 and exp2(this - real) is 0. */
constexpr float NO_MAX = -1e30f;
/* A row's maximum may lag behind by this many powers of two: probabilities up to 2^8 cost halves no precision. */
constexpr float SLACK = 8.0f;

/* What a warp keeps. Fragments as the mma wants them: of a 16x8 accumulator, element 2 h + e is row lane / 4 + 8 h, column lane % 4 * 2 + e. */
struct warp_state {
    float o[BANDS][STEPS * 2][4];
    float s[TILES8][BANDS][4];
    float max[BANDS][2], sum[BANDS][2]; /* max in powers of two (scaled by scale * log2 e); sum of this lane's columns only */
    unsigned q[Q_STEPS > 0 ? Q_STEPS : 1][BANDS][4];
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
    load(0);
#pragma unroll
    for (int i = 0; i < STEPS * CHUNKS16; ++i) {
        const int step = i / CHUNKS16, chunk = i % CHUNKS16;
        load(i + 1);
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
__device__ __forceinline__ unsigned probability_pair(warp_state &w, int chunk, int b, int r)
{
    const int t = 2 * chunk + r / 2, h = r % 2;
    const float lo = exp2_approx(fmaf(w.s[t][b][2 * h], w.scale_log2, -w.max[b][h]));
    const float hi = exp2_approx(fmaf(w.s[t][b][2 * h + 1], w.scale_log2, -w.max[b][h]));
    w.sum[b][h] += lo + hi;
    return pack_half2(lo, hi);
}

/* Moves the maxima, and what was summed under the old ones, where a score outgrew its row's maximum by more than SLACK.
 * The common case is one vote and no shuffle. */
__device__ __forceinline__ void raise_max(warp_state &w)
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
    if (!__any_sync(FA_WARP_ALL, outgrown))
        return;
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
}

/* O += P V of the tile whose scores are in w.s. With NEXT, also the scores of the next tile. The exponentials of a chunk of 16 keys are
 * dealt out over the mma of the chunk before; with Q in registers the next tile's scores take the place of a chunk as it is used up. */
template <bool NEXT> __device__ __forceinline__ void value_tile(warp_state &w, smem_at v_at, smem_at k_next_at)
{
    constexpr int PAIRS = BANDS * 4;
    unsigned p[CHUNKS16][BANDS][4], v[2][4], k[2][4];
    auto load = [&](int i) {
        const int step = i % STEPS, chunk = i / STEPS;
        if (i >= STEPS * CHUNKS16)
            return;
        ldmatrix_x4_trans_at(v[i % 2], fragment_at(v_at, step, chunk));
        if (NEXT && Q_IN_REGISTERS)
            ldmatrix_x4_at(k[i % 2], fragment_at(k_next_at, step, chunk));
    };
#pragma unroll
    for (int j = 0; j < PAIRS; ++j)
        p[0][j / 4][j % 4] = probability_pair(w, 0, j / 4, j % 4);
    load(0);
#pragma unroll
    for (int i = 0; i < STEPS * CHUNKS16; ++i) {
        const int step = i % STEPS, chunk = i / STEPS;
        if (NEXT && Q_IN_REGISTERS && step == 0)
            clear_scores(w, chunk);
        load(i + 1);
        value_mma(w, p[chunk], v[i % 2], step);
        if (NEXT && Q_IN_REGISTERS)
            score_mma(w, w.q[step], k[i % 2], chunk);
        if (chunk + 1 < CHUNKS16)
#pragma unroll
            for (int j = step * PAIRS / STEPS; j < (step + 1) * PAIRS / STEPS; ++j)
                p[chunk + 1][j / 4][j % 4] = probability_pair(w, chunk + 1, j / 4, j % 4);
    }
    if (NEXT && !Q_IN_REGISTERS)
        score_tile(w, k_next_at);
}

#endif
