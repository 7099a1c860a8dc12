/* Made-up times, clocks and faults of a GPU, and all that the timing protocol says of them; roofs and problems in
 * numbers. tests/golden has the lines. */
#include "fake_gpu.h"
#include "timing/measure.h"
#include "timing/paired.h"
#include "timing/roofline.h"
#include "unit.h"

#include <math.h>

static fake_gpu gpu;
static fa_reason why;

static bool each_5th(fake_gpu *g, long n) { return n % 5 == 2; }
static bool each_4th(fake_gpu *g, long n) { return n % 4 == 2; }
static bool a_5th_and_one(fake_gpu *g, long n) { return each_5th(g, n) || n % 100 == 6; } /* the first timed */
static bool always(fake_gpu *g, long n) { return n >= 0; }
static double falling(fake_gpu *g, long n) { return n % 10 == 7 ? 1880 : n % 10 == 8 ? 1882 : 1980; }
static double jump(fake_gpu *g, long n) { return n < 26 ? 1400 : 1800; }
static double ramp(fake_gpu *g, long n) { return n < 400 ? 1400 + (double)n : 1800; }
static double waves(fake_gpu *g, long n) { return 1800 + 10 * (double)(n / 20 % 2); }
static double creep(fake_gpu *g, long n) { return n < 150 ? 1861 + 0.8 * (double)n : 1980; } /* 2 % in 100 ms */
static double restless(fake_gpu *g, long n) { return n % 40 < 20 ? 1000 : 1900; }
/* A bin's clock is the median of its first 256 samples; three of calibration come before. */
static double bins_alike(fake_gpu *g, long n) { return n < 3 + 128 ? 1000 : n < 900 ? 2000 : 1500; }
static double not_yet_steady(fake_gpu *g, long n) { return n < 4 ? 1000 : 2000; }
static double unknown(fake_gpu *g, long n) { return (double)n * 0; }
static double times_of(fake_gpu *g, int kernel, long n) /* steady, with every eighth far longer */
{
    return kernel < 0 ? 1.5 : g->base_us[kernel] * (n % 8 == 3 ? 1.95 : 1.0 + 1e-4 * (double)(n % 7));
}
static double wide(fake_gpu *g, int kernel, long n)
{
    return kernel < 0 ? 1.5 : g->base_us[kernel] * (1 + 0.35 * (double)(n % 11) / 11);
}
static double faster_when_many(fake_gpu *g, int kernel, long n)
{
    return kernel < 0 ? 1.0 : g->base_us[kernel] / (g->last[kernel].launches > 20 ? 1.7 : 1.0);
}
static double uneven(fake_gpu *g, int kernel, long n)
{
    return kernel < 0 ? 1.0 : g->base_us[kernel] * (n % 2 ? 3.0 : 1.0);
}
static double halving(fake_gpu *g, int kernel, long n)
{
    return kernel < 0 ? 1.0 : g->base_us[kernel] / (double)(1 << (n < 9 ? n : 9));
}
static double two_values(fake_gpu *g, int kernel, long n) { return n % 2 ? 100.0 : 120.0; } /* for ever */
static double slow_while_cold(fake_gpu *g, int kernel, long n) { return n < 20 ? 60.0 : 8.0; }
static double fast_while_cold(fake_gpu *g, int kernel, long n) { return n < 20 ? 8.0 : 60.0; }

typedef struct scenario {
    const char *name;
    double us, other_us, noise, drift, wall_s;
    double (*times)(fake_gpu *, int, long), (*mhz)(fake_gpu *, long);
    bool (*throttled)(fake_gpu *, long), (*capped)(fake_gpu *, long), (*waited)(fake_gpu *, long);
    int timing, l2, warmup_ms, min_samples;
    double max_time;
    int others; /* processes on the GPU */
    bool nondeterministic, wobbles, idle;
    bool alone; /* a comparison says the same of another row */
} scenario;

