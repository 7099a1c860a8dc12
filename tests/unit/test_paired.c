/* fa_time_paired on synthetic sample streams: order, bounds, what is dropped; ratios, drift, noise and the rule of
 * acceptance are in tests/golden/comparisons.txt (test_measure_golden.c). */
#include "fake_gpu.h"
#include "timing/paired.h"
#include "unit.h"

#include <math.h>

static fake_gpu gpu;
static fa_options options;
static fa_reason why;

static int fresh(void **state) { return options = fake_options(), fake_gpu_make(&gpu, 100.0, 110.0), 0; }
#define FRESH(name) TEST_WITH(name, fresh, NULL)

/* words: of the reason, where it does not pass */
static fa_paired paired_ends(fa_status status, const char *words)
{
    fa_paired c;
    ends_with(fa_time_paired(&gpu.candidate[0], &gpu.candidate[1], &options, &c, &why), status, &why, words);
    assert_int_equal(c.done, status == FA_PASS);
    return c;
}
static fa_paired paired_ok(void) { return paired_ends(FA_PASS, ""); }

/* One of FP16 and one of BF16: the ratio is told, but neither replaces the other. */
FRESH(another_type_is_not_accepted)
{
    fa_problem other = *gpu.candidate[1].problem;
    other.dtype = FA_DTYPE_BF16;
    gpu.candidate[1].problem = &other;
    const fa_paired c = paired_ok();
    near(c.ratio, 1.1, 1e-9);
    assert_false(c.accepted);
}

FRESH(the_order_is_abba_and_then_baab)
{
    paired_ok();
    const int wanted[16] = {0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0};
    bool found = false;
    for (int start = 0; start < 32; start++)
        found |= memcmp(&gpu.log[start], wanted, sizeof wanted) == 0;
    assert_true(found);
}

FRESH(one_method_for_both)
{
    fake_gpu_make(&gpu, 5.0, 300.0);
    fa_paired c = paired_ok();
    assert_int_equal(c.method, FA_TIMING_GRAPH);
    assert_int_equal(gpu.last[0].method, FA_TIMING_GRAPH);
    assert_int_equal(gpu.last[1].method, FA_TIMING_GRAPH);
    assert_true(gpu.last[0].launches >= 40);
    assert_int_equal(gpu.last[1].launches, 1);
    assert_int_equal(gpu.last[0].warmup_launches, 1);
    near(c.ratio, 60.0, 1e-9);
    fake_gpu_make(&gpu, 50.0, 300.0);
    c = paired_ok();
    assert_int_equal(c.method, FA_TIMING_EVENT);
}

FRESH(a_long_launch_needs_no_untimed_one_before)
{
    fake_gpu_make(&gpu, 9999.0, 10000.0);
    paired_ok();
    assert_int_equal(gpu.last[0].warmup_launches, 1);
    assert_int_equal(gpu.last[1].warmup_launches, 0);
}

FRESH(what_is_known_to_be_long_is_not_tried_before)
{
    for (int known = 0; known < 2; known++) {
        fake_gpu_make(&gpu, 20000.0, 300.0);
        gpu.candidate[0].about_us = known * 20000.0;
        paired_ok();
        assert_int_equal(gpu.log[0], known);
    }
}

FRESH(where_two_rounds_do_not_fit_nothing_is_timed_against_itself)
{
    for (int fit = 0; fit < 2; fit++) {
        fake_gpu_make(&gpu, 10000.0, 11000.0);
        gpu.wall_s = 0.01;
        options.max_time = fit ? 0.165 : 0.1; /* a round of four and four samples takes 0.08 s */
        const fa_paired c = paired_ok();
        assert_true(c.blocks == 2 && isinf(c.aa_noise) && !c.accepted);
        near(c.ratio, 1.1, 1e-9);
        const int wanted[8] = {0, 1, 1, 0, fit ? 0 : 1, 0, 0, fit ? 0 : 1};
        bool found = false;
        for (int start = 0; start < 32; start++)
            found |= memcmp(&gpu.log[start], wanted, sizeof wanted) == 0;
        assert_true(found);
    }
}

/* The other side is slower in seven blocks of thirteen, in turn, and equal in the others. */
static double two_minded(fake_gpu *g, int kernel, long n)
{
    static long other_samples; /* of the blocks: those have a prime */
    other_samples = n == 0 ? -1 : other_samples + (kernel == 1 && g->last[1].warmup_launches == 1);
    return kernel == 1 && (other_samples / 2 % 13) % 2 == 0 ? 120.0 : 100.0;
}

