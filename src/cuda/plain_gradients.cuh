/* The gradients of the plain reference, in FP64: plain.cu includes it where FA_FEATURES asks for them. */
#pragma once

static constexpr int KEY_COLUMNS = (FA_DIM + LANES - 1) / LANES;

/* The workspace: the forward; D, the sums of the sizes and of the squares of its terms; the gradients; and of each row
 * what src/check/gradients.c calls size and square: of dQ, dK, dV. */
struct places {
    fa_i64 q_rows, k_rows;
    const double *o, *lse;
    double *delta, *delta_size, *delta_square, *dq, *dk, *dv, *dsinks, *of_dq, *of_dk, *of_dv;
};

__device__ static places places_of(const fa_params &p)
{
    const bool unlike = p.start_q != nullptr;
    const fa_i64 batch = unlike ? 1 : p.batch;
    places w;
    w.q_rows = batch * p.heads * (unlike ? p.total_q : p.seq_q);
    w.k_rows = batch * p.kv_heads * (unlike ? p.total_kv : p.seq_kv);
    w.o = static_cast<const double *>(p.workspace);
    w.lse = w.o + w.q_rows * FA_DIM_V;
    w.delta = static_cast<double *>(p.workspace) + w.q_rows * (FA_DIM_V + 1);
    w.delta_size = w.delta + w.q_rows;
    w.delta_square = w.delta_size + w.q_rows;
    w.dq = w.delta_square + w.q_rows;
    w.dk = w.dq + w.q_rows * FA_DIM;
    w.dv = w.dk + w.k_rows * FA_DIM;
    w.dsinks = w.dv + w.k_rows * FA_DIM_V;
    w.of_dq = w.dsinks + (p.sinks != nullptr ? p.heads : 0);
    w.of_dk = w.of_dq + 2 * w.q_rows;
    w.of_dv = w.of_dk + 2 * w.k_rows;
    return w;
}

__device__ static const fa_element *dout_of(const fa_params &p, const query &at)
{
    const fa_i64 first = p.start_q != nullptr ? p.start_q[at.batch] : 0;
    return static_cast<const fa_element *>(p.dout) + (p.start_q != nullptr ? 0 : at.batch * p.grad_stride[0][0]) +
           at.head * p.grad_stride[0][1] + (first + at.row) * p.grad_stride[0][2];
}

/* D of every query row. */
extern "C" __global__ void fa_before(const __grid_constant__ fa_params p)
{
    const places w = places_of(p);
    const int lane = threadIdx.x % LANES;
    const fa_i64 stored = static_cast<fa_i64>(blockIdx.x) * ROWS + threadIdx.x / LANES;
    query at;
    if (stored >= w.q_rows || !find(p, stored, at))
        return;
    const fa_element *dout_g = dout_of(p, at);
    double sum = 0.0, size = 0.0, square = 0.0;
    for (int d = lane; d < FA_DIM_V; d += LANES) {
        const double term = static_cast<double>(static_cast<float>(dout_g[d])) * w.o[stored * FA_DIM_V + d];
        sum += term;
        size += fabs(term);
        square += term * term;
    }
    w.delta[stored] = sum_of_warp(sum);
    w.delta_size[stored] = sum_of_warp(size);
    w.delta_square[stored] = sum_of_warp(square);
}

/* P, dS and what rounding makes of it. */
struct pair {
    double p, ds, p_size, size, square;
};

__device__ static pair pair_of(const fa_params &p, const places &w, const query &at, fa_i64 stored, fa_i64 key,
                               double qk, double dp)
{
    double slope;
    const double score = changed(p, at, key, qk * static_cast<double>(p.scale), &slope);
    pair of = {exp(score - w.lse[stored])};
    of.ds = of.p * (dp - w.delta[stored]) * slope;
    of.p_size = of.p * (1.0 + fabs(w.lse[stored]) / 16);
    of.size = of.p_size * (fabs(dp) + w.delta_size[stored]);
    of.square = of.ds * of.ds;
    return of;
}

