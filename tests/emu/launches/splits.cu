// Split-KV and combine, in FP32: the parts and their sums lie in buffers between; o and the log-sum-exp are [b, s, h].
// FA_SPACE: splits=2,3
// FA_BUFFER: float Q = q.bshd
// FA_BUFFER: float K = k.bsHd
// FA_BUFFER: float V = v.bsHd
// FA_BUFFER: float O = o.bshd
// FA_BUFFER: float L = lse.bsh
// FA_BUFFER: float parts[FA_SPLITS * batch * seq_q * heads * dim]
// FA_BUFFER: float2 sums[FA_SPLITS][batch * seq_q * heads] = float2{-INFINITY, 0.0f}
// FA_BUFFER: int lengths[batch] = seq_kv - i % 1
// FA_LAUNCH: part<dim><<<dim3(heads, seq_q, batch * FA_SPLITS), 32>>>(Q, K, V, parts, sums, lengths, scale, causal)
// FA_LAUNCH: combine<<<dim3(heads, seq_q, batch), dim>>>(parts, sums, O, L, FA_SPLITS)
template <int DIM>
__global__ void part(const float *q, const float *k, const float *v, float *parts, float2 *sums, const int *lengths,
                     float scale, bool causal)
{
    const int splits = FA_SPLITS, batch = blockIdx.z % (gridDim.z / splits), split = blockIdx.z / (gridDim.z / splits);
    const int keys = lengths[batch], each = (keys + splits - 1) / splits;
    const int last = min(keys, (split + 1) * each), seen = causal ? int(blockIdx.y) + keys - int(gridDim.y) + 1 : keys;
    const int row = (batch * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int at = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    float top = -INFINITY, sum = 0.0f, o[DIM] = {};
    if (threadIdx.x != 0)
        return;
    for (int j = split * each; j < min(last, seen); j++) {
        float s = 0.0f;
        const float *kj = k + ((size_t)(batch * keys + j) * gridDim.x + blockIdx.x) * DIM;
        for (int d = 0; d < DIM; d++)
            s += q[(size_t)row * DIM + d] * kj[d];
        const float next = fmaxf(top, s *= scale), old = expf(top - next), now = expf(s - next);
        for (int d = 0; d < DIM; d++)
            o[d] = o[d] * old + now * v[kj - k + d];
        sum = sum * old + now;
        top = next;
    }
    for (int d = 0; d < DIM; d++)
        parts[(size_t)at * DIM + d] = o[d];
    if (sum > 0.0f) // otherwise the value that the line gave
        sums[at] = {top, sum};
}

__global__ void combine(const float *parts, const float2 *sums, float *o, float *lse, int splits)
{
    const int row = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int rows = gridDim.x * gridDim.y * gridDim.z, dim = blockDim.x, d = threadIdx.x;
    float top = -INFINITY, sum = 0.0f, all = 0.0f;
    for (int s = 0; s < splits; s++)
        top = fmaxf(top, sums[s * rows + row].x);
    for (int s = 0; s < splits && top > -INFINITY; s++) {
        const float weight = expf(sums[s * rows + row].x - top);
        sum += weight * sums[s * rows + row].y;
        all += weight * parts[(size_t)(s * rows + row) * dim + d];
    }
    o[(size_t)row * dim + d] = sum > 0.0f ? all / sum : 0.0f;
    if (d == 0)
        lse[row] = sum > 0.0f ? top + logf(sum) : -INFINITY;
}
