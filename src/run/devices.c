#include "run/devices.h"

#include <stdio.h>
#include <string.h>

#include "cuda/device.h"
#include "cuda/lib_open.h"
#include "emu/device.h"
#include "input/spec.h"

static fa_status open_emu(const fa_options *options, const char *choice, fa_device *device, fa_reason *why)
{
    FA_TRY(fa_device_open_emu((fa_schedule)options->schedule, (uint64_t)options->seed, fa_spec_arch(options), device,
                              why));
    snprintf(device->choice, sizeof device->choice, "%s", choice);
    return FA_PASS;
}

/* The emulator is opened again: its order of threads and its seed are options of the run. */
static fa_status open_again(const fa_options *options, fa_device *device, fa_reason *why)
{
    char choice[sizeof device->choice];
    memcpy(choice, device->choice, sizeof choice);
    if (device->reset != NULL) {
        device->reset(device);
        return FA_PASS;
    }
    device->close(device);
    return open_emu(options, choice, device, why);
}

fa_status fa_device_open(const fa_options *options, fa_device *device, fa_reason *why)
{
    if (device->close != NULL)
        return open_again(options, device, why);
    if (options->device == FA_DEVICE_EMU)
        return open_emu(options, "", device, why);
    const fa_status status = fa_device_open_cuda(options->gpu, device, why);
    if (options->device == FA_DEVICE_AUTO && status == FA_PASS)
        snprintf(device->choice, sizeof device->choice, "GPU %d: %s", options->gpu, device->info.name);
    if (options->device == FA_DEVICE_CUDA || status == FA_PASS)
        return status;
    char choice[sizeof device->choice];
    snprintf(choice, sizeof choice, "CPU emulator: %.200s", why->text);
    return open_emu(options, choice, device, why);
}

fa_status fa_device_first_gpu(fa_device_info *info, fa_reason *why)
{
    fa_device device;
    FA_TRY(fa_device_open_cuda(0, &device, why));
    *info = device.info;
    device.close(&device);
    return FA_PASS;
}

bool fa_device_has_library(const char *const files[])
{
    void *library;
    fa_reason why;
    return fa_library_open(files, &library, &why) == FA_PASS;
}