template <int COUNT>
__device__ static void add_row(double (&sums)[COUNT], double weight, const fa_element *row_g, int columns, int lane)
{
    for (int c = 0; c < COUNT; c++)
        if (c * LANES + lane < columns)
            sums[c] += weight * static_cast<double>(static_cast<float>(row_g[c * LANES + lane]));
}

template <int COUNT>
__device__ static void store_row(const double (&sums)[COUNT], double factor, double *to_g, int columns, int lane)
{
    for (int c = 0; c < COUNT; c++)
        if (c * LANES + lane < columns)
            to_g[c * LANES + lane] = sums[c] * factor;
}

/* The smallest number of FP16 whose rounding is a part of it, squared. */
static constexpr double LEAST_SQUARE = FA_BF16 ? 0.0 : 0x1p-28;

__device__ static void row_of_dq(const fa_params &p, const places &w, fa_i64 stored, float *q_s, float *dout_s,
                                 double *ds_s)
{
    const int lane = threadIdx.x % LANES;
    query at;
    if (!find(p, stored, at))
        return;
    const fa_element *dout_g = dout_of(p, at);
    for (int d = lane; d < FA_DIM; d += LANES)
        q_s[d] = static_cast<float>(at.q[d]);
    for (int d = lane; d < FA_DIM_V; d += LANES)
        dout_s[d] = static_cast<float>(dout_g[d]);
    __syncwarp();
    fa_i64 first, end;
    range_of(p, at, first, end);
    double dq[KEY_COLUMNS] = {}, size = 0.0, square = 0.0, weight = 0.0;
    for (fa_i64 begin = first; begin < end; begin += LANES) {
        const fa_i64 key = begin + lane;
        pair of = {};
        if (key < end && is_seen(p, at, key)) {
            const fa_element *k_g = at.k + row_of(p, at, key, p.k_stride_b, p.k_stride_s);
            const fa_element *v_g = at.v + row_of(p, at, key, p.v_stride_b, p.v_stride_s);
            of = pair_of(p, w, at, stored, key, product_of(q_s, k_g, FA_DIM), product_of(dout_s, v_g, FA_DIM_V));
            square += of.square + LEAST_SQUARE;
        }
        size += of.size;
        weight += of.p;
        ds_s[lane] = of.ds;
        __syncwarp();
        for (int j = 0; j < LANES && begin + j < end; j++)
            add_row(dq, ds_s[j], at.k + row_of(p, at, begin + j, p.k_stride_b, p.k_stride_s), FA_DIM, lane);
        __syncwarp();
    }
    weight = sum_of_warp(weight);
    w.of_dq[2 * stored] = sum_of_warp(size);
    w.of_dq[2 * stored + 1] = sum_of_warp(square) + weight * weight * w.delta_square[stored];
    store_row(dq, static_cast<double>(p.scale), w.dq + stored * FA_DIM, FA_DIM, lane);
}

/* The key at a stored row: its sequence, and its place there. False: none. */
__device__ static bool find_key(const fa_params &p, fa_i64 stored, int &batch, int &kv_head, fa_i64 &key)
{
    const bool unlike = p.start_kv != nullptr;
    const fa_i64 rows = unlike ? p.total_kv : p.seq_kv;
    kv_head = static_cast<int>(stored / rows % p.kv_heads);
    key = stored % rows;
    batch = unlike ? 0 : static_cast<int>(stored / rows / p.kv_heads);
    if (!unlike)
        return true;
    while (batch + 1 < p.batch && p.start_kv[batch + 1] <= key)
        batch++;
    key -= p.start_kv[batch];
    return key < p.used_kv[batch];
}

