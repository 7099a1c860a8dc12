/* A fault on purpose: writes to address 8. */
#include "../cheats/row.cuh"
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    *(volatile int *)8 = 1;
}
