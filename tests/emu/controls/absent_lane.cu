/* A shuffle reads a lane that takes no part in it. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (threadIdx.x < 16)
        put(p, threadIdx.x, __shfl_xor_sync(0xffffu, threadIdx.x, 16)); /* HERE */
}
