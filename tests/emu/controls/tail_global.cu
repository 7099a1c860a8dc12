/* One element past the end of an input. */
#include "control.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const __half *q_g = static_cast<const __half *>(p.q);
    put(p, threadIdx.x, half_bits(q_g[FA_TEST_HALVES - 31 + threadIdx.x])); /* HERE */
}
