// Q, K and V in one tensor [b, s, 3, h, d]; the kernel takes its strides as arguments, those of heads it does not have
// are 0. What it launches with is a structure. It adds up in the output, which the line sets to 0.
// FA_BUFFER: fa_element QKV = qkv.bs3Hd
// FA_BUFFER: fa_element O = o.bhsd = 0
// FA_LAUNCH: attend<fa_element><<<dim3(batch, heads), dim3(4, 8)>>>( \
//     {QKV, O, seq, dim, 3 * heads * dim, dim, scale, causal})
#include "fa_params.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
struct arguments {
    const T *qkv;
    T *o;
    int rows, dim, stride_row, stride_head;
    float scale;
    bool causal;
};

template <class T>
__global__ void __launch_bounds__(32) attend(const arguments<T> a)
{
    const int heads = gridDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    const T *q = a.qkv + (size_t)blockIdx.x * a.rows * a.stride_row + blockIdx.y * a.stride_head;
    const T *k = q + heads * a.stride_head, *v = k + heads * a.stride_head;
    T *o = a.o + (size_t)(blockIdx.x * heads + blockIdx.y) * a.rows * a.dim;
    for (int i = thread; i < a.rows; i += blockDim.x * blockDim.y) {
        const int keys = a.causal ? i + 1 : a.rows;
        float top = -INFINITY, sum = 0.0f;
        for (int pass = 0; pass < 2; pass++)
            for (int j = 0; j < keys; j++) {
                float s = 0.0f;
                for (int d = 0; d < a.dim; d++)
                    s += (float)q[(size_t)i * a.stride_row + d] * (float)k[(size_t)j * a.stride_row + d];
                top = pass == 0 ? fmaxf(top, s * a.scale) : top;
                sum += pass == 1 ? expf(s * a.scale - top) : 0.0f;
            }
        for (int d = 0; d < a.dim; d++) {
            float all = 0.0f;
            for (int j = 0; j < keys; j++) {
                float s = 0.0f;
                for (int e = 0; e < a.dim; e++)
                    s += (float)q[(size_t)i * a.stride_row + e] * (float)k[(size_t)j * a.stride_row + e];
                all += expf(s * a.scale - top) / sum * (float)v[(size_t)j * a.stride_row + d];
            }
            o[i * a.dim + d] = (T)((float)o[i * a.dim + d] + all);
        }
    }
}
