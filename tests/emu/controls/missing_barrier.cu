/* The neighbour's value is read without a __syncthreads. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 128, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    const int t = threadIdx.x;
    s[t] = t;
    EXPECT(s[t > 0 ? t - 1 : 0] == (t > 0 ? t - 1 : 0)); /* HERE */
}
