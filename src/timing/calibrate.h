/* How a candidate is sampled: the method, the launches of a sample, and the warm-up before the first one. */
#pragma once

#include "run/candidate.h"

/* What single and paired measurements share (docs/timing.md). */
#define FA_SAMPLES_MAX 10000
#define FA_SETTLED 0.005       /* stop when half the median's interval is below this share of the median */
#define FA_LONG_US 10000.0     /* a launch that refills the L2 in less than a hundredth of its time */
#define FA_THROTTLED_SHARE 0.2 /* of the samples, at most, may be dropped */

/* One launch of the candidate between events; fa_calibrate chooses method and launches. */
fa_sample_request fa_calibrate_request(const fa_candidate *candidate, const fa_options *options);
/* Chooses one method for all requests (at most two) and the launches per sample of each, at the clock as it is. */
fa_status fa_calibrate_choose(fa_device *device, fa_sample_request *requests[], size_t count, const fa_options *options,
                              fa_reason *why);
/* The same, then warms up on the first request until the SM clock is steady, and chooses again. */
fa_status fa_calibrate(fa_device *device, fa_sample_request *requests[], size_t count, const fa_options *options,
                       double *warmup_ms, fa_reason *why);