static const scenario scenarios[] = {
    {"steady and short", 5, 6, 0.001},
    {"at 19 us", 19.9, 25, 0.001},
    {"at 20 us", 20, 25, 0.0},
    {"at 21 us", 21, 19, 0.001},
    {"long", 900, 1000, 0.002},
    {"two hundred", 205, 190, 0.0, .timing = FA_TIMING_GRAPH},
    {"very short", 0.05, 0.06, 0.001},
    {"noisy", 30, 33, 0.1, .wall_s = 1e-3, .max_time = 0.5},
    {"noisier", 30, 33, 0.3, .wall_s = 1e-3, .max_time = 2.5},
    {"drifting", 30, 40, 0.0, 1e-4, .wall_s = 1e-3, .max_time = 0.3},
    {"events by name", 5, 4.9, 0.001, .timing = FA_TIMING_EVENT},
    {"graphs by name", 50, 60, 0.001, .timing = FA_TIMING_GRAPH},
    {"cold", 5, 6, 0.001, .l2 = FA_L2_COLD},
    {"cold graphs", 5, 6, 0.001, .l2 = FA_L2_COLD, .timing = FA_TIMING_GRAPH},
    {"warm-up, steady", 30, 40, 0.001, .warmup_ms = 500, .wall_s = 1e-3},
    {"warm-up, ramp", 30, 40, 0.001, .mhz = ramp, .warmup_ms = 900, .wall_s = 1e-3},
    {"warm-up, a jump", 30, 40, 0.001, .mhz = jump, .warmup_ms = 500, .wall_s = 1e-3},
    {"warm-up, waves", 30, 40, 0.001, .mhz = waves, .warmup_ms = 300, .wall_s = 1e-3, .alone = true},
    {"warm-up, creep", 30, 40, 0.001, .mhz = creep, .warmup_ms = 3000, .wall_s = 2e-3, .alone = true},
    {"warm-up, restless", 30, 40, 0.001, .mhz = restless, .warmup_ms = 200, .wall_s = 2e-3, .alone = true},
    {"warm-up, a sample a bin", 30, 40, 0.001, .warmup_ms = 1000, .wall_s = 30e-3, .alone = true},
    {"warm-up, 256 samples a bin", 30, 40, 0.001, .mhz = bins_alike, .warmup_ms = 1000, .wall_s = 20e-6, .alone = true},
    {"warm-up, slow before it", .times = slow_while_cold, .warmup_ms = 1000, .wall_s = 2e-3, .min_samples = 5},
    {"warm-up, fast before it", .times = fast_while_cold, .warmup_ms = 1000, .wall_s = 2e-3, .min_samples = 5},
    {"warm-up, many samples a bin", 30, 40, 0.001, .mhz = ramp, .warmup_ms = 200, .wall_s = 2e-5},
    {"no clock rate", 30, 40, 0.001, .mhz = unknown, .warmup_ms = 300, .wall_s = 1e-3, .alone = true},
    {"a fifth throttled", 30, 40, 0.001, .throttled = each_5th, .min_samples = 99}, /* and one more is poisoned */
    {"a fifth and one throttled", 30, 40, 0.001, .throttled = a_5th_and_one, .min_samples = 99, .alone = true},
    {"all throttled", 30, 40, 0.001, .throttled = always, .wall_s = 1e-2, .max_time = 0.5},
    {"capped, clock steady", 30, 40, 0.001, .capped = always, .alone = true},
    {"not capped, clock falls", 30, 40, 0.001, .mhz = falling, .alone = true},
    {"capped, clock falls", 30, 40, 0.001, .capped = always, .mhz = falling},
    {"capped now and then", 30, 40, 0.001, .capped = each_4th, .mhz = falling, .alone = true},
    {"a fifth waited", 30, 40, 0.001, .waited = each_5th, .min_samples = 99, .alone = true},
    {"a fifth and one waited", 30, 40, 0.001, .waited = a_5th_and_one, .min_samples = 99},
    {"long ones between", 30, 33, .times = times_of},
    {"long ones, others", 30, 33, .times = times_of, .others = 2, .alone = true},
    {"wide", 30, 31, .times = wide, .wall_s = 1e-3, .max_time = 0.4},
    {"wide, others", 30, 31, .times = wide, .wall_s = 1e-3, .max_time = 0.4, .others = 1},
    {"faster in a row", 30, 31, .times = faster_when_many, .timing = FA_TIMING_GRAPH},
    {"halving", 4000, 31, .times = halving, .timing = FA_TIMING_GRAPH},
    {"few samples", 30, 40, 0.001, .min_samples = 7},
    {"one sample", 30, 40, 0.001, .min_samples = 1},
    {"no time", 30, 40, 0.001, .wall_s = 0.2, .max_time = 0.1},
    {"time for three", 30, 40, 0.001, .wall_s = 0.1, .max_time = 0.45, .alone = true},
    {"two uneven", 30, 40, .times = uneven, .wall_s = 0.1, .max_time = 0.15},
    {"three uneven", 30, 40, .times = uneven, .wall_s = 0.1, .max_time = 0.35, .alone = true},
    {"four uneven", 30, 40, .times = uneven, .wall_s = 0.1, .max_time = 0.45, .alone = true},
    {"last bits differ", 30, 40, 0.001, .wobbles = true},
    {"last bits may differ", 30, 40, 0.001, .wobbles = true, .nondeterministic = true, .alone = true},
    {"idle", 30, 40, 0.001, .idle = true, .alone = true},
    {"noise that settles", 100, 100, 0.05},
    {"never settles", .times = two_values, .max_time = 100, .alone = true},
    {"a hair faster", 30, 30.91, 0.0},
    {"not quite", 30, 30.89, 0.0},
    {"slower", 30, 25, 0.001},
    {"impossible", 1e-7, 30, 0.0, .timing = FA_TIMING_EVENT},
    {"long", 75000, 10001, 0.001, .wall_s = 0.075, .warmup_ms = 500, .max_time = 0.5},
    {"long by turns", 40000, 9999, 0.001, .wall_s = 0.04, .warmup_ms = 500, .max_time = 0.5, .mhz = not_yet_steady},
    {"impossible other", 30, 1e-7, 0.0, .timing = FA_TIMING_EVENT},
};

