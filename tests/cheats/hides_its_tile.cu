/* Runs a tile of 32 rows whatever --m says. */
#undef FA_M
#define FA_M 32
#include "honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (at.inside)
        attend(p, at, at.o);
}
