/* A cp.async is read before it is waited for. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    const int t = threadIdx.x;
    cp_async_16(s + t * 8, static_cast<const __half *>(p.q) + t * 8, 16);
    cp_async_commit();
    EXPECT(half_bits(s[t * 8]) == half_bits(static_cast<const __half *>(p.q)[t * 8])); /* HERE */
    cp_async_wait<0>();
}
