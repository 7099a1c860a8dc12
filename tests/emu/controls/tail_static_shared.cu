/* One word past the end of a __shared__ array. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ int first_s[32];
    __shared__ int second_s[32];
    second_s[threadIdx.x] = 0;
    first_s[threadIdx.x + 1] = threadIdx.x; /* HERE */
    __syncwarp();
    put(p, threadIdx.x, first_s[threadIdx.x] + second_s[threadIdx.x]);
}
