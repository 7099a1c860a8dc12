/* How long a launch takes: docs/timing.md. This file has the protocol; the device takes the samples. */
#pragma once

#include "run/candidate.h"
#include "timing/stats.h"

typedef struct fa_timing {
    bool done;
    fa_stats us; /* per launch */
    fa_timing_method method;
    fa_l2 l2;
    bool persist_kv; /* the L2 was asked to keep K and V */
    int32_t launches_per_sample, discarded;
    double sm_clock_mhz_p50;
    bool throttled;  /* more than 20 % of the samples were */
    bool settled;    /* stopped because the interval was narrow enough, not because time ran out */
    bool impossible; /* faster than the roofline, or than the tensor cores at the measured clock */
    double floor_us; /* an empty kernel by the same method; never subtracted */
    double roofline_us;
    double warmup_ms;
    double rest_ms;          /* idle before each sample */
    double percent_of_peak;  /* of the tensor cores at the measured clock; NaN: not known */
    double power_capped;     /* share of samples taken while the power limit was at work: normal under load */
    bool gated;              /* every sample was queued before it began; else (profiler, sanitizer) launch cost is in */
    int32_t poisoned;        /* timed samples whose output was NaN before, and right after */
    double invariance_ratio; /* of fa_timing_invariance; NaN: not tried */
    bool noisy;              /* something else used the GPU, or the samples look like it */
    char noisy_reason[160];
    double
        beaten_us; /* above 0: not timed to the end, because FA_BEATEN_SAMPLES samples, of which this is the shortest,
                         are beyond --beat; `done` is false then */
    int32_t other_processes; /* on this GPU, with a context; -1: unknown */
} fa_timing;

/* FA_NOT_RUN on a device without `sample`; FA_WRONG when a timed launch did not write its output; FA_ERROR, and
 * .impossible, when the median is shorter than the hardware can be. .done only with FA_PASS.
 * FA_PASS without .done: --beat has stopped it, see .beaten_us. */
fa_status fa_time(const fa_candidate *candidate, const fa_options *options, fa_timing *timing, fa_reason *why);
