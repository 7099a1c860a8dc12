/* Inputs: conversion, determinism, and that every distribution does what its name says. */
#include "input/tensors.h"
#include "unit.h"

#include <math.h>
#include <omp.h>

TEST(halves_round_trip)
{
    for (uint32_t half = 0; half < 65536; half++) {
        const float value = fa_half_to_float((uint16_t)half);
        if ((half & 0x7C00) == 0x7C00 && (half & 0x3FF)) {
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits); /* the payload stays */
            assert_int_equal(bits, (half & 0x8000) << 16 | 0x7F800000u | (half & 0x3FF) << 13);
            assert_true(isnan(value));
            assert_int_equal(fa_float_to_half(value), half | 0x200); /* quiet */
        } else
            assert_int_equal(fa_float_to_half(value), half);
    }
}

TEST(bf16_is_the_upper_half_of_a_float)
{
    for (uint32_t element = 0; element < 65536; element++) {
        const float value = fa_element_to_float(FA_DTYPE_BF16, (uint16_t)element);
        const uint32_t bits = element << 16;
        assert_memory_equal(&value, &bits, sizeof bits);
        assert_int_equal(fa_element_is_finite(FA_DTYPE_BF16, (uint16_t)element), isfinite(value));
        assert_int_equal(fa_element_of_float(FA_DTYPE_BF16, value), isnan(value) ? element | 0x40 : element);
    }
    const uint32_t hair = 0x7F800001u; /* NaN whose upper half is that of infinity */
    float nan;
    memcpy(&nan, &hair, sizeof nan);
    assert_true(isnan(fa_element_to_float(FA_DTYPE_BF16, fa_element_of_float(FA_DTYPE_BF16, nan))));
}

/* Between any two neighbours: the middle goes to the even one, a hair to either side to the nearer. */
TEST(elements_round_to_nearest_even)
{
    static const struct {
        fa_dtype type;
        uint32_t first, largest, minus;
    } types[] = {
        {FA_DTYPE_FP16, 0, 0x7BFF, 0x8000}, {FA_DTYPE_BF16, 1, 0x7F7F, 0x8000}, {FA_DTYPE_E4M3, 0, 0x7E, 0x80}};
    for (int of = 0; of < 3; of++)
        for (uint32_t element = types[of].first; element < types[of].largest; element++) {
            const fa_dtype type = types[of].type;
            const float low = fa_element_to_float(type, (uint16_t)element);
            const float high = fa_element_to_float(type, (uint16_t)(element + 1)), middle = low + 0.5f * (high - low);
            const uint32_t even = element % 2 ? element + 1 : element;
            assert_int_equal(fa_element_of_float(type, middle), even);
            assert_int_equal(fa_element_of_float(type, nextafterf(middle, 0.0f)), element);
            assert_int_equal(fa_element_of_float(type, nextafterf(middle, INFINITY)), element + 1);
            assert_int_equal(fa_element_of_float(type, -middle), types[of].minus | even);
            assert_int_equal(fa_element_of_float(type, -nextafterf(middle, INFINITY)), types[of].minus | (element + 1));
            if (element > 0)
                assert_true(fa_element_ulp(type, (double)low) == (double)high - (double)low);
            assert_true(fa_element_round(type, middle) == fa_element_to_float(type, (uint16_t)even));
        }
    assert_int_equal(fa_float_to_half(nextafterf(65520.0f, 0.0f)), 0x7BFF);
    assert_int_equal(fa_float_to_half(65520.0f), 0x7C00);
    assert_int_equal(fa_float_to_half(65519.996f), 0x7BFF);
    assert_int_equal(fa_float_to_half(65536.0f), 0x7C00);
    assert_int_equal(fa_float_to_half(-INFINITY), 0xFC00);
    assert_int_equal(fa_float_to_half(1e-30f), 0);
    assert_int_equal(fa_element_of_float(FA_DTYPE_BF16, 3.4e38f), 0x7F80);
    assert_int_equal(fa_element_of_float(FA_DTYPE_BF16, -INFINITY), 0xFF80);
    assert_true(fa_element_round(FA_DTYPE_BF16, 3.4e38f) == 0x1.FEp127f); /* saturates */
}

