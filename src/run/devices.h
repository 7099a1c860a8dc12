/* Which device a run takes: --device cuda, emu or auto. */
#pragma once

#include "device/device.h"

/* Opens what the options ask for; `auto` takes the GPU when there is one, else the emulator. A device that an earlier
 * run has opened is put back into the state it had then; a zeroed one is opened. */
fa_status fa_device_open(const fa_options *options, fa_device *device, fa_reason *why);

/* What GPU 0 is, for --version; it is not kept open. FA_NOT_RUN when there is none. */
fa_status fa_device_first_gpu(fa_device_info *info, fa_reason *why);
bool fa_device_has_library(const char *const files[]); /* one of these can be opened; the last is NULL */
