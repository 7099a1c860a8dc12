/* The kernel of most cheats: each query row is one call of cheat(), which the file that includes this defines. */
#include "honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
static __device__ void cheat(const fa_params &p, const place &at);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (at.inside)
        cheat(p, at);
}
