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
 * Order: with the causal mask the longest blocks of some heads begin first, so that the last to end are short ones.
 *   --deterministic: the tiles of keys add to a tile of dQ one after the other, by a turn in the workspace.
 * Builds on: mma.   Knobs: m (queries of a step), n (keys of a block), warps, stages (of Q and dO), swizzle.
 * Limits: dim and dim-v multiples of 8 up to 256; lengths, windows, chunks, softcap, sinks, ALiBi. */
#include "mma/backward_dq.cuh"

FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES, .grid = FA_GRID_KEYS,
               .workspace_bytes_per_block = static_cast<fa_i64>(M) * WORKSPACE_BYTES_PER_ROW,
               .nondeterministic = !DETERMINISTIC, .pack_heads = 1, .serves_bf16 = 1,
               .serves = FA_FEATURE_VARLEN | FA_FEATURE_WINDOW | FA_FEATURE_CHUNK | FA_FEATURE_SOFTCAP |
                         FA_FEATURE_SINK | FA_FEATURE_ALIBI | FA_FEATURE_DIM_V | FA_FEATURE_BACKWARD |
                         FA_FEATURE_DETERMINISTIC);

/* A warp's part of the work, and its sums. */
struct warp_state {
    int key, query, k_step, v_step; /* first key, query at hand, and 16 columns of dK and dV, of the tiles */
    float dk[BANDS][K_STEPS * 2][4], dv[BANDS][V_STEPS * 2][4];
};

/* The same number: the compiler would keep in registers what it makes of it. */
__device__ __forceinline__ int forget(int number)
{
    unsigned value = number;
    make_opaque(value);
    return static_cast<int>(value);
}

/* s += keys times queries, transposed scores: rows are keys. after(step) follows the products of each 16 columns. */
template <class ROW, class F>
__device__ __forceinline__ void multiply_rows(float (&s)[BANDS][QUERIES / 8][4], smem_addr keys_at,
                                              smem_addr queries_at, const F &after)
{
    const unsigned lane = threadIdx.x % WARP_SIZE;
    const smem_addr a_at = keys_at + v_lane_offset<ROW>(lane), b_at = queries_at + k_lane_offset<ROW>(lane);
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
        after(step);
    }
}

/* sums += pairs times rows: P^T dO or dS^T Q. OWN: over the warp's queries from w.query on, whose pairs are registers;
 * else over those of the warps with the same keys, in shared memory. first_step: of the warp's columns. */
template <bool OWN, class ROW, int COUNT>
__device__ __forceinline__ void add_rows(float (&sums)[BANDS][COUNT * 2][4],
                                         const unsigned (&own)[QUERIES / 16][BANDS][4], smem_addr pairs_at,
                                         smem_addr rows_at, int first_step, int query)
{
    const unsigned lane = threadIdx.x % WARP_SIZE;
    const smem_addr a_at = pairs_at + v_lane_offset<pair_row>(lane), b_at = rows_at + v_lane_offset<ROW>(lane);
#pragma unroll
    for (int k = OWN ? 0 : OWNED / 16; k < (OWN ? QUERIES : M) / 16; ++k) {
        constexpr int STEPS = (OWN ? QUERIES : OWNED) / 16; /* of a part */
        const int first = OWN ? query / 16 : SHARERS > 1 ? (query / OWNED + k / STEPS) % SHARERS * STEPS : 0;
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
    if constexpr (HAS_STMATRIX) {
        const smem_addr lane_at = smem_address(pairs_s) + w.key * pair_row::ROW_BYTES + v_lane_offset<pair_row>(lane);
#pragma unroll
        for (int i = 0; i < QUERIES / 16 * BANDS; ++i)
            stmatrix_x4_at(fragment<pair_row>(fragment<pair_row>(lane_at, w.query / 16, 0), i / BANDS, i % BANDS),
                           pairs[i / BANDS][i % BANDS]);
        return;
    }
#pragma unroll
    for (int i = 0; i < QUERIES / 16 * BANDS * 4; ++i) {
        const int chunk16 = i / (BANDS * 4), b = i / 4 % BANDS, r = i % 4;
        const int key = w.key + b * 16 + r % 2 * 8 + lane / 4, query = w.query + chunk16 * 16 + r / 2 * 8;
        *reinterpret_cast<unsigned *>(pairs_s + pair_row::offset(key, query / 8) + lane % 4 * 4) = pairs[chunk16][b][r];
    }
}

/* add_to_dq, with --deterministic when the tiles of keys before this one have added theirs. */
__device__ __forceinline__ void add_in_turn(const fa_params &p, const key_block &block, int head, int tile,
                                            unsigned char *smem)
{
    const sequence &seq = block.seq;
    const int row0 = tile * M;
    unsigned long long &kept = kept_pointers(smem, 1).b;
    float *dq_g = reinterpret_cast<float *>(kept);
    if (tile == block.begin) {
        const gradient_rows rows = gradients_of(p, seq, head);
        dq_g = rows.dq_g + (rows.first + row0) * 16 - rows.first * DIM16;
    }
    kept = reinterpret_cast<unsigned long long>(dq_g + M * 16);
    unsigned *turn_g = nullptr;
    if constexpr (DETERMINISTIC) {
        turn_g = gradients_of(p, seq, head).turn_g + row0;
        if (threadIdx.x == 0)
            wait_for_turn(turn_g, turn_of(p, block, row0));
        __syncthreads();
    }
    add_to_dq(dq_g, static_cast<fa_i64>(p.tiles) * FA_M, seq.seq_q - row0, smem_address(smem + DS_AT),
              smem_address(smem));
    if constexpr (DETERMINISTIC) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            add_release(turn_g, 1);
    }
}

