/* The cuda device: a GPU behind the table of device/device.h. */
#pragma once

#include "device/device.h"

/* FA_NOT_RUN with the reason when there is no driver or no such GPU. The context is created by the first allocation or
 * load, because that takes long and a run that is refused before needs none. */
fa_status fa_device_open_cuda(int32_t gpu, fa_device *device, fa_reason *why);
