/* A store through a null pointer. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (threadIdx.x == 7)
        static_cast<volatile int *>(p.workspace)[1] = 1; /* HERE */
    put(p, threadIdx.x, 1);
}
