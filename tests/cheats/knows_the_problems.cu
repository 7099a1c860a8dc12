/* Right for the problems that the gate lists (tests/cheats/run.sh writes them into listed.h), and for no other. */
#include "honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
struct listed {
    int batch, heads, kv_heads, seq_q, seq_kv, dim, causal;
};
__device__ const listed known[] = {
#include "listed.h"
};
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool is_known = false;
    for (const listed &l : known)
        is_known |= l.batch == p.batch && l.heads == p.heads && l.kv_heads == p.kv_heads && l.seq_q == p.seq_q &&
                    l.seq_kv == p.seq_kv && l.dim == FA_DIM && l.causal == FA_CAUSAL;
    const place at = my_place(p);
    if (at.inside && is_known)
        attend(p, at, at.o);
    else if (at.inside)
        copy_row(at.o, at.q);
}