__device__ static void row_of_dk_and_dv(const fa_params &p, const places &w, fa_i64 key_row, float *k_s, float *v_s,
                                        double *p_s, double *ds_s)
{
    const int lane = threadIdx.x % LANES;
    int batch, kv_head;
    fa_i64 key;
    if (!find_key(p, key_row, batch, kv_head, key))
        return;
    const bool unlike = p.start_q != nullptr;
    const int group = p.heads / p.kv_heads;
    const fa_i64 seq_q = unlike ? p.used_q[batch] : p.seq_q;
    double dk[KEY_COLUMNS] = {}, dv[COLUMNS] = {}, of_dk[2] = {}, of_dv[2] = {};
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        const fa_i64 first =
            unlike ? head * p.total_q + p.start_q[batch] : (static_cast<fa_i64>(batch) * p.heads + head) * p.seq_q;
        query at;
        for (fa_i64 row0 = 0; row0 < seq_q; row0 += LANES) {
            const bool there = row0 + lane < seq_q;
            find(p, first + (there ? row0 + lane : row0), at);
            if (head == kv_head * group && row0 == 0) {
                for (int d = lane; d < FA_DIM; d += LANES)
                    k_s[d] = static_cast<float>(at.k[key * p.k_stride_s + d]);
                for (int d = lane; d < FA_DIM_V; d += LANES)
                    v_s[d] = static_cast<float>(at.v[key * p.v_stride_s + d]);
                __syncwarp();
            }
            fa_i64 from, end;
            range_of(p, at, from, end);
            pair of = {};
            if (there && key >= from && key < end) {
                const fa_i64 stored = first + row0 + lane;
                of = pair_of(p, w, at, stored, key, product_of(k_s, at.q, FA_DIM),
                             product_of(v_s, dout_of(p, at), FA_DIM_V));
                of_dk[1] += of.square + of.p * of.p * w.delta_square[stored] + LEAST_SQUARE;
                of_dv[1] += of.p * of.p + LEAST_SQUARE;
            }
            of_dk[0] += of.size;
            of_dv[0] += of.p_size;
            p_s[lane] = of.p;
            ds_s[lane] = of.ds;
            __syncwarp();
            find(p, first + row0, at); /* the first row of the 32: the others follow it */
            const fa_element *dout_g = dout_of(p, at);
            for (int j = 0; j < LANES && row0 + j < seq_q; j++) {
                add_row(dv, p_s[j], dout_g + j * p.grad_stride[0][2], FA_DIM_V, lane);
                add_row(dk, ds_s[j], at.q + j * p.q_stride_s, FA_DIM, lane);
            }
            __syncwarp();
        }
    }
    for (int i = 0; i < 2; i++) {
        w.of_dk[2 * key_row + i] = sum_of_warp(of_dk[i]);
        w.of_dv[2 * key_row + i] = sum_of_warp(of_dv[i]);
    }
    store_row(dk, static_cast<double>(p.scale), w.dk + key_row * FA_DIM, FA_DIM, lane);
    store_row(dv, 1.0, w.dv + key_row * FA_DIM_V, FA_DIM_V, lane);
}

__device__ static void row_of_dsinks(const fa_params &p, const places &w, int head)
{
    const int lane = threadIdx.x % LANES;
    double sum = 0.0;
    for (fa_i64 stored = lane; stored < w.q_rows; stored += LANES) {
        query at;
        if (find(p, stored, at) && at.head == head)
            sum -= exp(static_cast<double>(p.sinks[head]) - w.lse[stored]) * w.delta[stored];
    }
    sum = sum_of_warp(sum);
    if (lane == 0)
        w.dsinks[head] = sum;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float a_s[ROWS][FA_DIM], b_s[ROWS][FA_DIM_V];
    __shared__ double p_s[ROWS][LANES], ds_s[ROWS][LANES];
    const places w = places_of(p);
    const int warp = threadIdx.x / LANES;
    const fa_i64 row = static_cast<fa_i64>(blockIdx.x) * ROWS + warp, key_row = row - w.q_rows;
    if (key_row < 0)
        row_of_dq(p, w, row, a_s[warp], b_s[warp], ds_s[warp]);
    else if (key_row < w.k_rows)
        row_of_dk_and_dv(p, w, key_row, a_s[warp], b_s[warp], p_s[warp], ds_s[warp]);
    else if (p.sinks != nullptr && key_row - w.k_rows < p.heads)
        row_of_dsinks(p, w, static_cast<int>(key_row - w.k_rows));
}