/* 256 patterns: each is itself again; what is too large saturates. */
TEST(e4m3_saturates)
{
    for (uint32_t code = 0; code < 256; code++) {
        const float value = fa_element_to_float(FA_DTYPE_E4M3, (uint16_t)code);
        assert_int_equal(isnan(value), (code & 0x7F) == 0x7F);
        assert_int_equal(fa_element_is_finite(FA_DTYPE_E4M3, (uint16_t)code), !isnan(value));
        if (isnan(value))
            continue;
        assert_int_equal(fa_element_of_float(FA_DTYPE_E4M3, value), code);
        assert_float_equal(fa_element_round(FA_DTYPE_E4M3, value), value, 0);
    }
    assert_float_equal(fa_element_to_float(FA_DTYPE_E4M3, 1), 0x1p-9, 0);
    assert_float_equal(fa_element_to_float(FA_DTYPE_E4M3, 0x38), 1.0f, 0);
    assert_float_equal(fa_element_to_float(FA_DTYPE_E4M3, 0xFE), -448.0f, 0);
    assert_int_equal(fa_element_of_float(FA_DTYPE_E4M3, 1e9f), 0x7E);
    assert_int_equal(fa_element_of_float(FA_DTYPE_E4M3, -INFINITY), 0xFE);
    assert_true(isnan(fa_element_to_float(FA_DTYPE_E4M3, FA_POISON)));
}

static fa_problem fp8_shape(void)
{
    fa_problem p = shape(3, 6, 3, 40, 50, 32, false);
    p.dtype = FA_DTYPE_E4M3;
    return p;
}

/* What is quantised is the drawn number, within half a step of its size; no element saturates, and the descales of
 * neighbours, and of K and V, are far apart. */
TEST(fp8_tensors_are_drawn_ones_times_descales)
{
    fa_problem p = fp8_shape(), wide = p;
    wide.dtype = FA_DTYPE_BF16;
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 5);
    CLEANUP(fa_tensors_free) fa_tensors drawn = fa_tensors_make(&wide, FA_DIST_NORMAL, 5);
    const float *descales[3] = {t.scores.q_descale, t.scores.k_descale, t.scores.v_descale};
    const uint16_t *codes[3] = {t.q, t.k, t.v}, *numbers[3] = {drawn.q, drawn.k, drawn.v};
    for (int i = 0; i < 3; i++) {
        const int32_t heads = i == 0 ? 6 : 3, rows = i == 0 ? 40 : 50;
        float least = INFINITY, most = 0.0f;
        for (int32_t at = 0; at < 3 * heads * rows * 32; at++) {
            const float descale = descales[i][at / 32 / rows], code = fa_element_to_float(FA_DTYPE_E4M3, codes[i][at]),
                        number = fa_element_to_float(FA_DTYPE_BF16, numbers[i][at]);
            assert_true(fabsf(code * descale - number) <= fabsf(number) / 16.0f * 1.001f + descale * 0x1p-10f);
            assert_true(fabsf(number / descale) < 449.0f);
        }
        for (int32_t h = 0; h < 3 * heads; h++) {
            const float next = descales[i][h / heads * heads + (h + 1) % heads], ratio = next / descales[i][h];
            assert_true(fabsf(logf(ratio)) > 0.2f);
            assert_true(fabsf(logf(descales[i][(h + heads) % (3 * heads)] / descales[i][h])) > 0.2f);
            least = fminf(least, descales[i][h]), most = fmaxf(most, descales[i][h]);
        }
        assert_true(most / least > 20.0f && most / least <= 100.1f);
    }
    for (int32_t h = 0; h < 9; h++)
        assert_true(fabsf(logf(descales[1][h] / descales[2][h])) > 0.2f);
}