static fa_options prepare(const scenario *s)
{
    fa_options options = fake_options();
    fake_gpu_make(&gpu, s->us, s->other_us);
    gpu.noise = s->noise;
    gpu.drift = s->drift;
    gpu.wall_s = s->wall_s;
    gpu.us = s->times != NULL ? s->times : gpu.us;
    gpu.mhz = s->mhz;
    gpu.throttled = s->throttled;
    gpu.capped = s->capped;
    gpu.waited = s->waited;
    gpu.wobbles = s->wobbles;
    gpu.idle_in_samples = s->idle;
    gpu.others = s->others;
    gpu.candidate[0].nondeterministic = s->nondeterministic;
    options.timing = s->timing != 0 ? s->timing : options.timing;
    options.l2 = s->l2 != 0 ? s->l2 : options.l2;
    options.warmup_ms = s->warmup_ms;
    options.min_samples = s->min_samples != 0 ? s->min_samples : options.min_samples;
    options.max_time = s->max_time > 0 ? s->max_time : options.max_time;
    return options;
}

static void say_time(golden *g, const scenario *s)
{
    const fa_options options = prepare(s);
    fa_timing t;
    gpu.trace = g;
    golden_say(g, "%s", s->name);
    const fa_status status = fa_time(&gpu.candidate[0], &options, &t, &why);
    fake_gpu_end_trace(&gpu);
    if (status != FA_PASS)
        golden_say(g, "; %d %s", status, why.text);
    golden_say(
        g,
        "; %zu samples: min %.6g p10 %.6g p50 %.6g p90 %.6g mean %.6g ci %.6g %.6g; method %d l2 %d %d launches, "
        "%d discarded, %.6g MHz%s%s%s%s%s%s; floor %.6g roof %.6g warm-up %.4g ms, capped %.4g, %d poisoned, %d "
        "others; %ld launches, %ld resets%s%s\n",
        t.us.count, t.us.min, t.us.p10, t.us.p50, t.us.p90, t.us.mean, t.us.ci95[0], t.us.ci95[1], t.method, t.l2,
        t.launches_per_sample, t.discarded, t.sm_clock_mhz_p50, t.done ? " done" : "", t.throttled ? " throttled" : "",
        t.settled ? " settled" : "", t.impossible ? " impossible" : "", t.gated ? " gated" : "",
        t.noisy ? " noisy" : "", t.floor_us, t.roofline_us, t.warmup_ms, t.power_capped, t.poisoned, t.other_processes,
        gpu.launches, gpu.resets, t.noisy ? "; " : "", t.noisy ? t.noisy_reason : "");
}

static void say_paired(golden *g, const scenario *s)
{
    const fa_options options = prepare(s);
    fa_paired p;
    golden_say(g, "%s: ", s->name);
    const fa_status status = fa_time_paired(&gpu.candidate[0], &gpu.candidate[1], &options, &p, &why);
    golden_say(g,
               "%d %s ratio %.6g (%.6g %.6g) noise %.6g, %d blocks, %.6g and %.6g us, method %d, %d discarded%s%s%s%s; "
               "%ld samples in order %016llx, %ld launches, %d after %d\n",
               status, status != FA_PASS ? why.text : "", p.ratio, p.ratio_ci95[0], p.ratio_ci95[1], p.aa_noise,
               p.blocks, p.p50_us, p.other_p50_us, p.method, p.discarded, p.done ? " done" : "",
               p.accepted ? " accepted" : "", p.throttled ? " throttled" : "", p.settled ? " settled" : "", gpu.samples,
               (unsigned long long)golden_digest(0, gpu.log, sizeof gpu.log), gpu.launches, gpu.last[0].launches,
               gpu.last[0].warmup_launches);
}

TEST(a_measurement_is_what_its_samples_say)
{
    golden g = {0};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        say_time(&g, &scenarios[i]);
    golden_compare(&g, "timings.txt");
}

TEST(a_comparison_is_what_its_blocks_say)
{
    golden g = {0};
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (!scenarios[i].alone)
            say_paired(&g, &scenarios[i]);
    golden_compare(&g, "comparisons.txt");
}

