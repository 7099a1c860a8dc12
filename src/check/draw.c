#include "check/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"

static fa_draw other_values(fa_draw draw, const fa_problem *problem, uint64_t random)
{
    static const fa_dist dists[] = {FA_DIST_NORMAL, FA_DIST_UNIFORM, FA_DIST_OUTLIER, FA_DIST_CODED};
    draw.dist = fa_problem_has_descales(problem) && (random >> 24 & 1) ? FA_DIST_MEAN : (int32_t)dists[random % 4];
    draw.strides = random >> 8 & 1 ? FA_STRIDES_PADDED : FA_STRIDES_BSHD;
    draw.v_power = problem->v_in_k ? 0 : fa_problem_dtype_o(problem) == FA_DTYPE_BF16 ? -30 : -10;
    draw.flat = true;
    /* A scale that is large already would take the FP16 baseline's scores beyond FP16. */
    const bool large = (double)problem->scale * sqrt(problem->dim) > 2.0;
    draw.factor = large || (random >> 16 & 1) ? 0.25f : 3.0f;
    return draw;
}

/* Of --op backward: a scale or V that is far larger takes right gradients beyond FP16. */
static fa_draw for_gradients(fa_draw draw, const fa_problem *problem, uint64_t random, int32_t index)
{
    draw.lengths = problem->lengths != NULL ? index : 0;
    if (index % 3 == 0) {
        draw = other_values(draw, problem, random);
        draw.v_power = 0;
        return draw;
    }
    draw.dist = (index % 3 == 1) != problem->deterministic ? FA_DIST_SHARP : FA_DIST_LOW;
    draw.strides = index % 3 == 1 ? FA_STRIDES_PADDED : FA_STRIDES_BSHD;
    return draw;
}

fa_draw fa_draw_of(const fa_options *options, const fa_problem *problem, int32_t index)
{
    fa_draw draw = {
        .seed = (uint64_t)options->seed + (uint64_t)index,
        .q_seed = (uint64_t)options->seed + (uint64_t)index,
        .as_asked = true,
        .given = options->valued,
        .dist = options->dist,
        .strides = options->strides,
        .factor = 1.0f,
    };
    if (index == 0 || index + 1 >= options->seeds || options->load != NULL)
        return draw;
    const uint64_t random = fa_random_mix(draw.seed + FA_RANDOM_STEP);
    draw.as_asked = draw.given = false;
    if (problem->backward)
        return for_gradients(draw, problem, random, index);
    draw.lengths = problem->lengths != NULL || problem->pages != NULL ? index : 0;
    switch (index % 3) {
    case 1:
        draw.dist = random & 1 ? FA_DIST_NEEDLE : FA_DIST_RISING;
        draw.factor = 16.0f;
        draw.strides = FA_STRIDES_PADDED;
        draw.v_power = problem->v_in_k ? 0 : fa_problem_dtype_o(problem) == FA_DTYPE_BF16 ? 20 : 10;
        return draw;
    case 2:
        draw.dist = FA_DIST_LOW;
        draw.strides = FA_STRIDES_BSHD;
        return draw;
    default:
        return other_values(draw, problem, random);
    }
}

/* Every fifth query is zero, and in every third K/V head all keys are the first. Gaps keep their poison. */
static void flatten(const fa_draw *draw, const fa_problem *asked, fa_tensors *tensors)
{
    const size_t dim = (size_t)asked->dim, keys = (size_t)fa_problem_stored_kv(asked); /* of a page, where there are */
#pragma omp parallel for schedule(static) if (tensors->q_count > 1 << 16)
    for (size_t row = 2; row < tensors->q_count / dim; row += 5)
        for (size_t i = row * dim; i < (row + 1) * dim; i++)
            tensors->q[i] = tensors->q[i] != FA_POISON ? 0 : FA_POISON;
#pragma omp parallel for schedule(static) if (tensors->k_count > 1 << 16)
    for (size_t row = 0; row < tensors->k_count / dim; row++) {
        const uint16_t *const first = tensors->k + (row - row % keys) * dim;
        uint16_t *const key = tensors->k + row * dim;
        for (size_t d = 0; row % keys > 0 && (row / keys + draw->seed) % 3 == 1 && d < dim; d++)
            key[d] = key[d] != FA_POISON && first[d] != FA_POISON ? first[d] : key[d];
    }
}

