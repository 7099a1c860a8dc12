/* Right, and one element more. */
#include "row.cuh"
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    if (at.index == p.batch * p.heads * p.seq_q - 1)
        at.o[FA_DIM] = __float2half(0.0f);
}
