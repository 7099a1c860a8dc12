/* How much memory the tensors of a candidate take. */
#pragma once

#include "device/device.h"
#include "input/layout.h"

/* Elements of a guard band before and after each tensor. */
#define FA_GUARD_COUNT 131072
/* Tensors of at most this many elements are reserved with room for every layout but FA_STRIDES_FAR. */
#define FA_LAYOUTS_MOST ((size_t)1 << 24)

/* Elements to reserve for a tensor: a small one can then take other layouts. */
size_t fa_capacity_of(const fa_problem *problem, const fa_layout *layout, int tensor);
/* FA_INFEASIBLE when the device or the host has too little for `tensors` tensors of these layouts and capacities. */
fa_status fa_capacity_check(const fa_device *device, int tensors, const fa_layout layout[FA_TENSORS],
                            const size_t capacity[FA_TENSORS], int64_t workspace_bytes, fa_reason *why);
