#include "timing/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/process.h"
#include "timing/stats.h"
#include "run/params.h"

enum { LAUNCHES_MAX = 1024, FIT_ROUNDS = 4 };

static const double SAMPLE_US = 200.0; /* a sample of several launches lasts this long at least */
static const double SHORT_US = 20.0;   /* an event pair is too coarse for one launch that is shorter */

fa_sample_request fa_calibrate_request(const fa_candidate *candidate, const fa_options *options)
{
    return (fa_sample_request){
        .kernel = candidate->kernel,
        .launch = candidate->launch,
        .params = fa_buffers_params(&candidate->buffers, candidate->problem, &candidate->launch),
        .method = FA_TIMING_EVENT,
        .l2 = (fa_l2)options->l2,
        .persist_kv = options->l2_persist == FA_L2_PERSIST_KV,
        .launches = 1,
        .reset_l2 = true,
        .about_us = candidate->about_us,
    };
}

/* What a launch that is long decides does not depend on the clock: it is estimated once, by a single launch. */
static bool is_long(double us) { return us > FA_LONG_US && us < INFINITY; }

/* Time of one launch between events, the least of three. These are the kernel's first launches. */
static fa_status estimate(fa_device *device, const fa_sample_request *request, double *us, fa_reason *why)
{
    fa_sample_request pilot = *request;
    pilot.method = FA_TIMING_EVENT;
    pilot.launches = 1;
    *us = is_long(request->about_us) ? request->about_us : INFINITY;
    for (int i = 0; i < 3 && !is_long(*us); i++) {
        fa_sample sample;
        FA_TRY(device->sample(device, &pilot, &sample, why));
        *us = fmin(*us, sample.us);
        pilot.reset_l2 = false;
    }
    return FA_PASS;
}

static fa_timing_method method_for(const fa_options *options, double least_us)
{
    if (options->timing != FA_TIMING_AUTO)
        return (fa_timing_method)options->timing;
    /* Each launch of a graph finds the L2 as the one before left it: a cold L2 needs single launches. */
    if (options->l2 == FA_L2_COLD)
        return FA_TIMING_EVENT;
    return least_us < SHORT_US ? FA_TIMING_GRAPH : FA_TIMING_EVENT;
}

/* Chooses launches so that a sample lasts SAMPLE_US; 1 in event mode and with a cold L2. */
static fa_status fit(fa_device *device, fa_sample_request *request, double estimate_us, fa_reason *why)
{
    request->launches = 1;
    if (request->method != FA_TIMING_GRAPH || request->l2 == FA_L2_COLD)
        return FA_PASS;
    for (int round = 0; round < FIT_ROUNDS; round++) {
        /* A tenth more than needed: the sample must not fall short when the next one is a little faster. */
        const double wanted = ceil(1.1 * SAMPLE_US / estimate_us); /* infinitely many of no length */
        request->launches = wanted < LAUNCHES_MAX ? (int32_t)wanted : LAUNCHES_MAX;
        fa_sample sample;
        FA_TRY(device->sample(device, request, &sample, why));
        const double lasted_us = sample.us * request->launches;
        if ((lasted_us >= SAMPLE_US && (lasted_us <= 1.5 * SAMPLE_US || request->launches == 1)) ||
            request->launches == LAUNCHES_MAX)
            break;
        estimate_us = sample.us;
    }
    return FA_PASS;
}

/* Warm-up: median SM clock of bins of 20 ms, or of one launch; steady when the bins of the last 100 ms agree. */
enum { BINS = 6, BIN_SAMPLES = 256 };
static const double BIN_S = 0.020, STEADY_S = 0.1, STEADY = 0.01;

/* The last `count` of these bins. */
static bool steady(const double bins_mhz[], size_t count)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, bins_mhz[i]);
        high = fmax(high, bins_mhz[i]);
    }
    return high - low <= STEADY * high; /* also where the clock is unknown: six bins of time must do */
}

/* One bin; `until_s` ends it early. */
static fa_status warm_bin(fa_device *device, const fa_sample_request *request, double until_s, double *mhz,
                          fa_reason *why)
{
    double clocks_mhz[BIN_SAMPLES];
    size_t count = 0;
    const double end_s = fmin(fa_now_s() + BIN_S, until_s);
    do {
        fa_sample sample;
        FA_TRY(device->sample(device, request, &sample, why));
        if (count < BIN_SAMPLES)
            clocks_mhz[count++] = sample.sm_mhz;
    } while (fa_now_s() < end_s);
    *mhz = fa_stats_of(clocks_mhz, count).p50;
    return FA_PASS;
}

static fa_status warm_up(fa_device *device, const fa_sample_request *request, double limit_ms, double *took_ms,
                         fa_reason *why)
{
    const double start_s = fa_now_s(), limit_s = start_s + limit_ms * 1e-3;
    double bins_mhz[BINS] = {0}; /* the last one at the end */
    for (size_t bin = 1; fa_now_s() < limit_s; bin++) {
        const double begun_s = fa_now_s();
        memmove(bins_mhz, bins_mhz + 1, (BINS - 1) * sizeof *bins_mhz);
        FA_TRY(warm_bin(device, request, limit_s, &bins_mhz[BINS - 1], why));
        const size_t count = (size_t)fmin(BINS, fmax(2, 1 + ceil(STEADY_S / (fa_now_s() - begun_s))));
        if (bin >= count && steady(bins_mhz + BINS - count, count))
            break;
    }
    *took_ms = (fa_now_s() - start_s) * 1e3;
    return FA_PASS;
}

fa_status fa_calibrate_choose(fa_device *device, fa_sample_request *requests[], size_t count, const fa_options *options,
                              fa_reason *why)
{
    double us[2], least_us = INFINITY;
    FA_ASSERT(count <= 2, "%zu candidates", count);
    for (size_t i = 0; i < count; i++) {
        FA_TRY(estimate(device, requests[i], &us[i], why));
        least_us = fmin(least_us, us[i]);
    }
    for (size_t i = 0; i < count; i++) {
        requests[i]->about_us = us[i];
        requests[i]->method = method_for(options, least_us);
        FA_TRY(fit(device, requests[i], us[i], why));
    }
    return FA_PASS;
}

fa_status fa_calibrate(fa_device *device, fa_sample_request *requests[], size_t count, const fa_options *options,
                       double *warmup_ms, fa_reason *why)
{
    FA_TRY(fa_calibrate_choose(device, requests, count, options, why));
    FA_TRY(warm_up(device, requests[0], options->warmup_ms, warmup_ms, why));
    return fa_calibrate_choose(device, requests, count, options, why);
}
