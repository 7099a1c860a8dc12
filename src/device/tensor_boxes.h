/* The TMA boxes that a kernel asks for (fa_kernel_info), as each device encodes them into fa_params. */
#pragma once

#include "base/status.h"
#include "fa_params.h"

enum { FA_TENSOR_RANK = 4, FA_TENSOR_BOXES = 4 };

/* One tensor [batch, heads, seq, dim], innermost first. */
typedef struct fa_tensor_box {
    const char *name;
    const void *address;
    fa_tensor_map *to;
    uint64_t dims[FA_TENSOR_RANK], strides_bytes[FA_TENSOR_RANK - 1];
    uint32_t box[FA_TENSOR_RANK];
    fa_i32 dtype;
    uint32_t swizzle_bytes; /* 0, 32, 64 or 128: the width of the box */
} fa_tensor_box;

/* Fills `boxes` with the *count requested ones. FA_INFEASIBLE: a tensor is not aligned as TMA needs. */
fa_status fa_tensor_boxes(const fa_kernel_info *info, fa_params *params, fa_tensor_box boxes[FA_TENSOR_BOXES],
                          int *count, fa_reason *why);
