/* A plain inline load of what other threads change by red. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 256);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    unsigned v;
    s[threadIdx.x] = 0;
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(shared_of(s)) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + threadIdx.x, v);
}
