/* A 16-byte copy from an address that is no multiple of 16. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    cp_async_16(s + threadIdx.x * 8, static_cast<const __half *>(p.q) + threadIdx.x * 8 + 1, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, threadIdx.x, 1);
}
