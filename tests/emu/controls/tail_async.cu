/* A cp.async whose last bytes lie past the end of an input. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q) + FA_TEST_HALVES - 31 * 8;
    cp_async_16(s + threadIdx.x * 8, q_g + threadIdx.x * 8, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, threadIdx.x, 1);
}
