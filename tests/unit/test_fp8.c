/* FP8 products as tensor cores make them, against a model in long double that shares no code with it. */
#include <math.h>

#include "base/random.h"
#include "ptx/fp8.h"
#include "unit.h"

enum { ROWS = 16, COLUMNS = 16, DEPTH = 32 };

/* The exponent of x; a zero's is below all. */
static int exponent(long double x, int least)
{
    int e;
    if (x == 0)
        return -10000;
    frexpl(x, &e);
    return e - 1 < least ? least : e - 1;
}

static long double truncated_to(long double x, int unit) { return ldexpl(truncl(ldexpl(x, -unit)), unit); }

/* One group of products and c: MMA-Sim's T-FDPA, written from its text. */
static long double group_sum(const float *a, const float *b, int terms, int least_a, int least_b, long double c,
                             bool half)
{
    int top = exponent(c, half ? -14 : -126);
    for (int k = 0; k < terms; k++) {
        const int ea = exponent((long double)a[k], least_a), eb = exponent((long double)b[k], least_b);
        top = ea + eb > top ? ea + eb : top;
    }
    top = top < -126 ? -126 : top;
    long double sum = truncated_to(c, top - 13);
    for (int k = 0; k < terms; k++)
        sum += truncated_to((long double)a[k] * (long double)b[k], top - 13);
    if (!half)
        return truncated_to(sum, exponent(sum, -126) - 13);
    const int unit = exponent(sum, -14) - 10;
    const long double nearest = sum == 0 ? 0 : ldexpl(rintl(ldexpl(sum, -unit)), unit);
    return fabsl(nearest) > 65504 ? (nearest > 0 ? INFINITY : -INFINITY) : nearest;
}

static int least(fa_ptx_type type) { return type == FA_PTX_E4M3 ? -6 : -14; }

/* A finite value: of every exponent, or (narrow) of a few near 1. */
static float drawn(uint64_t *random, fa_ptx_type type, bool narrow)
{
    for (;;) {
        const unsigned byte = (unsigned)(fa_random_next(random) >> 40 & 0xff);
        const float value = fa_ptx_fp8_value(byte, type);
        if (isfinite(value) && (!narrow || (fabsf(value) >= 0.125f && fabsf(value) < 8)))
            return value;
    }
}

static void tile(uint64_t seed, const fa_ptx_fp8 *shape, bool narrow)
{
    float a[ROWS * DEPTH], b[DEPTH * COLUMNS], transposed[COLUMNS * DEPTH], d[ROWS * COLUMNS];
    long double want[ROWS * COLUMNS];
    uint64_t random = seed;
    for (int i = 0; i < ROWS * DEPTH; i++)
        a[i] = i % 7 == 3 ? 0 : drawn(&random, shape->a, narrow);
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        transposed[i % COLUMNS * DEPTH + i / COLUMNS] = b[i] = drawn(&random, shape->b, narrow);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int power = shape->half ? (int)(fa_random_next(&random) >> 40) % 16 - 8 : i % 64 - 40;
        const float c = ldexpf((float)(int)(fa_random_next(&random) >> 41) / (1 << 22) - 1, power);
        d[i] = i % 5 == 0 ? 0 : shape->half ? (float)(_Float16)c : c;
        want[i] = (long double)d[i];
        for (int k = 0; k < shape->depth; k += shape->terms)
            want[i] = group_sum(a + i / COLUMNS * DEPTH + k, transposed + i % COLUMNS * DEPTH + k, shape->terms,
                                least(shape->a), least(shape->b), want[i], shape->half);
    }
    fa_ptx_fp8_multiply(shape, a, b, d, COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if ((long double)d[i] != want[i])
            fail_msg("seed %d, element %d: %a, want %La", (int)seed, i, (double)d[i], want[i]);
}

TEST(drawn_tiles)
{
    for (uint64_t seed = 1; seed <= 64; seed++) {
        const fa_ptx_fp8 shape = {.rows = ROWS,
                                  .columns = COLUMNS,
                                  .depth = DEPTH,
                                  .terms = seed % 2 == 0 ? FA_PTX_FP8_MMA_TERMS : FA_PTX_FP8_WGMMA_TERMS,
                                  .a = seed % 3 == 0 ? FA_PTX_E5M2 : FA_PTX_E4M3,
                                  .b = seed % 5 == 0 ? FA_PTX_E5M2 : FA_PTX_E4M3,
                                  .half = seed % 4 == 1};
        tile(seed, &shape, seed % 8 < 4);
    }
}

/* One row and column: 32 times the same product, or `last` as the last factor of A. */
static float of_one(float c, float each, float last, int terms)
{
    float a[DEPTH], b[DEPTH * 8] = {0}, d[8] = {c};
    for (int k = 0; k < DEPTH; k++)
        a[k] = k == DEPTH - 1 ? last : each, b[k * 8] = 1;
    const fa_ptx_fp8 shape = {1, 8, DEPTH, terms, FA_PTX_E4M3, FA_PTX_E4M3, false};
    fa_ptx_fp8_multiply(&shape, a, b, d, 8);
    return d[0];
}

TEST(what_is_lost)
{
    assert_true(of_one(8192, 1, 1, 32) == 8224);
    assert_true(of_one(16384, 1, 1, 32) == 16384); /* each is below the last bit */
    assert_true(of_one(16384, 1, 2, 32) == 16386);
    assert_true(of_one(-16384, 1, 1, 32) == -16384); /* towards zero */
    assert_true(of_one(1 + 0x1p-14f, 0, 0, 32) == 1);
    /* in two groups the small one is added to a sum, in one to products */
    assert_true(of_one(0, 448, 448, 32) == 14336 && of_one(0, 448, 0x1p-9f, 16) == 13888);
    assert_true(of_one(0, 0x1p-9f, 256, 32) == 256 && of_one(0, 0x1p-9f, 8, 32) == 8 + 0x1p-4f - 0x1p-9f);
}

TEST(not_finite)
{
    assert_true(isnan(of_one(0, 1, NAN, 32)) && isnan(of_one(NAN, 0, 0, 16)) && isnan(of_one(INFINITY, 0, NAN, 32)));
    assert_true(of_one(-INFINITY, 448, 448, 32) == -INFINITY && fa_element_of_float(FA_DTYPE_E4M3, NAN) == 0x7F);
    assert_true(of_one(0x1.fff8p127f, 448, 448, 32) == 0x1.fff8p127f);
}

TEST(values)
{
    for (unsigned byte = 0; byte < 256; byte++)
        for (fa_ptx_type type = FA_PTX_E4M3; type <= FA_PTX_E5M2; type++) {
            const double want = fa_ptx_to_double(byte, type), got = (double)fa_ptx_fp8_value(byte, type);
            assert_true(isnan(want) ? isnan(got) : want == got && signbit(want) == signbit(got));
        }
}
