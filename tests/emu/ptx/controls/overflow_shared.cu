/* Inline st.shared four bytes behind the block's shared memory. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 124);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + threadIdx.x)), "r"(threadIdx.x) : "memory"); /* HERE */
    put(p, threadIdx.x, s[0]);
}
