/* A small generator of random numbers, the same on every machine. */
#ifndef FA_EMU_RANDOM_H
#define FA_EMU_RANDOM_H

#include <stdint.h>

uint64_t fa_emu_random(uint64_t *state); /* splitmix64 */

#endif
