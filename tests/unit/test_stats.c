/* Order statistics against samples whose answers are known. */
#include "timing/stats.h"
#include "unit.h"

#include <math.h>

TEST(quantiles_of_a_line)
{
    const double sorted[] = {10, 20, 30, 40, 50};
    assert_float_equal(fa_quantile(sorted, 5, 0.0), 10, 0);
    assert_float_equal(fa_quantile(sorted, 5, 0.5), 30, 0);
    assert_float_equal(fa_quantile(sorted, 5, 1.0), 50, 0);
    assert_float_equal(fa_quantile(sorted, 5, 0.1), 14, 1e-12);
    assert_float_equal(fa_quantile(sorted, 5, 0.9), 46, 1e-12);
    assert_float_equal(fa_quantile(sorted, 1, 0.9), 10, 0);
    assert_float_equal(fa_quantile(sorted, 4, 0.5), 25, 1e-12);
}

TEST(any_order)
{
    const double samples[] = {5, 1, 4, 2, 3, 9, 7, 8, 6, 10};
    const fa_stats stats = fa_stats_of(samples, 10);
    assert_int_equal(stats.count, 10);
    assert_float_equal(stats.min, 1, 0);
    assert_float_equal(stats.p10, 1.9, 1e-12);
    assert_float_equal(stats.p50, 5.5, 1e-12);
    assert_float_equal(stats.p90, 9.1, 1e-12);
    assert_float_equal(stats.mean, 5.5, 1e-12);
    /* Binomial(10, 1/2): P(X <= 1) = 0.0107, P(X <= 2) = 0.0547, so the interval is x(2)..x(9). */
    assert_float_equal(stats.ci95[0], 2, 0);
    assert_float_equal(stats.ci95[1], 9, 0);
    assert_float_equal(samples[0], 5, 0); /* not sorted in place */
}

/* Ranks from published tables of the sign test: lower ranks for n = 6, 20, 50, 100. */
TEST(interval_ranks)
{
    const struct {
        size_t count;
        double low;
    } table[] = {{6, 1}, {8, 1}, {9, 2}, {20, 6}, {50, 18}, {100, 40}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double samples[100];
        for (size_t k = 0; k < table[i].count; k++)
            samples[k] = (double)(k + 1);
        const fa_stats stats = fa_stats_of(samples, table[i].count);
        assert_float_equal(stats.ci95[0], table[i].low, 0);
        assert_float_equal(stats.ci95[1], (double)table[i].count + 1 - table[i].low, 0);
    }
}

TEST(five_samples_bound_nothing)
{
    const double samples[] = {1, 1, 1, 1, 1};
    const fa_stats stats = fa_stats_of(samples, 5);
    assert_true(isinf(stats.ci95[0]) && isinf(stats.ci95[1]));
    assert_false(fa_stats_settled(&stats, 0.5));
}

/* The interval must hold the true median about 95 % of the time, and never much less, for a skewed distribution. */
TEST(coverage)
{
    uint64_t random = 88172645463325252u;
    int32_t covered = 0;
    const int32_t trials = 2000;
    for (int32_t trial = 0; trial < trials; trial++) {
        double samples[101];
        for (int32_t k = 0; k < 101; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            samples[k] = -log(((double)(random >> 11) + 0.5) * 0x1p-53);
        }
        const fa_stats stats = fa_stats_of(samples, 101);
        covered += stats.ci95[0] <= log(2.0) && log(2.0) <= stats.ci95[1];
    }
    assert_in_range(covered, trials * 94 / 100, trials * 985 / 1000);
}

TEST(ten_thousand_do_not_underflow)
{
    FREED double *samples = malloc(10000 * sizeof *samples);
    for (int32_t k = 0; k < 10000; k++)
        samples[k] = k;
    const fa_stats stats = fa_stats_of(samples, 10000);
    /* n/2 -+ 0.98 sqrt(n) */
    assert_float_equal(stats.ci95[0], 4901, 2);
    assert_float_equal(stats.ci95[1], 5098, 2);
}

TEST(settled_is_a_strict_bound)
{
    const fa_stats narrow = {.p50 = 100, .ci95 = {99.6, 100.4}}, wide = {.p50 = 100, .ci95 = {99.5, 100.5}};
    assert_true(fa_stats_settled(&narrow, 0.005));
    assert_false(fa_stats_settled(&wide, 0.005));
    const fa_stats nan = {.p50 = 100, .ci95 = {NAN, NAN}};
    assert_false(fa_stats_settled(&nan, 0.005));
}

TEST(looks_grow_by_five_per_cent)
{
    const size_t looks[][2] = {{0, 10},    {1, 11},    {199, 209}, {200, 210},    {219, 229},
                               {220, 231}, {380, 399}, {400, 420}, {10000, 10500}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        assert_int_equal(fa_stats_next_look(looks[i][0]), looks[i][1]);
}
