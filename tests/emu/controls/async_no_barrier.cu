/* Each thread waits for its own copies and then reads another's: the __syncthreads after the wait is missing. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q);
    const int t = threadIdx.x, other = t ^ 1;
    cp_async_16(s + t * 8, q_g + t * 8, 16);
    cp_async_commit();
    cp_async_wait<0>();
    EXPECT(half_bits(s[other * 8]) == half_bits(q_g[other * 8])); /* HERE */
}
