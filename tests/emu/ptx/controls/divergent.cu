/* Half of a warp at one inline barrier, half at another. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (threadIdx.x % 32 < 16)
        asm volatile("bar.sync 0;" ::: "memory"); /* HERE */
    else
        asm volatile("bar.sync 0;" ::: "memory");
    put(p, threadIdx.x, 1);
}
