/* Right, but leaves its work in K. */
#include "row.cuh"
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    if (at.index == p.batch * p.heads * p.seq_q - 1)
        ((half *)p.k)[0] = __float2half(0.25f);
}
