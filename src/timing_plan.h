/* Inside the stage `timing`: what fa_time and fa_compare share. How to sample a candidate; when the clock is steady. */
#ifndef FA_TIMING_PLAN_H
#define FA_TIMING_PLAN_H

#include "timing.h"

/* Samples are this long at least where several launches make one (MEASURE.md section 2). */
#define FA_SAMPLE_US 200.0
#define FA_SAMPLES_MAX 10000
#define FA_SETTLED 0.005       /* half width of the median's interval over the median */
#define FA_THROTTLED_SHARE 0.2 /* of the samples, at most, may be dropped */
#define FA_CLOCK_FELL 0.95     /* of the run's median clock: a power-capped sample below it counts as throttled */

/* The request of one candidate on its buffers; method and launches still to be chosen. */
fa_sample_request fa_plan_request(const fa_candidate *candidate, const fa_buffers *buffers, const fa_problem *problem,
                                  const fa_options *options);
/* Time of one launch between events, the least of three: what the method is chosen by. Launches for the first time. */
fa_status fa_plan_estimate(fa_device *device, const fa_sample_request *request, double *us, fa_reason *why);
fa_timing_method fa_plan_method(const fa_options *options, double least_us);
/* Chooses request->launches so that a sample lasts FA_SAMPLE_US; 1 in event mode and with a cold L2. */
fa_status fa_plan_fit(fa_device *device, fa_sample_request *request, double estimate_us, fa_reason *why);
/* Launches until the SM clock moves less than 1 % in 100 ms, at most limit_ms. */
fa_status fa_plan_warm_up(fa_device *device, const fa_sample_request *request, double limit_ms, double *took_ms,
                          fa_reason *why);

#endif
