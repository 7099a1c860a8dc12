/* A fault on purpose: never ends. */
#include "../cheats/row.cuh"
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    for (;;)
        *(volatile unsigned short *)at.o = 0;
}
