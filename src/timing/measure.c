#include "timing/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/random.h"
#include "check/rules.h"
#include "timing/calibrate.h"
#include "timing/invariance.h"
#include "timing/roofline.h"

/* Reading an output back lets the GPU rest, and a card at its power limit then runs faster for a tenth of a second:
 * outputs larger than FEW_BYTES are compared after the last sample only. */
enum { FLOOR_SAMPLES = 25, POISONED_SAMPLES = 3, FEW_BYTES = 4 << 20 };

static const double NOISY = 0.10;        /* mean over median - 1: above, samples hold work of other processes */
static const double NOISY_SHARED = 0.05; /* the same, where other processes have a context on the GPU */
static const double WAITED_US = 500.0;   /* a sample that waited longer for the GPU than this ... */
static const double WAITED_SHARE = 0.2;  /* ... and the share of them that makes a measurement noisy */
static const double CLOCK_FELL = 0.95;   /* a power-capped sample below this share of the median clock is throttled */

/* What the samples of one measurement said, in the order they were taken. */
typedef struct series {
    size_t count;
    fa_sample samples[FA_SAMPLES_MAX];
    double scratch[FA_SAMPLES_MAX];
} series;

static double median_clock(series *all)
{
    for (size_t i = 0; i < all->count; i++)
        all->scratch[i] = all->samples[i].sm_mhz;
    return fa_stats_of(all->scratch, all->count).p50;
}

/* A card at full load runs at its power limit; a sample counts as throttled only when its clock fell too. */
static bool throttled(const fa_sample *sample, double clock_mhz)
{
    return sample->throttled || (sample->power_capped && sample->sm_mhz < CLOCK_FELL * clock_mhz);
}

/* Time slices of another process make single samples long: that moves the mean before it moves p90. */
static void judge_noise(const series *all, fa_timing *timing)
{
    const fa_stats *us = &timing->us;
    for (size_t i = 0; i < all->count; i++)
        if (all->samples[i].other_processes > timing->other_processes)
            timing->other_processes = all->samples[i].other_processes;
    const double most = timing->other_processes > 0 ? NOISY_SHARED : NOISY;
    timing->noisy = us->count >= 3 && (us->mean > (1 + most) * us->p50 || us->p90 > (1 + 2 * most) * us->p50);
    size_t waited = 0;
    for (size_t i = 0; i < all->count; i++)
        waited += all->samples[i].gated && all->samples[i].waited_us > WAITED_US;
    /* Queued work starts in our own time slice of the GPU: such samples may look calm beside another process. */
    if ((double)waited > WAITED_SHARE * (double)all->count) {
        timing->noisy = true;
        snprintf(timing->noisy_reason, sizeof timing->noisy_reason,
                 "%zu of %zu samples waited for the GPU: another process uses it, or the host is busy", waited,
                 all->count);
    } else if (timing->noisy)
        snprintf(timing->noisy_reason, sizeof timing->noisy_reason, "mean %.2f and p90 %.2f us over a p50 of %.2f us%s",
                 us->mean, us->p90, us->p50, timing->other_processes > 0 ? ", other processes on this GPU" : "");
}

/* Statistics without the throttled samples; with all of them, and said so, when they are too many to drop. */
static void summarise(series *all, fa_timing *timing)
{
    const double clock_mhz = median_clock(all);
    size_t kept = 0, capped = 0;
    timing->gated = true;
    for (size_t i = 0; i < all->count; i++) {
        capped += all->samples[i].power_capped;
        timing->gated = timing->gated && all->samples[i].gated;
        if (!throttled(&all->samples[i], clock_mhz))
            all->scratch[kept++] = all->samples[i].us;
    }
    timing->throttled = (double)(all->count - kept) > FA_THROTTLED_SHARE * (double)all->count;
    if (timing->throttled)
        for (kept = 0; kept < all->count; kept++)
            all->scratch[kept] = all->samples[kept].us;
    timing->us = fa_stats_of(all->scratch, kept);
    timing->discarded = (int32_t)(all->count - kept);
    timing->sm_clock_mhz_p50 = clock_mhz;
    timing->power_capped = (double)capped / (double)all->count;
}

/* What the launches must write, and which samples are checked for it. */
typedef struct output_check {
    const fa_candidate *candidate;
    uint16_t *expected, *found; /* the output, then the log-sum-exp where there is one */
    size_t bytes, all_bytes;    /* of the output; of both */
    uint64_t random;
    size_t next; /* the sample that is poisoned next */
    int32_t left, done;
} output_check;

static fa_status read_output(const output_check *check, uint16_t *to, fa_reason *why)
{
    FA_TRY(fa_buffers_output(&check->candidate->buffers, to, why));
    return fa_buffers_read_lse(&check->candidate->buffers, (float *)(void *)((char *)to + check->bytes), why);
}

