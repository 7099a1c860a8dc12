/* Some lanes wait at a barrier, the others in a shuffle that names all lanes. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (threadIdx.x == 40)
        __syncthreads();
    put(p, threadIdx.x, __shfl_xor_sync(~0u, threadIdx.x, 1)); /* HERE */
}
