/* Elements between the host, which holds them in 16 bits, and memory, where one of FP8 takes a byte. */
#pragma once

#include "device/device.h"
#include "input/layout.h"

/* What is copied at once: some batches of a tensor where they lie one behind the other, else a block of it. The host
 * then needs no memory as large as the tensor, and what it has is not new to it each time. */
typedef struct fa_part {
    fa_layout layout; /* of the part alone, and its block there */
    int64_t block;
    int32_t first;    /* batch */
    size_t at, count; /* elements in memory: from the tensor's first one, and how many */
    size_t dense;     /* elements of the packed tensor before `layout` begins */
} fa_part;
enum { FA_PART_MOST = 1 << 23 }; /* elements, unless one batch has more */
/* From {.first = 0} to the next one, of about `most` elements; the first is the largest. False: there is none. */
bool fa_part_next(const fa_layout *layout, size_t most, fa_part *part);
/* What the part holds: of `dense`, the packed tensor, or made in `scratch`, NULL at first, which the caller frees.
 * clean: with 0 in place of poison. */
const uint16_t *fa_part_image(const fa_part *part, const uint16_t *dense, bool clean, uint16_t **scratch);

/* layout: of the tensor. FA_POISON becomes the poison of the type there, and back. */
fa_status fa_elements_put(fa_device *device, const fa_layout *layout, fa_ptr to, const uint16_t *from, size_t count,
                          fa_reason *why);
fa_status fa_elements_get(fa_device *device, const fa_layout *layout, uint16_t *to, fa_ptr from, size_t count,
                          fa_reason *why);
fa_status fa_elements_fill(fa_device *device, const fa_layout *layout, fa_ptr to, uint16_t value, size_t count,
                           fa_reason *why);