/* A cache alone: Q and its descale are as without. */
TEST(an_fp8_cache_leaves_q_alone)
{
    fa_problem p = shape(2, 4, 2, 20, 30, 24, false), plain = p;
    p.fp8_kv = true;
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 5);
    CLEANUP(fa_tensors_free) fa_tensors of = fa_tensors_make(&plain, FA_DIST_NORMAL, 5);
    assert_null(t.scores.q_descale);
    assert_non_null(t.scores.k_descale);
    assert_memory_equal(t.q, of.q, t.q_count * sizeof *t.q);
    for (size_t i = 0; i < t.k_count; i++)
        assert_true(t.k[i] < 256);
}

/* The unit roundoff that tolerances follow: 2^-11 and 2^-8. */
TEST(types_have_their_precision)
{
    assert_true(fa_element_ulp(FA_DTYPE_FP16, 1.0) == 2 * 0x1p-11 && fa_element_ulp(FA_DTYPE_BF16, 1.0) == 2 * 0x1p-8);
    assert_int_equal(fa_dtype_bits(FA_DTYPE_FP16), 11);
    assert_int_equal(fa_dtype_bits(FA_DTYPE_BF16), 8);
    assert_true(fa_dtype_coarseness(FA_DTYPE_FP16) == 1.0 && fa_dtype_coarseness(FA_DTYPE_BF16) == 8.0);
}

TEST(the_largest_element_is_the_last_finite_one)
{
    const fa_dtype types[] = {FA_DTYPE_FP16, FA_DTYPE_BF16, FA_DTYPE_E4M3};
    for (int i = 0; i < 3; i++) {
        const float largest = fa_element_largest(types[i]);
        const uint16_t element = fa_element_of_float(types[i], largest);
        assert_true(fa_element_to_float(types[i], element) == largest && fa_element_is_finite(types[i], element));
        assert_false(fa_element_is_finite(types[i], (uint16_t)(element + 1)));
    }
}

static float logit(const fa_problem *p, const fa_tensors *t, size_t q_row, size_t k_row)
{
    float sum = 0.0f;
    for (int32_t d = 0; d < p->dim; d++)
        sum += fa_element_to_float(p->dtype, t->q[q_row * (size_t)p->dim + (size_t)d]) *
               fa_element_to_float(p->dtype, t->k[k_row * (size_t)p->dim + (size_t)d]);
    return sum * p->scale;
}

/* Every logit is far below 0, and they differ as normal ones do. */
TEST(low_logits_are_low)
{
    const fa_problem p = shape(1, 2, 1, 9, 33, 64, false);
    fa_tensors t = fa_tensors_make(&p, FA_DIST_LOW, 7);
    float highest = -INFINITY, lowest = INFINITY;
    for (size_t row = 0; row < 2 * 9; row++)
        for (size_t key = 0; key < 33; key++) {
            highest = fmaxf(highest, logit(&p, &t, row, key));
            lowest = fminf(lowest, logit(&p, &t, row, key));
        }
    assert_true(highest < -110.0f && lowest > -150.0f && highest - lowest > 4.0f);
    fa_tensors_free(&t);
    fa_tensors_free(&t); /* nothing is left */
}

/* One key of each row is above all others that it sees, by more than FP16 rounds its logits. Rows lie on both sides of
 * 0, and of some the mask hides a logit that is far above all that they see. */
TEST(cliffs_are_far_apart)
{
    const fa_problem p = shape(1, 4, 2, 30, 41, 32, true);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_CLIFF, 7);
    int above = 0, below = 0, hidden_above = 0;
    for (size_t row = 0; row < 4 * 30; row++) {
        float first = -INFINITY, second = -INFINITY, hidden = -INFINITY;
        for (int32_t key = 0; key < 41; key++) {
            const float now = logit(&p, &t, row, row / 60 * 41 + (size_t)key);
            assert_true(fabsf(now) < 32768.0f);
            if (key >= fa_problem_keys(&p, 0, (int32_t)(row % 30)).end)
                hidden = fmaxf(hidden, now);
            else if (now > first)
                second = first, first = now;
            else
                second = fmaxf(second, now);
        }
        assert_true(first - second > 64.0f);
        above += first > 15000.0f;
        below += first < -15000.0f;
        hidden_above += hidden - first > 30000.0f;
    }
    assert_true(above == 80 && below == 40 && hidden_above == 10);
}

