#include "check/draw.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"

static fa_draw other_values(fa_draw draw, const fa_problem *problem, uint64_t random)
{
    static const fa_dist dists[] = {FA_DIST_NORMAL, FA_DIST_UNIFORM, FA_DIST_OUTLIER, FA_DIST_CODED};
    draw.dist = (int32_t)dists[random % 4];
    draw.strides = random >> 8 & 1 ? FA_STRIDES_PADDED : FA_STRIDES_BSHD;
    /* A scale that is large already would take the FP16 baseline's scores beyond FP16. */
    const bool large = (double)problem->scale * sqrt(problem->dim) > 2.0;
    draw.factor = large || (random >> 16 & 1) ? 0.25f : 3.0f;
    return draw;
}

fa_draw fa_draw_of(const fa_options *options, const fa_problem *problem, int32_t index)
{
    fa_draw draw = {
        .seed = (uint64_t)options->seed + (uint64_t)index,
        .as_asked = true,
        .dist = options->dist,
        .strides = options->strides,
        .factor = 1.0f,
    };
    if (index == 0 || index + 1 >= options->seeds || options->load != NULL)
        return draw;
    const uint64_t random = fa_random_mix(draw.seed + FA_RANDOM_STEP);
    draw.as_asked = false;
    switch (index % 3) {
    case 1:
        draw.dist = random & 1 ? FA_DIST_NEEDLE : FA_DIST_RISING;
        draw.factor = 16.0f;
        draw.strides = FA_STRIDES_PADDED;
        return draw;
    case 2:
        draw.dist = FA_DIST_LOW;
        draw.strides = FA_STRIDES_BSHD;
        return draw;
    default:
        return other_values(draw, problem, random);
    }
}

void fa_draw_describe(const fa_draw *draw, char text[FA_DRAW_TEXT])
{
    char dist[32], strides[32];
    const unsigned long long seed = draw->seed;
    if (draw->as_asked)
        snprintf(text, FA_DRAW_TEXT, "seed %llu", seed);
    else
        snprintf(text, FA_DRAW_TEXT, "seed %llu (%s, scale x %g, %s)", seed, fa_word(FA_DIST_WORDS, draw->dist, dist),
                 (double)draw->factor, fa_word(FA_STRIDES_WORDS, draw->strides, strides));
}
