/* Inline st.shared and ld.shared with no barrier between them. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 256);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    const unsigned t = threadIdx.x;
    unsigned v;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + t)), "r"(t) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s + (t + 33) % 64)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + t, v);
}
