/* The number of splits where the bench chooses it. */
#pragma once

#include "input/registry.h"

/* How many blocks share the keys of a query tile: enough to fill the GPU, each with at least SPLIT_KEYS keys, because
 * combining their results costs time too. For gradients: how many share the query tiles of a block's keys. */
int32_t fa_splits_choose(const fa_kernel_row *row, const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count);

/* Query rows that a K/V head serves. */
int64_t fa_packed_rows(const fa_problem *problem);