TEST(same_seed_same_tensors)
{
    const fa_problem p = shape(2, 4, 2, 400, 801, 24, true);
    const int threads = omp_get_max_threads();
    for (int dist = 0; dist <= FA_DIST_CLIFF; dist++) {
        omp_set_num_threads(1);
        CLEANUP(fa_tensors_free) fa_tensors a = fa_tensors_make(&p, (fa_dist)dist, 7);
        omp_set_num_threads(3);
        CLEANUP(fa_tensors_free) fa_tensors b = fa_tensors_make(&p, (fa_dist)dist, 7);
        CLEANUP(fa_tensors_free) fa_tensors c = fa_tensors_make(&p, (fa_dist)dist, 8);
        omp_set_num_threads(threads);
        assert_int_equal(a.q_count, fa_problem_q_count(&p));
        assert_int_equal(a.k_count, fa_problem_k_count(&p));
        assert_memory_equal(a.q, b.q, a.q_count * 2);
        assert_memory_equal(a.k, b.k, a.k_count * 2);
        assert_memory_equal(a.v, b.v, a.k_count * 2);
        assert_true(memcmp(a.q, c.q, a.q_count * 2) != 0);
    }
}

TEST(q_k_v_are_independent)
{
    const fa_problem p = shape(1, 4, 4, 256, 256, 64, false);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 42);
    const uint16_t *pairs[3][2] = {{t.q, t.k}, {t.k, t.v}, {t.q, t.v}};
    for (int i = 0; i < 3; i++) {
        double product = 0.0;
        for (size_t k = 0; k < t.q_count; k++)
            product += (double)fa_half_to_float(pairs[i][0][k]) * (double)fa_half_to_float(pairs[i][1][k]);
        assert_true(fabs(product / sqrt((double)t.q_count)) < 5.0);
    }
}

/* Mean, variance, kurtosis, and the correlation of neighbours. */
static void moments(const uint16_t *data, size_t count, double variance, double kurtosis, double tolerance)
{
    double sums[5] = {0}, neighbours = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double x = (double)fa_half_to_float(data[i]);
        double power = 1.0;
        for (int k = 0; k < 5; k++, power *= x)
            sums[k] += power;
        neighbours += i > 0 ? x * (double)fa_half_to_float(data[i - 1]) : 0.0;
    }
    const double n = (double)count;
    assert_true(fabs(sums[1] / n) < 5.0 * sqrt(variance / n));
    assert_true(fabs(sums[2] / n - variance) < tolerance * variance);
    assert_true(fabs(sums[4] / n / (variance * variance) - kurtosis) < 3.0 * tolerance * kurtosis);
    assert_true(fabs(neighbours / n) < 5.0 * variance / sqrt(n));
}

TEST(distributions_have_their_moments)
{
    const fa_problem p = shape(2, 4, 4, 512, 512, 64, false);
    CLEANUP(fa_tensors_free) fa_tensors normal = fa_tensors_make(&p, FA_DIST_NORMAL, 1);
    moments(normal.q, normal.q_count, 1.0, 3.0, 0.02);
    moments(normal.k, normal.k_count, 1.0, 3.0, 0.02);
    moments(normal.v, normal.k_count, 1.0, 3.0, 0.02);
    CLEANUP(fa_tensors_free) fa_tensors uniform = fa_tensors_make(&p, FA_DIST_UNIFORM, 1);
    moments(uniform.q, uniform.q_count, 1.0 / 3.0, 1.8, 0.02);
    moments(uniform.v, uniform.k_count, 1.0 / 3.0, 1.8, 0.02);
    CLEANUP(fa_tensors_free) fa_tensors sharp = fa_tensors_make(&p, FA_DIST_SHARP, 1);
    moments(sharp.q, sharp.q_count, 16.0, 3.0, 0.02);
    moments(sharp.k, sharp.k_count, 1.0, 3.0, 0.02);
    CLEANUP(fa_tensors_free) fa_tensors outlier = fa_tensors_make(&p, FA_DIST_OUTLIER, 1);
    moments(outlier.k, outlier.k_count, 1.099, 3.0 * (0.999 + 10.0) / (1.099 * 1.099), 0.1);
}

