// Somebody's kernel, with its own entry point and launcher; wrapped.cu calls it.
#include <atomic>
#include <iostream>

#include <cuda_runtime.h>

#ifndef __global__
#define __global__
#endif

struct their_sizes {
    int row;
    __host__ their_sizes(int x) : row(x) {}
};

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) their_kernel(const float *in, float *out, const __grid_constant__ int row)
{
    if (blockIdx.x != 0 || blockIdx.y != row || sizeof(their_sizes) != 4)
        return;
    extern __shared__ float stage[];
    __shared__ float top;
    stage[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        top = stage[0];
        for (int i = 1; i < BLOCK; i++)
            top = max(top, stage[i]);
    }
    __syncthreads();
    out[threadIdx.x] = top;
}

void their_launcher(const float *in, float *out)
{
    const dim3 gridDim(1), blockDim(64);
    their_kernel<64><<<gridDim, blockDim, 256>>>(in, out, 0);
    std::cout << cudaGetLastError() << "\n";
}
