/* An instruction the emulator does not have, in the second line of its statement. */
#include "../ptx.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

__device__ void nobody_calls_this() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    unsigned v = threadIdx.x;
    asm volatile("add.u32 %0, %0, 1;\n\t"
                 "pmevent 7;" /* HERE */
                 : "+r"(v));
    put(p, threadIdx.x, v);
}
