/* One buffer, refilled while slower threads still read it: the second barrier is missing. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 128, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    const int t = threadIdx.x;
    for (int step = 0; step < 4; step++) {
        s[t] = step; /* HERE */
        __syncthreads();
        EXPECT(s[(t + 64) % 128] == step);
    }
}
