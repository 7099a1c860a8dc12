/* A shift by more bits than there are. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    put(p, threadIdx.x, 1 << threadIdx.x); /* HERE */
}