static fa_problem in_type(fa_problem problem, fa_dtype dtype)
{
    problem.dtype = dtype;
    return problem;
}

/* V has the mean 1, and Q and K none. */
TEST(v_has_a_mean)
{
    const fa_problem p = shape(1, 1, 1, 3, 3, 16, false);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_MEAN, 5);
    CLEANUP(fa_tensors_free) fa_tensors normal = fa_tensors_make(&p, FA_DIST_NORMAL, 5);
    assert_memory_equal(t.q, normal.q, t.q_count * sizeof *t.q);
    assert_memory_equal(t.k, normal.k, t.k_count * sizeof *t.k);
    for (size_t i = 0; i < t.k_count; i++)
        assert_int_equal(t.v[i], fa_float_to_half(1.0f + fa_half_to_float(normal.v[i])));
}

/* One element in a thousand is ten times as large, and none beside the tensor (make test-asan). */
TEST(outliers_are_rare)
{
    const fa_problem p = shape(1, 1, 1, 1, 1, 16, false);
    int32_t outliers = 0;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_OUTLIER, seed);
        CLEANUP(fa_tensors_free) fa_tensors normal = fa_tensors_make(&p, FA_DIST_NORMAL, seed);
        for (int32_t d = 0; d < 16; d++)
            outliers += t.q[d] != normal.q[d];
    }
    assert_in_range(outliers, 60, 100); /* of 80000 */
}

/* Every key above all before it: a new maximum in every tile, whatever its size. Up to a million keys. */
TEST(ramps_are_strict)
{
    const fa_problem shapes[] = {shape(1, 1, 1, 3, 2, 16, false),
                                 shape(1, 2, 1, 2, 129, 16, true),
                                 shape(1, 1, 1, 2, 1000, 64, false),
                                 shape(1, 1, 1, 2, 8192, 80, false),
                                 shape(1, 1, 1, 1, 70000, 256, false),
                                 shape(1, 1, 1, 1, 1048576, 16, false),
                                 in_type(shape(1, 2, 1, 2, 129, 16, true), FA_DTYPE_BF16),
                                 in_type(shape(1, 1, 1, 1, 70000, 256, false), FA_DTYPE_BF16)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int falling = 0; falling < 2; falling++) {
            const fa_problem *p = &shapes[i];
            CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(p, falling ? FA_DIST_FALLING : FA_DIST_RISING, 5);
            float before = falling ? INFINITY : -INFINITY;
            for (int32_t key = 0; key < p->seq_kv; key++) {
                const float now = logit(p, &t, (size_t)p->seq_q - 1, (size_t)key);
                assert_true(falling ? now < before : now > before);
                before = now;
            }
            if (p->seq_kv > 100)
                assert_true(fabsf(before) > 1.5f && fabsf(before) < 40.0f);
        }
}

