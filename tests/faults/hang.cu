/* A fault on purpose: never ends. */
#include "../cheats/honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (!at.inside)
        return;
    attend(p, at, at.o);
    for (;;)
        *(volatile unsigned short *)at.o = 0;
}
