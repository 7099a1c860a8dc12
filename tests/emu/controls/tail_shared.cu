/* One word past the end of dynamic shared memory. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 128);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    s[threadIdx.x + 1] = threadIdx.x; /* HERE */
    __syncwarp();
    put(p, threadIdx.x, s[threadIdx.x]);
}