FRESH(an_interval_that_holds_1_is_not_accepted)
{
    fake_gpu_make(&gpu, 0, 0);
    gpu.us = two_minded;
    gpu.wall_s = 0.0005;
    options.max_time = 0.15; /* less than forty blocks */
    const fa_paired c = paired_ok();
    assert_true(c.blocks >= 6);
    assert_true(c.ratio > 1.03 && c.aa_noise < 1e-9);
    assert_true(c.ratio_ci95[0] <= 1.0);
    assert_false(c.accepted);
}

/* The sample's number among those that are compared, eight a block; -1: still calibration. */
static long number_of(fake_gpu *g, long n)
{
    static long begin;
    begin = n == 0 ? -1 : begin < 0 && g->last[0].warmup_launches == 1 ? n : begin;
    return begin < 0 ? -1 : n - begin;
}

/* One block in five; `more` adds the first block. */
static bool in_a_fifth(fake_gpu *g, long n, bool more)
{
    const long number = number_of(g, n);
    return number >= 0 && (number / 8 % 5 == 2 || (more && number / 8 == 0));
}

static bool a_fifth(fake_gpu *g, long n) { return in_a_fifth(g, n, false); }
static bool more_than_a_fifth(fake_gpu *g, long n) { return in_a_fifth(g, n, true); }

FRESH(a_fifth_of_the_blocks_may_be_dropped)
{
    options.min_samples = 96; /* 48 blocks */
    gpu.throttled = a_fifth;
    fa_paired c = paired_ok();
    assert_true(c.blocks == 48 && c.discarded == 12);
    assert_true(c.accepted && !c.throttled);
    fake_gpu_make(&gpu, 100.0, 110.0);
    gpu.throttled = more_than_a_fifth;
    c = paired_ok();
    assert_true(c.blocks == 48 && c.discarded == 13);
    assert_true(!c.accepted && c.throttled);
}

static double aa_slow_by; /* the second contender of A A A A, which is A too */
static double a_gain_of_a_tenth(fake_gpu *g, int kernel, long n)
{
    const long number = number_of(g, n);
    if (number >= 0 && (number % 8 == 5 || number % 8 == 6))
        return 100.0 * (1 + aa_slow_by);
    return kernel == 1 ? 110.0 : 100.0;
}

FRESH(twice_the_noise_is_the_bound)
{
    for (int over = 0; over < 2; over++) {
        fake_gpu_make(&gpu, 0, 0);
        gpu.us = a_gain_of_a_tenth;
        aa_slow_by = over ? 0.051 : 0.049;
        const fa_paired c = paired_ok();
        near(c.ratio, 1.1, 1e-9);
        near(c.aa_noise, aa_slow_by, 1e-9);
        assert_int_equal(c.accepted, !over);
    }
}

/* The L2 is reset before the calibration and before the first sample of each, and never between samples. */
FRESH(samples_follow_without_a_reset)
{
    paired_ok();
    assert_int_equal(gpu.resets, 2 * 2 + 2);
}

/* Eight samples a block; those of the calibration do not rest. */
FRESH(samples_that_are_compared_are_rested)
{
    for (int rest_ms = 0; rest_ms <= 20; rest_ms += 20) {
        fake_gpu_make(&gpu, 100.0, 110.0);
        options.rest_ms = rest_ms;
        const fa_paired c = paired_ok();
        assert_int_equal(gpu.rests, rest_ms > 0 ? 8 * c.blocks : 0);
    }
}

/* The other candidate's time is tried on seen inputs (test_invariance.c): here that ends at once. */
FRESH(the_other_is_tried_on_seen_inputs)
{
    gpu.device.alloc = fake_no_memory;
    gpu.candidate[1].buffers.layout[FA_Q] = (fa_layout){.blocks = 1, .block_count = 8};
    paired_ends(FA_ERROR, "a copy of the inputs");
}

/* With a cold L2 the bytes must come from memory, unless they persist. */
FRESH(a_cold_l2_bounds_both)
{
    fake_gpu_make(&gpu, 1.5, 1.6);
    gpu.candidate[0].problem = gpu.candidate[1].problem = &fake_decode;
    paired_ok();
    options.l2 = FA_L2_COLD;
    paired_ends(FA_ERROR, "impossible");
    options.l2_persist = FA_L2_PERSIST_KV;
    paired_ok();
}

FRESH(no_clock_no_comparison)
{
    gpu.device.sample = NULL;
    paired_ends(FA_NOT_RUN, "");
}
