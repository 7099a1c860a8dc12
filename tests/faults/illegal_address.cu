/* A fault on purpose: writes to address 8. */
#include "../cheats/honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (!at.inside)
        return;
    attend(p, at, at.o);
    *(volatile int *)8 = 1;
}
