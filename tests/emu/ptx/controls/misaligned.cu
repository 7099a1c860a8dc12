/* A 16-byte inline load from an address that is a multiple of 8. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    unsigned a, b, c, d;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4+8];" /* HERE */
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(shared_of(s + 4 * threadIdx.x)));
    put(p, threadIdx.x, a + b + c + d);
}