fa_problem fa_draw_problem(const fa_draw *draw, const fa_problem *asked)
{
    fa_problem problem = *asked;
    if (draw->lengths == 0)
        return problem;
    if (asked->lengths != NULL) {
        fa_lengths *lengths = fa_alloc(sizeof *lengths);
        fa_lengths_vary(asked->lengths, draw->lengths, lengths);
        problem.lengths = lengths;
        problem.seq_q = fa_lengths_largest(lengths->q, lengths->count);
        problem.seq_kv = fa_lengths_largest(lengths->kv, lengths->count);
    }
    if (asked->pages != NULL) {
        int32_t *keys = fa_alloc((size_t)problem.batch * sizeof *keys);
        for (int32_t b = 0; b < problem.batch; b++)
            keys[b] = fa_problem_seq_kv(&problem, b);
        problem.pages = fa_pages_make(asked->pages->size, asked->pages->nhd, problem.batch, keys, asked->pages->count,
                                      draw->lengths % 2 == 1, draw->seed);
        free(keys);
    }
    return problem;
}

void fa_draw_problem_free(const fa_problem *asked, fa_problem *drawn)
{
    if (drawn->lengths != asked->lengths)
        free((void *)(uintptr_t)drawn->lengths);
    if (drawn->pages != asked->pages)
        fa_pages_free((fa_pages *)(uintptr_t)drawn->pages);
}

/* V times 2^v_power; of FP8 its descales. */
static void scale_values(const fa_draw *draw, const fa_problem *asked, fa_tensors *tensors)
{
    float *descales = tensors->scores.v_descale;
    const float factor = ldexpf(1.0f, draw->v_power);
    for (int32_t i = 0; descales != NULL && i < asked->batch * asked->kv_heads; i++)
        descales[i] *= factor;
#pragma omp parallel for schedule(static) if (descales == NULL && tensors->v_count > 1 << 16)
    for (size_t i = 0; i < (descales == NULL ? tensors->v_count : 0); i++)
        if (tensors->v[i] != FA_POISON)
            tensors->v[i] =
                fa_element_of_float(asked->dtype, factor * fa_element_to_float(asked->dtype, tensors->v[i]));
}

/* E4M3 of every other K/V head, of K and of V in turn, becomes subnormal, with a descale that makes up for it: some
 * conversions flush these. */
static void shrink_elements(const fa_draw *draw, const fa_problem *asked, const fa_tensors *tensors, bool of_v)
{
    enum { POWER = 9 };
    uint16_t *data = of_v ? tensors->v : tensors->k;
    float *descales = of_v ? tensors->scores.v_descale : tensors->scores.k_descale;
    const int64_t columns = of_v ? fa_problem_dim_v(asked) : asked->dim;
    const int32_t parity = (int32_t)(draw->seed % 2) ^ of_v;
    for (int64_t i = 0; i < (int64_t)tensors->k_count / asked->dim * columns; i++) {
        const fa_row at = fa_problem_key_at(asked, i / columns);
        if (at.used && at.head % 2 == parity)
            data[i] = fa_element_of_float(FA_DTYPE_E4M3, ldexpf(fa_element_to_float(FA_DTYPE_E4M3, data[i]), -POWER));
    }
    for (int32_t j = 0; j < asked->batch * asked->kv_heads; j++)
        descales[j] = ldexpf(descales[j], j % asked->kv_heads % 2 == parity ? POWER : 0);
}

fa_tensors fa_draw_tensors(const fa_draw *draw, const fa_problem *asked)
{
    const bool of_keys = draw->dist == FA_DIST_NEEDLE || draw->dist == FA_DIST_CLIFF;
    fa_tensors tensors = fa_tensors_make(asked, (fa_dist)draw->dist, draw->seed);
    if (draw->q_seed != draw->seed && !of_keys)
        fa_tensors_redraw_q(asked, (fa_dist)draw->dist, draw->q_seed, &tensors);
    if (draw->flat)
        flatten(draw, asked, &tensors);
    if (draw->v_power != 0)
        scale_values(draw, asked, &tensors);
    for (int of_v = 0; draw->flat && fa_problem_has_descales(asked) && !asked->v_in_k && of_v < 2; of_v++)
        shrink_elements(draw, asked, &tensors, of_v);
    fa_tensors_take_v(asked, &tensors);
    return tensors;
}

void fa_draw_describe(const fa_draw *draw, char text[FA_DRAW_TEXT])
{
    char dist[32], strides[32], values[32] = "";
    const unsigned long long seed = draw->seed;
    if (draw->v_power != 0)
        snprintf(values, sizeof values, ", V x 2^%d", draw->v_power);
    if (draw->as_asked)
        snprintf(text, FA_DRAW_TEXT, "seed %llu", seed);
    else
        snprintf(text, FA_DRAW_TEXT, "seed %llu (%s, scale x %g, %s%s%s%s)", seed,
                 fa_word(FA_DIST_WORDS, draw->dist, dist), (double)draw->factor,
                 fa_word(FA_STRIDES_WORDS, draw->strides, strides), values,
                 draw->flat ? ", with zero queries and equal keys" : "",
                 draw->lengths == 0       ? ""
                 : draw->lengths % 2 == 1 ? ", shorter sequences"
                                          : ", lengths in reverse order");
}
