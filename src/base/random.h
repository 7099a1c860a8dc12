/* SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). */
#pragma once

#include <stdint.h>

#define FA_RANDOM_STEP 0x9E3779B97F4A7C15u

static inline uint64_t fa_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline uint64_t fa_random_next(uint64_t *state) { return fa_random_mix(*state += FA_RANDOM_STEP); }

/* The number of one of the bits of `mask`, which is not 0. */
uint32_t fa_random_bit(uint64_t *state, uint32_t mask);

/* Numbers from a counter: draw i of a stream depends on the stream and on i alone. */
uint64_t fa_draw_stream(uint64_t seed, int number);
uint64_t fa_draw_bits(uint64_t stream, uint64_t counter);
/* N(0,1) by the low 16 bits, which pick one of 65536 quantiles: from -4.3 to 4.3. */
float fa_draw_normal(uint64_t bits);
