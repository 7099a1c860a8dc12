/* Private to the timing stage: a launch takes its time on new inputs, on seen ones, and when its output is already there. */
#ifndef FA_TIMING_FRESH_H
#define FA_TIMING_FRESH_H

#include "timing/measure.h"

/* Single launches between events, on three states in turn; *ratio: the largest of the three medians over the smallest,
 * NaN where it was not tried (inputs of more than 1 GiB). FA_WRONG when they differ by more than a quarter and a
 * microsecond, twice, or when an output is not that of its inputs. Leaves the inputs as they were. */
fa_status fa_time_fresh(const fa_candidate *candidate, const fa_buffers *buffers, const fa_sample_request *request,
                        double *ratio, fa_reason *why);

#endif