static size_t draw_below(output_check *check, size_t span) { return (size_t)(fa_random_next(&check->random) % span); }

static bool output_agrees(const output_check *check)
{
    if (!check->candidate->nondeterministic)
        return memcmp(check->expected, check->found, check->all_bytes) == 0;
    const fa_dtype dtype = fa_problem_dtype_o(check->candidate->problem);
    const float rule = (float)fa_rule_tolerance(dtype);
    const size_t count = fa_buffers_output_count(&check->candidate->buffers);
    for (size_t i = 0; i < count; i++) {
        const float expected = fa_element_to_float(dtype, check->expected[i]);
        const float found = fa_element_to_float(dtype, check->found[i]);
        if (!(fabsf(found - expected) <= rule + rule * fabsf(expected)))
            return false;
    }
    return true;
}

static fa_status output_check_make(const fa_candidate *candidate, const fa_options *options, output_check *check,
                                   fa_reason *why)
{
    *check = (output_check){.candidate = candidate,
                            .bytes = fa_buffers_output_halves(&candidate->buffers) * sizeof(uint16_t),
                            .random = (uint64_t)options->seed};
    const size_t lse_halves = fa_buffers_has_lse(&candidate->buffers) ? candidate->buffers.count[FA_L] : 0;
    check->left = check->bytes > FEW_BYTES ? 0 : POISONED_SAMPLES;
    check->next = draw_below(check, (size_t)options->min_samples / POISONED_SAMPLES + 1);
    check->all_bytes = check->bytes + lse_halves * sizeof(uint16_t);
    check->expected = fa_alloc(check->all_bytes);
    check->found = fa_alloc(check->all_bytes);
    FA_TRY(fa_candidate_launch(candidate, why));
    return read_output(check, check->expected, why);
}

static void output_check_free(output_check *check)
{
    free(check->expected);
    free(check->found);
}

static fa_status check_output(output_check *check, size_t sample, fa_reason *why)
{
    FA_TRY(read_output(check, check->found, why));
    if (!output_agrees(check))
        return fa_refuse(why, FA_WRONG,
                         "sample %zu of the timing did not write the output that the checked launch wrote", sample);
    check->done++;
    check->left--;
    check->next = sample + 1 + draw_below(check, 30);
    return FA_PASS;
}

static bool time_is_up(double start_s, double last_s, const fa_options *options)
{
    return fa_now_s() - start_s + 2 * last_s > options->max_time; /* the next one, and the last */
}

static fa_status take_sample(fa_device *device, const fa_sample_request *request, output_check *check, bool poisoned,
                             series *all, fa_reason *why)
{
    if (poisoned)
        FA_TRY(fa_buffers_poison_output(&check->candidate->buffers, why));
    FA_TRY(device->sample(device, request, &all->samples[all->count], why));
    if (poisoned)
        FA_TRY(check_output(check, all->count, why));
    all->count++;
    return FA_PASS;
}

/* Before the warm-up: the samples at the clock as it is, each made as short as the highest clock could make it. */
static fa_status compare_early(const fa_candidate *candidate, fa_sample_request *request, const fa_options *options,
                               double *beaten_us, fa_reason *why)
{
    const double highest_mhz = candidate->device->info.clock_mhz_max;
    double least_us = INFINITY;
    if (options->beat <= 0 || options->rest_ms > 0)
        return FA_PASS;
    FA_TRY(fa_calibrate_choose(candidate->device, &request, 1, options, why));
    fa_sample_request again = *request;
    again.reset_l2 = false;
    for (int i = 0; i < FA_BEATEN_SAMPLES; i++) {
        fa_sample sample;
        FA_TRY(candidate->device->sample(candidate->device, &again, &sample, why));
        const double us = sample.us * fmin(1.0, sample.sm_mhz / highest_mhz);
        if (!(highest_mhz > 0) || sample.throttled || !fa_stats_beyond(us, options->beat))
            return FA_PASS;
        least_us = fmin(least_us, us);
    }
    *beaten_us = least_us;
    return FA_PASS;
}

/* The same of the first samples, at the clock that the warm-up has reached. */
static bool is_beaten(const series *all, double beat_us, double *beaten_us)
{
    double least_us = INFINITY;
    for (size_t i = 0; i < all->count; i++) {
        if (all->samples[i].throttled || !fa_stats_beyond(all->samples[i].us, beat_us))
            return false;
        least_us = fmin(least_us, all->samples[i].us);
    }
    *beaten_us = least_us;
    return true;
}

/* Samples until the interval of the median is narrow, or time or samples are used up. One more follows, and its output
 * is always filled with NaN before: a kernel cannot know which sample that is, because it depends on the times. */
