/* An aligned operation that only half of the warp executes. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    unsigned r[2];
    if (threadIdx.x < 16) {
        ldmatrix_x2(r, s + threadIdx.x * 8); /* HERE */
        put(p, threadIdx.x, r[0]);
    }
}
