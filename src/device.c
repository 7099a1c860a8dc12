#include "device.h"

#include <stdio.h>

fa_status fa_device_open(const fa_options *options, fa_device *device, char choice[256], fa_reason *why)
{
    const char *arch = options->arch != NULL ? options->arch : "sm_89";
    choice[0] = '\0';
    if (options->device == FA_DEVICE_EMU)
        return fa_device_open_emu((fa_schedule)options->schedule, (uint64_t)options->seed, arch, device, why);
    const fa_status status = fa_device_open_cuda(options->gpu, device, why);
    if (options->device == FA_DEVICE_CUDA || status == FA_PASS) {
        if (options->device == FA_DEVICE_AUTO && status == FA_PASS)
            snprintf(choice, 256, "GPU %d: %s", options->gpu, device->info.name);
        return status;
    }
    snprintf(choice, 256, "CPU emulator: %.200s", why->text);
    return fa_device_open_emu((fa_schedule)options->schedule, (uint64_t)options->seed, arch, device, why);
}
