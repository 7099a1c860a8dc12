/* Half of a warp waits at one __syncthreads, half at another. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (threadIdx.x % 32 < 16)
        __syncthreads(); /* HERE */
    else
        __syncthreads();
    put(p, threadIdx.x, 1);
}
