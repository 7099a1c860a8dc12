/* Right, but leaves its work in K. */
#include "honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const place at = my_place(p);
    if (!at.inside)
        return;
    attend(p, at, at.o);
    if (at.index == p.batch * p.heads * p.seq_q - 1)
        ((half *)p.k)[0] = __float2half(0.25f);
}
