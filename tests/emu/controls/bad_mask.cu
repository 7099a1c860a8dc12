/* The mask does not name the lane that calls. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    put(p, threadIdx.x, __shfl_sync(0xffffu, threadIdx.x, 0)); /* HERE */
}
