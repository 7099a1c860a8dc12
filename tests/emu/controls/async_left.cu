/* A group is never waited for. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 512);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    cp_async_16(s + threadIdx.x * 8, static_cast<const __half *>(p.q) + threadIdx.x * 8, 16); /* HERE */
    cp_async_commit();
    put(p, threadIdx.x, 1);
}
