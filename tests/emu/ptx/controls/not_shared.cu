/* The low half of a generic pointer taken for a shared address. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    unsigned v;
    const unsigned at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(p.q) | 0x40000000u);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at & ~3u)); /* HERE */
    put(p, threadIdx.x, v);
}
