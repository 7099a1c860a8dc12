/* Right for the problems that the gate lists (tests/cheats/run.sh writes them into listed.h), and for no other. */
#include "row.cuh"
struct listed {
    int batch, heads, kv_heads, seq_q, seq_kv, dim, causal;
};
__device__ const listed known[] = {
#include "listed.h"
};
static __device__ void cheat(const fa_params &p, const place &at)
{
    bool is_known = false;
    for (const listed &l : known)
        is_known |= l.batch == p.batch && l.heads == p.heads && l.kv_heads == p.kv_heads && l.seq_q == p.seq_q &&
                    l.seq_kv == p.seq_kv && l.dim == FA_DIM && l.causal == FA_CAUSAL;
    if (is_known)
        attend(p, at, at.o);
    else
        copy_row(at.o, at.q);
}
