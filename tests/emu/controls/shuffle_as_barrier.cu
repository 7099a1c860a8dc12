/* A shuffle brings the lanes together but orders no memory. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 128);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    const int lane = threadIdx.x;
    s[lane] = lane;
    __shfl_sync(~0u, lane, 0);
    EXPECT(s[lane ^ 1] == (lane ^ 1)); /* HERE */
}
