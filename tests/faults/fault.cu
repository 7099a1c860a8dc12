/* A fault on purpose, by --define FAULT=...: address 8, an odd address for a word, a trap, a loop without an end. */
#include "../cheats/row.cuh"
enum fault { ILLEGAL_ADDRESS, MISALIGNED, TRAP, HANG };
static __device__ void cheat(const fa_params &p, const place &at)
{
    attend(p, at, at.o);
    if (FAULT == ILLEGAL_ADDRESS)
        *(volatile int *)8 = 1;
    if (FAULT == MISALIGNED)
        *(volatile int *)((char *)at.o + 1) = 1;
    if (FAULT == TRAP)
        asm volatile("trap;");
    while (FAULT == HANG)
        *(volatile unsigned short *)at.o = 0;
}
