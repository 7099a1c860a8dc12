/* A fault on purpose: an odd address for a word. */
#include "../cheats/honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (!at.inside)
        return;
    attend(p, at, at.o);
    *(volatile int *)((char *)at.o + 1) = 1;
}
