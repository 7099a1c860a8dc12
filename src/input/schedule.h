/* How long a problem's query tiles keep a GPU busy, counted in keys. */
#pragma once

#include "input/problem.h"

/* The keys of the busiest multiprocessor when each takes one tile of knobs->m query rows at a time, the longest first.
 * A tile counts the keys that its rows see, rounded up to whole tiles of knobs->n, plus 256 for its begin and end.
 * Above 64 tiles a multiprocessor the result is the mean over the multiprocessors. sm_count >= 1. */
int64_t fa_busiest_keys(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count);
