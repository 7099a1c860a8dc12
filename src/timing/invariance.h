/* Does a timed launch do its work? Its time must not depend on what an earlier launch left behind: neither on inputs
 * that were seen before (a result cached by pointer or by contents) nor on an output that is already there. */
#pragma once

#include "run/candidate.h"

/* Times single launches in three cases in turn: new inputs, the inputs of the launch before, an output already
 * there. *ratio: the largest of the three medians over the smallest; NaN where it was not tried (inputs of more than
 * 1 GiB). FA_WRONG when they differ by more than a quarter and a microsecond, twice, or when an output does not
 * belong to its inputs. The inputs are restored. */
fa_status fa_timing_invariance(const fa_candidate *candidate, const fa_sample_request *request, double *ratio,
                               fa_reason *why);
