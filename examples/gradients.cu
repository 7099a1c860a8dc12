// The gradients of attention by two kernels of any name. One sums dO O of each row, one has a block for each key. Try:
//     ./fa_bench --op backward --source examples/gradients.cu --seq 64 --dim 32
// FA_BUFFER: float Q = q.bhsd
// FA_BUFFER: float K = k.bHsd
// FA_BUFFER: float V = v.bHsd
// FA_BUFFER: float O = o.bhsd
// FA_BUFFER: float dO = dout.bhsd
// FA_BUFFER: float D[batch * heads][seq_q]
// FA_BUFFER: float dQ = dq.bhsd = 0
// FA_BUFFER: float dK = dk.bHsd
// FA_BUFFER: float dV = dv.bHsd
// FA_LAUNCH: rows_of_d<<<fa_ceil(batch * heads * seq_q, 64), 64>>>(O, dO, D, batch * heads * seq_q)
// FA_LAUNCH: gradients<<<dim3(seq_kv, heads, batch), 32>>>(Q, K, V, dO, lse, D, dQ, dK, dV, seq_q, scale, causal)
#define FA_NONDETERMINISTIC 1 /* atomicAdd into dQ */

__global__ void rows_of_d(const float *o, const float *d_o, float *d, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < FA_DIM && row < rows; i++)
        sum += o[row * FA_DIM + i] * d_o[row * FA_DIM + i];
    if (row < rows)
        d[row] = sum;
}

__global__ void gradients(const float *q, const float *k, const float *v, const float *d_o, const float *lse,
                          const float *d, float *dq, float *dk, float *dv, int rows, float scale, bool causal)
{
    const int keys = gridDim.x, key = blockIdx.x, head = blockIdx.z * gridDim.y + blockIdx.y;
    const int at_key = (head * keys + key) * FA_DIM;
    float dk_sum[FA_DIM] = {}, dv_sum[FA_DIM] = {};
    for (int row = threadIdx.x; row < rows; row += 32) {
        const int at_row = (head * rows + row) * FA_DIM;
        float s = 0.0f, dp = 0.0f;
        for (int i = 0; i < FA_DIM; i++) {
            s += q[at_row + i] * k[at_key + i];
            dp += d_o[at_row + i] * v[at_key + i];
        }
        const bool seen = !causal || key <= row + keys - rows;
        const float p = seen ? expf(s * scale - lse[head * rows + row]) : 0.0f;
        const float ds = p * (dp - d[head * rows + row]) * scale;
        for (int i = 0; i < FA_DIM; i++) {
            dv_sum[i] += p * d_o[at_row + i];
            dk_sum[i] += ds * q[at_row + i];
            atomicAdd(dq + at_row + i, ds * k[at_key + i]);
        }
    }
    for (int i = 0; i < FA_DIM; i++) {
        for (int lanes = 16; lanes > 0; lanes /= 2) {
            dk_sum[i] += __shfl_xor_sync(0xffffffff, dk_sum[i], lanes);
            dv_sum[i] += __shfl_xor_sync(0xffffffff, dv_sum[i], lanes);
        }
        if (threadIdx.x == 0) {
            dk[at_key + i] = dk_sum[i];
            dv[at_key + i] = dv_sum[i];
        }
    }
}