/* One key holds nearly all of the weight, V says which, and it is not the same one for every row. */
TEST(needles_dominate)
{
    const fa_problem shapes[] = {shape(1, 4, 2, 60, 50, 16, true), shape(2, 2, 1, 40, 3000, 64, false),
                                 shape(1, 1, 1, 20, 30000, 24, false),
                                 in_type(shape(1, 4, 2, 60, 50, 16, true), FA_DTYPE_BF16),
                                 in_type(shape(1, 1, 1, 20, 30000, 24, false), FA_DTYPE_BF16)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const fa_problem *p = &shapes[i];
        CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(p, FA_DIST_NEEDLE, 5);
        int64_t distinct = 0, last = -1;
        for (int32_t flat = 0; flat < p->batch * p->heads * p->seq_q; flat++) {
            const int32_t keys = fa_problem_keys(p, 0, flat % p->seq_q).end;
            const int32_t head = flat / p->seq_q % p->heads, batch = flat / p->seq_q / p->heads;
            const size_t first =
                ((size_t)batch * (size_t)p->kv_heads + (size_t)(head / (p->heads / p->kv_heads))) * (size_t)p->seq_kv;
            double weight = 0.0, best = -INFINITY;
            int32_t needle = -1;
            for (int32_t key = 0; key < keys; key++) {
                const double now = (double)logit(p, &t, (size_t)flat, first + (size_t)key);
                weight = now > best ? weight * exp(best - now) + 1.0 : weight + exp(now - best);
                needle = now > best ? key : needle;
                best = fmax(best, now);
            }
            if (keys == 0)
                continue;
            assert_true(1.0 / weight > 0.97);
            distinct += needle != last;
            last = needle;
            int32_t decoded = 0;
            for (int32_t digit = 0; digit < 4; digit++) {
                const float code =
                    fa_element_to_float(p->dtype, t.v[(first + (size_t)needle) * (size_t)p->dim + (size_t)digit]);
                decoded |= (int32_t)(code * 16.0f + 16.0f) << (5 * digit);
            }
            assert_int_equal(decoded, needle);
        }
        assert_true(distinct > p->seq_q / 2);
    }
}

TEST(v_is_constant_or_coded)
{
    const fa_problem p = shape(2, 4, 2, 8, 100, 40, false);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_CONSTANT_V, 5);
    CLEANUP(fa_tensors_free) fa_tensors coded = fa_tensors_make(&p, FA_DIST_CODED, 5);
    for (int32_t head = 0; head < 4; head++) {
        const uint16_t *v = t.v + (size_t)head * 100 * 40;
        for (int32_t key = 1; key < 100; key++)
            assert_memory_equal(v, v + key * 40, 80);
        if (head > 0)
            assert_memory_not_equal(v, t.v, 80);
    }
    for (int32_t row = 0; row < 400; row++) {
        const uint16_t *v = coded.v + row * 40;
        for (int32_t d = 0; d < 40; d += 4) {
            assert_float_equal(fa_half_to_float(v[d]) * 512 + 512, (float)(row / 200), 0);
            assert_float_equal(fa_half_to_float(v[d + 1]) * 512 + 512, (float)(row / 100 % 2), 0);
            assert_float_equal(fa_half_to_float(v[d + 2]) * 512 + 512, d + 2, 0);
            assert_float_equal(fa_half_to_float(v[d + 3]) * 512 + 512, (float)(row % 100 * 1024 / 100), 0);
        }
    }
}

/* BF16 inputs are those of FP16 rounded to 8 bits; codes are exact. */
TEST(draws_in_bf16)
{
    const fa_problem half = shape(2, 4, 2, 8, 100, 40, false), p = in_type(half, FA_DTYPE_BF16);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 5);
    CLEANUP(fa_tensors_free) fa_tensors coded = fa_tensors_make(&p, FA_DIST_CODED, 5);
    CLEANUP(fa_tensors_free) fa_tensors same = fa_tensors_make(&half, FA_DIST_NORMAL, 5);
    for (size_t i = 0; i < t.q_count; i++) {
        const float got = fa_element_to_float(FA_DTYPE_BF16, t.q[i]), want = fa_half_to_float(same.q[i]);
        assert_true(fabsf(got - want) <= 0x1.1p-8f * fabsf(want)); /* both are rounded */
    }
    for (int32_t row = 0; row < 400; row++)
        for (int32_t d = 0; d < 40; d++) {
            const int32_t codes[4] = {row / 200, row / 100 % 2, d, row % 100 * 512 / 100};
            const float got = fa_element_to_float(FA_DTYPE_BF16, coded.v[row * 40 + d]);
            assert_float_equal(got * 256 + 256, (float)codes[d % 4], 0);
        }
}
