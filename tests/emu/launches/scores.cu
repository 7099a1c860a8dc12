// Three kernels one after the other with the score matrix between, on real three-dimensional grids; V comes transposed.
// FA_SPACE: m=8,16
// FA_BUFFER: float scores[batch][heads][seq_q * seq_kv]
// FA_BUFFER: half Vt = v.bhds
// FA_LAUNCH: products<<<dim3(fa_ceil(seq_kv, 16), fa_ceil(seq_q, FA_M), heads * batch), dim3(16, FA_M), \
//     4 * dim * FA_M>>>(q, k, scores, seq_q, seq_kv, dim, heads / kv_heads, scale, causal)
// FA_LAUNCH: softmax_rows<<<dim3(seq_q, heads, batch), 32, (seq_kv + 1) * sizeof(float)>>>(scores, seq_kv)
// FA_LAUNCH: weigh<<<dim3(fa_ceil(dim, 32), seq_q, heads * batch), 32>>>(scores, Vt, o, seq_kv, heads / kv_heads);
#include <cuda_fp16.h>

__global__ void products(const half *q, const half *k, float *s, int rows, int keys, int dim, int group, float scale,
                         bool causal)
{
    extern __shared__ float q_s[];
    const int row = blockIdx.y * blockDim.y + threadIdx.y, key = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t head = blockIdx.z;
    for (int d = threadIdx.x; d < dim; d += blockDim.x)
        q_s[threadIdx.y * dim + d] = row < rows ? __half2float(q[(head * rows + row) * dim + d]) : 0.0f;
    __syncthreads();
    if (row >= rows || key >= keys)
        return;
    float sum = 0.0f;
    for (int d = 0; d < dim; d++)
        sum += q_s[threadIdx.y * dim + d] * __half2float(k[(head / group * keys + key) * dim + d]);
    s[(head * rows + row) * keys + key] = causal && key > row + keys - rows ? -INFINITY : sum * scale;
}

__global__ void __launch_bounds__(32) softmax_rows(float *scores, int keys)
{
    extern __shared__ float row_s[]; // and the sum behind it
    float *row = scores + ((size_t)(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * keys;
    for (int j = threadIdx.x; j < keys; j += 32)
        row_s[j] = row[j];
    __syncthreads();
    if (threadIdx.x == 0) {
        float top = -INFINITY, sum = 0.0f;
        for (int j = 0; j < keys; j++)
            top = fmaxf(top, row_s[j]);
        for (int j = 0; j < keys; j++)
            sum += row_s[j] = top == -INFINITY ? 0.0f : expf(row_s[j] - top);
        row_s[keys] = sum > 0.0f ? sum : 1.0f;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < keys; j += 32)
        row[j] = row_s[j] / row_s[keys];
}

__global__ void weigh(const float *scores, const half *v, half *o, int keys, int group)
{
    const int d = blockIdx.x * 32 + threadIdx.x;
    const size_t head = blockIdx.z, row = head * gridDim.y + blockIdx.y;
    float sum = 0.0f;
    for (int j = 0; j < keys && d < FA_DIM; j++)
        sum += scores[row * keys + j] * __half2float(v[(head / group * FA_DIM + d) * keys + j]);
    if (d < FA_DIM)
        o[row * FA_DIM + d] = __float2half(sum);
}