static const fa_problem problems[] = {
    {2, 8, 8, 512, 512, 64, false, 0.125f}, {2, 8, 8, 512, 512, 64, true, 0.125f}, {1, 12, 3, 7, 100, 40, true, 0.1f},
    {3, 4, 1, 100, 7, 256, true, 0.1f},     {1, 1, 1, 1, 1, 16, true, 1},          {5, 6, 2, 33, 65, 96, false, 1},
};

TEST(roofs_are_those_of_the_data_sheets)
{
    golden g = {0};
    const char *const archs[] = {"sm_70",  "sm_72",  "sm_75",  "sm_80",  "sm_86",  "sm_87", "sm_89", "sm_90",
                                 "sm_90a", "sm_100", "sm_103", "sm_120", "sm_121", "sm_35", ""};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        fa_device_info info = {.sm_count = 132, .clock_mhz_max = 1980, .memory_gbytes_per_s = 4800};
        snprintf(info.arch, sizeof info.arch, "%s", archs[i]);
        golden_say(&g, "'%s': %d operations a clock\n", archs[i], fa_tensor_flop_per_clock(archs[i]));
        for (size_t k = 0; k < sizeof problems / sizeof *problems && i % 5 == 2; k++) {
            const fa_problem *p = &problems[k];
            const fa_throughput one = fa_throughput_of(10, 1500, p, &info), two = fa_throughput_of(12.5, 0, p, &info),
                                none = fa_throughput_of(0, 1500, p, &info),
                                brief = fa_throughput_of(0.25, 1500, p, &info);
            fa_device_info slow = info, unknown = info;
            slow.memory_gbytes_per_s = 40;
            unknown.memory_gbytes_per_s = 0;
            golden_say(&g,
                       "    from slow memory %.6g, unknown %.6g; %.9g bytes, at least %.6g us warm, %.6g cold; %.6g of "
                       "%.6g TFLOPS (%.6g), %.6g GB/s, boost "
                       "%.6g; %.6g of %.6g; %g; in a quarter of a microsecond %.6g\n",
                       fa_roofline_us(p, &slow, FA_L2_COLD), fa_roofline_us(p, &unknown, FA_L2_COLD), fa_input_bytes(p),
                       fa_roofline_us(p, &info, FA_L2_WARM), fa_roofline_us(p, &info, FA_L2_COLD), one.tflops,
                       one.peak_tflops, one.fraction_of_peak, one.gbytes_per_s, one.peak_boost_tflops, two.tflops,
                       two.peak_tflops, none.tflops + none.peak_tflops + none.gbytes_per_s, brief.tflops);
        }
    }
    golden_compare(&g, "roofs.txt");
}

TEST(problems_are_counted)
{
    golden g = {0};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        const fa_problem *p = &problems[k];
        golden_say(&g, "%zu q %zu kv, %lld pairs, %.9g FLOP, %.9g bytes; keys of rows", fa_problem_q_count(p),
                   fa_problem_k_count(p), (long long)fa_problem_pairs(p), fa_problem_flop(p), fa_problem_bytes(p));
        for (int32_t row = 0; row < p->seq_q; row += p->seq_q / 7 + 1)
            golden_say(&g, " %d", fa_problem_keys(p, 0, row).end);
        golden_say(&g, " %d\n", fa_problem_keys(p, 0, p->seq_q - 1).end);
    }
    const char *const lines[] = {"--strides far",
                                 "--strides far --batch 4096",
                                 "--strides far --batch 4097",
                                 "--strides far --batch 2 --heads 1 --seq 4097 --seq-kv 9",
                                 "--strides far --batch 1 --heads 4097",
                                 "--strides far --seq 4097 --seq-kv 9",
                                 "--strides far --batch 1 --heads 1 --seq 4097 --seq-kv 9",
                                 "--strides far --batch 1 --heads 2 --seq 4097 --seq-kv 9",
                                 "--strides far --seq-kv 4096",
                                 "--strides far --seq-kv 4097",
                                 "--batch 5000 --heads 1 --seq 9000",
                                 "--heads 6 --kv-heads 4",
                                 "--dim 12",
                                 "--dim 8",
                                 "--dim 264",
                                 "--dim 256 --scale 3",
                                 "--batch 65535 --heads 65535 --seq 1048576",
                                 "--seq 3 --seq-kv 9 --kv-heads 2 --causal",
                                 "--dim 16 --heads 65536 --batch 65536 --seq 1",
                                 "--dtype bf16",
                                 "--heads 1024 --kv-heads 1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fa_options options;
        fa_problem p = {0};
        fa_status status = parse_words(lines[i], &options, &why);
        if (status == FA_PASS)
            status = fa_problem_make(&options, &p, &why);
        golden_say(&g, "%s: %d %s; %d %d/%d %d/%d %d %d %g\n", lines[i], status, status == FA_PASS ? "" : why.text,
                   p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv, p.dim, p.causal, (double)p.scale);
    }
    golden_compare(&g, "problems.txt");
}
