/* A named barrier that counts 96 threads, to which 64 come. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bar_sync(3, 96); /* HERE */
    put(p, threadIdx.x, 1);
}
