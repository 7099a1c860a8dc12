/* Elements between the host, which holds them in 16 bits, and memory, where one of FP8 takes a byte. */
#pragma once

#include "device/device.h"
#include "input/layout.h"

/* layout: of the tensor. FA_POISON becomes the poison of the type there, and back. */
fa_status fa_elements_put(fa_device *device, const fa_layout *layout, fa_ptr to, const uint16_t *from, size_t count,
                          fa_reason *why);
fa_status fa_elements_get(fa_device *device, const fa_layout *layout, uint16_t *to, fa_ptr from, size_t count,
                          fa_reason *why);
fa_status fa_elements_fill(fa_device *device, const fa_layout *layout, fa_ptr to, uint16_t value, size_t count,
                           fa_reason *why);
