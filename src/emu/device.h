/* The emulator behind the table of device/device.h. */
#pragma once

#include "device/device.h"

/* `arch`: the architecture whose limits apply. `seed`: of the random schedule and of the WMMA fragment layouts. */
fa_status fa_device_open_emu(fa_schedule schedule, uint64_t seed, const char *arch, fa_device *device, fa_reason *why);
