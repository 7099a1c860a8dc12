/* Inside the stage `timing`: what fa_time and fa_compare share. How to sample a candidate; when the clock is steady. */
#ifndef FA_TIMING_PLAN_H
#define FA_TIMING_PLAN_H

#include "timing/measure.h"

/* Samples are this long at least where several launches make one (MEASURE.md section 2). */
#define FA_SAMPLE_US 200.0
#define FA_SAMPLES_MAX 10000
#define FA_SETTLED 0.005       /* half width of the median's interval over the median */
#define FA_THROTTLED_SHARE 0.2 /* of the samples, at most, may be dropped */
#define FA_NOISY 0.10          /* mean over median: samples with someone else's work in them */
#define FA_NOISY_SHARED 0.05   /* the same, where other processes have a context on the GPU */
#define FA_WAITED_US 500.0     /* for its turn on the GPU: a sample that waited longer ... */
#define FA_WAITED_SHARE 0.2    /* ... and the share of them that makes a measurement noisy */
#define FA_CLOCK_FELL 0.95     /* of the run's median clock: a power-capped sample below it counts as throttled */

/* The request of one candidate on its buffers; method and launches still to be chosen. */
fa_sample_request fa_plan_request(const fa_candidate *candidate, const fa_buffers *buffers, const fa_problem *problem,
                                  const fa_options *options);
/* Warms up on the first request until the SM clock is steady, and chooses one method for all of them and each one's
 * launches per sample: before, from what the idle clock shows, and again after. At most two requests. */
fa_status fa_plan_make(fa_device *device, fa_sample_request *requests[], size_t count, const fa_options *options,
                       double *warmup_ms, fa_reason *why);

#endif
