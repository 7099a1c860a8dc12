/* A fault on purpose: an odd address for a word. */
#include "../cheats/row.cuh"
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    *(volatile int *)((char *)at.o + 1) = 1;
}
