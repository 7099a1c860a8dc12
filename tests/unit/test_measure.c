/* fa_time on synthetic samples: bounds of stopping, dropping and noise, warm-up, impossible times, launches that do
 * nothing. What a whole measurement says is in tests/golden/timings.txt (test_measure_golden.c). */
#include "fake_gpu.h"
#include "timing/measure.h"
#include "unit.h"

#include <math.h>

static fake_gpu gpu;
static fa_options options;
static fa_reason why;

static int fresh(void **state) { return options = fake_options(), fake_gpu_make(&gpu, 100.0, 110.0), 0; }
#define FRESH(name) TEST_WITH(name, fresh, NULL)

/* words: of the reason, where it does not pass */
static fa_timing time_ends(fa_status status, const char *words)
{
    fa_timing timing;
    ends_with(fa_time(&gpu.candidate[0], &options, &timing, &why), status, &why, words);
    assert_int_equal(timing.done, status == FA_PASS);
    return timing;
}
static fa_timing time_ok(void) { return time_ends(FA_PASS, ""); }

FRESH(a_sample_that_was_not_gated_is_said)
{
    fake_gpu_make(&gpu, 5.0, 5.0);
    gpu.ungated = 51;
    assert_false(time_ok().gated);
}

/* One sample in so many takes longer by a share: few of them move the mean alone, more of them p90 too. */
static long slow_period;
static double slow_by;
static double slow_at_times(fake_gpu *g, int kernel, long n)
{
    return n % slow_period == 0 ? 100.0 * (1 + slow_by) : 100.0;
}