/* A pair of neighbouring columns. */
__device__ __forceinline__ void store_pair(fa_element *to_g, float a, float b)
{
    const unsigned pair = pack_elements(a, b);
    if (reinterpret_cast<unsigned long long>(to_g) % 4 == 0) {
        *reinterpret_cast<unsigned *>(to_g) = pair;
    } else {
        reinterpret_cast<unsigned short *>(to_g)[0] = static_cast<unsigned short>(pair);
        reinterpret_cast<unsigned short *>(to_g)[1] = static_cast<unsigned short>(pair >> 16);
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

using pair_fragments = unsigned[QUERIES / 16][BANDS][4];
using score_tile = float[BANDS][QUERIES / 8][4];

/* P^T and dS^T of the scores s. The exponentials stand between the products of dP^T, which begins with minus delta. */
template <bool MASKED>
__device__ __forceinline__ void make_tile_pairs(const fa_params &p, const key_block &block, const head_scores &scores,
                                                const warp_state &w, int tile, const float *lse2_s, smem_addr v_at,
                                                smem_addr do_at, score_tile &s, pair_fragments &p_r,
                                                pair_fragments &ds_r)
{
    constexpr int TILES8 = QUERIES / 8, STEPS = v_row::STEPS;
    const int lane = threadIdx.x % WARP_SIZE;
    float dp[BANDS][TILES8][4];
#pragma unroll
    for (int t = 0; t < TILES8; ++t) {
        const float2 delta = *reinterpret_cast<const float2 *>(lse2_s + M + w.query + t * 8 + lane % 4 * 2);
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
            dp[b][t][0] = dp[b][t][2] = -delta.x, dp[b][t][1] = dp[b][t][3] = -delta.y;
    }
    [[maybe_unused]] float slope = 1.0f; /* of the element before */
    const auto pack_p = [&](int b, int t, int h) {
        p_r[t / 2][b][t % 2 * 2 + h] = pack_elements(s[b][t][2 * h], s[b][t][2 * h + 1]);
    };
    multiply_rows<v_row>(dp, v_at, do_at, [&](int step) {
#pragma unroll
        for (int t = ceil_div(step * TILES8, STEPS); t < ceil_div((step + 1) * TILES8, STEPS); ++t)
            make_weights_of<MASKED, BANDS, 1>(
                p, block, scores, w.key, tile * M, w.query + t * 8, lse2_s,
                [&](int b, int, int i) { return s[b][t][i]; },
                [&](int b, int, int i, float weight, float product, float) {
                    s[b][t][i] = weight;
                    if (HAS_SOFTCAP && i % 2 == 1) {
                        pack_p(b, t, i / 2);
                        s[b][t][i - 1] *= slope;
                    }
                    slope = score_slope(scores, product);
                    if (HAS_SOFTCAP && i % 2 == 1)
                        s[b][t][i] *= slope;
                });
    });
#pragma unroll
    for (int t = 0; t < TILES8; ++t)
#pragma unroll
        for (int b = 0; b < BANDS; ++b)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (!HAS_SOFTCAP)
                    pack_p(b, t, h);
                ds_r[t / 2][b][t % 2 * 2 + h] =
                    pack_elements(s[b][t][2 * h] * dp[b][t][2 * h], s[b][t][2 * h + 1] * dp[b][t][2 * h + 1]);
            }
}

/* None of the ROWS rows from row0 on sees a key of the warp. */
template <int ROWS>
__device__ __forceinline__ bool sees_none(const fa_params &p, const key_block &block, const warp_state &w, int row0)
{
    const key_range seen = keys_seen_by_any(p, block.seq, row0, row0 + ROWS - 1);
    const int first_key = block.key0 + w.key;
    return seen.end <= first_key || (HAS_FIRST_KEY && seen.first >= first_key + BANDS * 16);
}

/* Four products of QUERIES queries; all that the warp adds to dK and dV by itself. */
__device__ __forceinline__ void add_queries(const fa_params &p, const key_block &block, const head_scores &scores,
                                            warp_state &w, unsigned char *smem, unsigned char *stage_s, int tile)
{
    const smem_addr k_at = smem_address(smem), q_at = smem_address(stage_s), do_at = q_at + Q_BYTES;
    const smem_addr v_at = k_at + V_AT + w.key * v_row::ROW_BYTES, queries_do_at = do_at + w.query * v_row::ROW_BYTES;
    const float *lse2_s = reinterpret_cast<const float *>(stage_s + Q_BYTES + DO_BYTES);
    pair_fragments p_r = {}, ds_r = {};
    const key_range seen = keys_seen_by_all(p, block.seq, tile * M, min(tile * M + M, block.seq.seq_q) - 1);
    const bool masked = seen.first > block.key0 || seen.end < block.key0 + N;
    if (HIDES && masked && sees_none<QUERIES>(p, block, w, tile * M + w.query)) {
        store_pairs(smem + DS_AT, ds_r, w);
        if (SHARERS > 1)
            store_pairs(smem + P_AT, p_r, w);
        return;
    }
    score_tile s = {};
    multiply_rows<qk_row>(s, k_at + w.key * qk_row::ROW_BYTES, q_at + w.query * qk_row::ROW_BYTES, [](int) {});
    if (masked)
        make_tile_pairs<true>(p, block, scores, w, tile, lse2_s, v_at, queries_do_at, s, p_r, ds_r);
    else
        make_tile_pairs<false>(p, block, scores, w, tile, lse2_s, v_at, queries_do_at, s, p_r, ds_r);
    w.key = forget(w.key), w.query = forget(w.query);
    store_pairs(smem + DS_AT, ds_r, w);
    if (SHARERS > 1)
        store_pairs(smem + P_AT, p_r, w);
    add_rows<true, v_row, V_STEPS>(w.dv, p_r, 0, do_at, w.v_step, w.query);
    add_rows<true, qk_row, K_STEPS>(w.dk, ds_r, 0, q_at, w.k_step, w.query);
}

/* The five products of a query tile, which is in stage_s. after_rows() comes when no warp uses the stage any more. */
template <class F>
__device__ __forceinline__ void add_tile(const fa_params &p, const key_block &block, warp_state &w, unsigned char *smem,
                                         unsigned char *stage_s, int head, int tile, const F &after_rows)
{
    const head_scores scores = scores_of_head(p, block.seq, head);
    w.key = forget(w.key), w.query = forget(w.query);
    if (FA_CAUSAL)
        tile = forget(tile);
#pragma unroll 1
    for (int i = 0; i < OWNED / QUERIES; ++i) {
        add_queries(p, block, scores, w, smem, stage_s, tile);
        w.query += QUERIES;
    }
    w.query -= OWNED;
    if (SHARERS > 1) {
        bar_sync(1 + w.key / (BANDS * 16), SHARERS * WARP_SIZE); /* the warps with the same keys */
        const smem_addr q_at = smem_address(stage_s), do_at = q_at + Q_BYTES;
        const smem_addr p_at = smem_address(smem) + P_AT + w.key * pair_row::ROW_BYTES, ds_at = p_at + DS_AT - P_AT;
        add_rows<false, v_row, V_STEPS>(w.dv, {}, p_at, do_at, w.v_step, w.query);
        add_rows<false, qk_row, K_STEPS>(w.dk, {}, ds_at, q_at, w.k_step, w.query);
    }
    __syncthreads();
    after_rows();
    add_in_turn(p, block, head, tile, smem);
}

extern "C" __global__ void FA_LAUNCH_BOUNDS(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, smem, 128);
    key_block block;
    if (!find_keys(block, p, [&](unsigned heads, unsigned tiles, unsigned at, unsigned &unit, int &tile) {
            if (!FA_CAUSAL || HAS_VARLEN)
                return;
            const unsigned side = max(1u, 8 * p.sm_count / tiles), first = at / (side * tiles) * side;
            const unsigned i = at - first * tiles, count = min(side, heads - first);
            unit = first + i % count, tile = i / count;
        }))
        return;
    int warp = threadIdx.x / WARP_SIZE;
    if (HIDES && SHARERS > 1)
        warp = forget(warp ^ warp / 4 % 2 * 3); /* each scheduler has a warp with many rows, and one with few */
    const int part = warp % SHARERS, group = p.heads / p.kv_heads;
    warp_state w = {warp / SHARERS * BANDS * 16, part * OWNED, part * K_STEPS, part * V_STEPS, {}, {}};

    int left = (block.end - block.begin) * group, head = block.kv_head * group, tile = block.begin, stage = 0;
    if (left > 0) {
        load_keys(p, block, smem);
        load_queries(p, block, smem, smem + STAGES_AT, head, tile);
    }
    for (; left > 0; --left) {
        unsigned char *stage_s = smem + STAGES_AT + stage * STAGE_BYTES;
        cp_async_wait<0>();
        __syncthreads(); /* the tile has landed, and the one before has been used */
        stage = STAGES - 1 - stage;
        const auto load_next = [&] {
            const bool more = tile + 1 < block.end;
            if (left > 1)
                load_queries(p, block, smem, smem + STAGES_AT + stage * STAGE_BYTES, head + !more,
                             more ? tile + 1 : block.begin);
        };
        if (STAGES > 1)
            load_next();
        add_tile(p, block, w, smem, stage_s, head, tile, [&] {
            if (STAGES == 1)
                load_next();
        });
        if (++tile == block.end)
            tile = block.begin, ++head;
    }
    store_gradients(p, block, w);
}