static fa_status sample_all(fa_device *device, fa_sample_request *request, const fa_options *options,
                            output_check *check, series *all, fa_timing *timing, fa_reason *why)
{
    const double start_s = fa_now_s();
    double last_s;
    size_t look_at = (size_t)options->min_samples;
    do {
        const double begun_s = fa_now_s();
        FA_TRY(take_sample(device, request, check, check->left > 0 && all->count >= check->next, all, why));
        last_s = fa_now_s() - begun_s;
        if (options->beat > 0 && all->count == FA_BEATEN_SAMPLES && is_beaten(all, options->beat, &timing->beaten_us))
            return FA_PASS;
        if (all->count < look_at)
            continue;
        look_at = fa_stats_next_look(all->count);
        summarise(all, timing);
        timing->settled = fa_stats_settled(&timing->us, FA_SETTLED);
    } while (!timing->settled && all->count + 1 < FA_SAMPLES_MAX && !time_is_up(start_s, last_s, options));
    FA_TRY(take_sample(device, request, check, true, all, why));
    summarise(all, timing);
    timing->poisoned = check->done;
    return FA_PASS;
}

static fa_status measure_floor(fa_device *device, const fa_sample_request *request, double *us, fa_reason *why)
{
    fa_sample_request empty = *request;
    empty.kernel = NULL;
    empty.rest_ms = 0;
    empty.persist_kv = false;
    double samples_us[FLOOR_SAMPLES];
    for (int i = 0; i < FLOOR_SAMPLES; i++) {
        fa_sample sample;
        FA_TRY(device->sample(device, &empty, &sample, why));
        samples_us[i] = sample.us;
    }
    *us = fa_stats_of(samples_us, FLOOR_SAMPLES).p50;
    return FA_PASS;
}

static fa_status measure(const fa_candidate *candidate, const fa_options *options, fa_sample_request *request,
                         output_check *check, series *all, fa_timing *timing, fa_reason *why)
{
    fa_device *device = candidate->device;
    FA_TRY(compare_early(candidate, request, options, &timing->beaten_us, why));
    if (timing->beaten_us > 0)
        return FA_PASS;
    FA_TRY(fa_calibrate(device, &request, 1, options, &timing->warmup_ms, why));
    request->reset_l2 = false;
    request->rest_ms = timing->rest_ms = options->rest_ms;
    timing->method = request->method;
    timing->l2 = request->l2;
    timing->persist_kv = request->persist_kv;
    timing->launches_per_sample = request->launches;
    FA_TRY(sample_all(device, request, options, check, all, timing, why));
    return timing->beaten_us > 0 ? FA_PASS : measure_floor(device, request, &timing->floor_us, why);
}

/* Refuses a median that the hardware cannot reach: by its highest clock and, a sharper bound, by the measured one. */
static fa_status judge_possible(const fa_candidate *candidate, const fa_sample_request *request, fa_timing *timing,
                                fa_reason *why)
{
    const fa_device_info *info = &candidate->device->info;
    const fa_throughput at_clock = fa_throughput_of(timing->us.p50, timing->sm_clock_mhz_p50, candidate->problem, info);
    const bool known = timing->sm_clock_mhz_p50 > 0 && at_clock.fraction_of_peak > 0;
    timing->percent_of_peak = known ? 100 * at_clock.fraction_of_peak : NAN;
    const fa_status status =
        fa_roofline_judge(timing->us.p50, candidate->problem, info, request, &timing->roofline_us, why);
    timing->impossible = status != FA_PASS || timing->percent_of_peak > 100;
    FA_TRY(status);
    if (timing->impossible)
        return fa_refuse(why, FA_ERROR,
                         "impossible: a median of %.3f us is %.1f %% of what the tensor cores of %s do at the %.0f MHz "
                         "that were measured",
                         timing->us.p50, timing->percent_of_peak, info->name, timing->sm_clock_mhz_p50);
    return FA_PASS;
}

fa_status fa_time(const fa_candidate *candidate, const fa_options *options, fa_timing *timing, fa_reason *why)
{
    const fa_device *device = candidate->device;
    *timing = (fa_timing){.done = false};
    if (!device->sample)
        return fa_refuse(why, FA_NOT_RUN, "the %s device has no clock worth reading", device->info.backend);
    fa_sample_request request = fa_calibrate_request(candidate, options);
    series *all = fa_alloc(sizeof *all);
    output_check check;
    fa_status status = output_check_make(candidate, options, &check, why);
    FA_THEN(status, measure(candidate, options, &request, &check, all, timing, why));
    output_check_free(&check);
    if (status == FA_PASS && timing->beaten_us <= 0)
        judge_noise(all, timing);
    free(all);
    if (status != FA_PASS || timing->beaten_us > 0)
        return status;
    FA_TRY(judge_possible(candidate, &request, timing, why));
    FA_TRY(fa_timing_invariance(candidate, &request, &timing->invariance_ratio, why));
    timing->done = true;
    return FA_PASS;
}