FRESH(noise_has_its_bounds)
{
    options.min_samples = 99; /* one more makes a hundred */
    const struct {
        int others;
        long period;
        double by;
        bool noisy;
    } cases[] = {{0, 20, 1.95, false}, {0, 20, 2.05, true}, {0, 5, 0.195, false}, {0, 5, 0.205, true},
                 {1, 20, 0.95, false}, {1, 20, 1.05, true}, {1, 5, 0.095, false}, {1, 5, 0.105, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_gpu_make(&gpu, 0, 0);
        gpu.us = slow_at_times;
        gpu.others = cases[i].others;
        slow_period = cases[i].period;
        slow_by = cases[i].by;
        assert_int_equal(time_ok().noisy, cases[i].noisy);
    }
}

/* The first and the last sample count too: six samples of calibration come before. */
FRESH(processes_are_seen_in_any_sample)
{
    const long at[] = {5, 6, 56, 106, 107}; /* the first is of the calibration, the last of the floor */
    for (int i = 0; i < 5; i++) {
        fake_gpu_make(&gpu, 100.0, 0);
        gpu.others = 3;
        gpu.others_at = 1 + at[i];
        assert_int_equal(time_ok().other_processes, i % 4 == 0 ? 0 : 3);
    }
}

static double pilot_us;
static double of_a_pilot_and_later(fake_gpu *g, int kernel, long n)
{
    return kernel == 0 && g->last[0].method == FA_TIMING_EVENT ? pilot_us : g->base_us[0];
}

/* 200 to 300 us, or one launch of any length above: at most four samples find it, before and after the warm-up. */
FRESH(a_graph_lasts_as_long_as_a_sample_should)
{
    options.timing = FA_TIMING_GRAPH;
    const struct {
        double pilot_us, later_us;
        int32_t launches, fits;
    } cases[] = {{115, 100, 2, 1}, {115, 150, 2, 1}, {115, 99.5, 3, 2}, {115, 151, 2, 4},
                 {500, 500, 1, 1}, {500, 200, 1, 1}, {500, 199, 2, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_gpu_make(&gpu, cases[i].later_us, 0);
        gpu.us = of_a_pilot_and_later;
        pilot_us = cases[i].pilot_us;
        assert_int_equal(time_ok().launches_per_sample, cases[i].launches);
        int of_kernel = 0;
        for (long n = 0; n < gpu.samples; n++)
            of_kernel += gpu.log[n] == 0;
        assert_int_equal(of_kernel, 2 * (3 + cases[i].fits) + 101);
    }
}

/* Outputs of more than 4 MiB are read back after the last sample alone. */
FRESH(a_large_output_is_looked_at_in_the_end)
{
    static uint16_t large[(2 << 20) + 1];
    for (int32_t more = 0; more < 2; more++) {
        const int32_t count = (2 << 20) + more;
        fake_gpu_make(&gpu, 100.0, 0);
        gpu.candidate[0].buffers.base[FA_O] = (fa_ptr)(uintptr_t)large;
        gpu.candidate[0].buffers.count[FA_O] = (size_t)count;
        gpu.candidate[0].buffers.layout[FA_O].dim = count;
        gpu.candidate[0].buffers.layout[FA_O].block_count = (size_t)count;
        memset(large, 0, sizeof large);
        time_ends(FA_WRONG, ""); /* the fake kernel does not write there: the poison stays */
        assert_int_equal(strstr(why.text, "sample 100 ") != NULL, more);
    }
}

/* A kernel that writes its output, but not the log-sum-exp, when it is timed. */
FRESH(the_log_sum_exp_is_looked_at_too)
{
    static float lse[8];
    fa_buffers *buffers = &gpu.candidate[0].buffers;
    buffers->tensors = FA_L + 1;
    buffers->offset = FA_GUARD_COUNT;
    buffers->base[FA_O] -= FA_GUARD_COUNT * sizeof(uint16_t);
    buffers->base[FA_L] = (fa_ptr)(uintptr_t)lse - FA_GUARD_COUNT * sizeof(uint16_t);
    time_ok(); /* of no rows */
    buffers->count[FA_L] = 2 * sizeof lse / sizeof *lse;
    buffers->layout[FA_L] = (fa_layout){
        .batch = 1, .heads = 1, .seq = 1, .dim = 2, .blocks = 1, .block_count = 2 * sizeof lse / sizeof *lse};
    memset(lse, 0, sizeof lse);
    time_ends(FA_WRONG, "did not write the output");
}

FRESH(last_bits_may_differ_only_where_it_is_declared)
{
    gpu.wobbles = 2; /* of 0.00098; 1e-3 + 1e-3 times 1 to 1.06 is allowed */
    gpu.candidate[0].nondeterministic = true;
    time_ok();
    gpu.wobbles = 3;
    for (int element = 0; element < 64; element += 63) { /* the first and the last */
        gpu.only_wobble = 1 + element;
        time_ends(FA_WRONG, "");
    }
}

static const fa_problem canonical = {.batch = 2, .heads = 8, .kv_heads = 8, .seq_q = 512, .seq_kv = 512, .dim = 64};

FRESH(faster_than_the_hardware_is_impossible)
{
    fake_gpu_make(&gpu, 0.9, 0);
    gpu.candidate[0].problem = &canonical; /* 1.07e9 FLOP at 1070 TFLOP/s take 1.003 us */
    assert_true(time_ends(FA_ERROR, "impossible").impossible);
    fake_gpu_make(&gpu, 1.1, 0);
    gpu.candidate[0].problem = &canonical;
    assert_false(time_ok().impossible);
}

static double slow_clock(fake_gpu *g, long n) { return 990; }

FRESH(faster_than_the_measured_clock_is_impossible)
{
    fake_gpu_make(&gpu, 1.996, 0);
    gpu.candidate[0].problem = &canonical; /* 2.006 us at 990 MHz */
    gpu.mhz = slow_clock;
    assert_true(time_ends(FA_ERROR, "100.5 %").impossible);
    fake_gpu_make(&gpu, 2.016, 0);
    gpu.candidate[0].problem = &canonical;
    gpu.mhz = slow_clock;
    near(time_ok().percent_of_peak, 99.5, 0.0001);
}

static double unknown_clock(fake_gpu *g, long n) { return 0; }

/* Without a measured clock, or on a GPU whose peak is not known, there is no share of the peak. */
FRESH(an_unknown_peak_has_no_share)
{
    fake_gpu_make(&gpu, 1.1, 0);
    gpu.candidate[0].problem = &canonical;
    gpu.mhz = unknown_clock;
    assert_true(isnan(time_ok().percent_of_peak));
    fake_gpu_make(&gpu, 1e-3, 0);
    gpu.candidate[0].problem = &canonical;
    snprintf(gpu.device.info.arch, sizeof gpu.device.info.arch, "sm_35");
    assert_true(isnan(time_ok().percent_of_peak));
}

FRESH(only_timed_samples_are_rested)
{
    fake_gpu_make(&gpu, 5.0, 5.0);
    gpu.noise = 0.002;
    near(time_ok().rest_ms + 1, 1, 1e-9);
    assert_int_equal(gpu.rests, 0);
    options.rest_ms = 20;
    const fa_timing t = time_ok();
    assert_int_equal(gpu.rests, t.us.count);
    near(t.rest_ms, 20, 1e-9);
}

FRESH(what_persists_need_not_come_from_memory)
{
    fake_gpu_make(&gpu, 1.5, 0);
    gpu.candidate[0].problem = &fake_decode;
    options.l2 = FA_L2_COLD;
    time_ends(FA_ERROR, "");
    assert_false(gpu.last[0].persist_kv);
    options.l2_persist = FA_L2_PERSIST_KV;
    assert_true(time_ok().persist_kv);
    assert_true(gpu.last[0].persist_kv);
}

/* After the samples, on inputs that an earlier launch has seen (test_invariance.c): here it ends at once. */
FRESH(the_time_is_tried_on_seen_inputs)
{
    gpu.device.alloc = fake_no_memory;
    gpu.candidate[0].buffers.layout[FA_Q] = (fa_layout){.blocks = 1, .block_count = 8};
    time_ends(FA_ERROR, "a copy of the inputs");
}

FRESH(no_clock_no_time)
{
    gpu.device.sample = NULL;
    time_ends(FA_NOT_RUN, "");
}

static double slow_once(fake_gpu *g, int kernel, long n) { return kernel < 0 ? 1.0 : n == 12 ? 10.4 : 11.0; }

static fa_timing time_beaten(double beat_us)
{
    fa_timing timing;
    options.beat = beat_us;
    assert_int_equal(fa_time(&gpu.candidate[0], &options, &timing, &why), FA_PASS);
    return timing;
}

/* Beaten before the warm-up, or after it. */
static void is_beaten(double beat_us, double by_us, bool warm)
{
    const fa_timing t = time_beaten(beat_us);
    assert_true(!t.done && t.beaten_us == by_us);
    assert_int_equal(t.warmup_ms > 0, warm);
}

static double half_clock(fake_gpu *g, long n) { return n < 200 ? 990 : 1980; }
static bool one_throttled(fake_gpu *g, long n) { return n == 14; }

FRESH(a_loser_is_not_timed_to_the_end)
{
    fake_gpu_make(&gpu, 11.0, 5.0);
    is_beaten(10.0, 11.0, false);
    assert_true(gpu.samples < 40);                                     /* no floor, no invariance */
    assert_int_equal(gpu.samples - gpu.resets, FA_BEATEN_SAMPLES + 2); /* two choose the method */
    /* At 5 % and below it is timed; without --beat, rested, and where its clock is unknown, too. */
    assert_true(time_beaten(11.0 / FA_BEATEN_MARGIN).done && time_beaten(0).done);
    options.rest_ms = 1;
    is_beaten(10.0, 11.0, true);
    assert_true(gpu.rests == FA_BEATEN_SAMPLES);
    options.rest_ms = 0;
    gpu.device.info.clock_mhz_max = 0;
    is_beaten(10.0, 11.0, true);
    /* One sample within reach, or that was throttled, is enough to go on: here until after the warm-up. */
    fake_gpu_make(&gpu, 11.0, 5.0);
    gpu.us = slow_once;
    is_beaten(10.0, 11.0, true);
    fake_gpu_make(&gpu, 11.0, 5.0);
    gpu.throttled = one_throttled;
    is_beaten(10.0, 11.0, true);
    /* At half the clock twice the time says nothing. */
    for (int us = 19; us <= 20; us++) {
        fake_gpu_make(&gpu, us, 5.0);
        gpu.mhz = half_clock;
        is_beaten(9.5, us == 19 ? 19.0 : 10.0, us == 19);
    }
}
