#include "base/random.h"

#include <math.h>
#include <pthread.h>

/* The 65536 quantiles (k + 1/2) / 65536 of N(0,1): 16 random bits pick one. Ends at +-4.3, as 10^5 draws would. */
static float normal_quantiles[65536];
static pthread_once_t normal_once = PTHREAD_ONCE_INIT;

static void make_normal_quantiles(void)
{
    double x = 0.0;
    for (int k = 32768; k < 65536; k++) {
        const double upper_tail = 1.0 - (k + 0.5) / 65536.0;
        /* Newton on the tail from the quantile before, which is never far. */
        for (int step = 0; step < 4; step++) {
            const double density = exp(-0.5 * x * x) * 0.3989422804014327;
            x += (0.5 * erfc(x * 0.7071067811865476) - upper_tail) / density;
        }
        normal_quantiles[k] = (float)x;
        normal_quantiles[65535 - k] = (float)-x;
    }
}

uint32_t fa_random_bit(uint64_t *state, uint32_t mask)
{
    uint32_t skip = (uint32_t)((fa_random_next(state) >> 32) * (uint64_t)__builtin_popcount(mask) >> 32);
    while (skip--)
        mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

uint64_t fa_draw_stream(uint64_t seed, int number)
{
    return fa_random_mix(fa_random_mix(seed + FA_RANDOM_STEP) + (uint64_t)(number + 1) * 0xD1342543DE82EF95u);
}

uint64_t fa_draw_bits(uint64_t stream, uint64_t counter)
{
    return fa_random_mix(stream + (counter + 1) * FA_RANDOM_STEP);
}

float fa_draw_normal(uint64_t bits)
{
    pthread_once(&normal_once, make_normal_quantiles);
    return normal_quantiles[bits & 0xFFFF];
}
