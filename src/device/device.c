#include "device/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/process.h"

static double waited_s;

double fa_device_waited_s(void) { return waited_s; }

void fa_device_turn(const fa_device_info *info, fa_turn turn)
{
    static int lock = -1;
    static const int operations[] = {[FA_TURN_NONE] = LOCK_UN, [FA_TURN_SHARED] = LOCK_SH, [FA_TURN_ALONE] = LOCK_EX};
    if (info->bus_id[0] == '\0')
        return;
    if (lock < 0) {
        char *path = fa_format("/tmp/fa_bench-%s.lock", info->bus_id);
        lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock >= 0)
            fchmod(lock, 0666); /* another user's runs take turns, too */
        free(path);
    }
    const double asked_s = fa_now_s();
    if (lock >= 0)
        flock(lock, operations[turn]);
    waited_s += fa_now_s() - asked_s;
}

static fa_status open_emu(const fa_options *options, const char *choice, fa_device *device, fa_reason *why)
{
    const char *arch = options->arch != NULL ? options->arch : "sm_89";
    FA_TRY(fa_device_open_emu((fa_schedule)options->schedule, (uint64_t)options->seed, arch, device, why));
    snprintf(device->choice, sizeof device->choice, "%s", choice);
    return FA_PASS;
}

/* The emulator is what the run's own options make of it. */
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

void fa_device_probe(const fa_options *options, fa_device_info *info)
{
    fa_device device;
    fa_reason ignored;
    if (options->device == FA_DEVICE_EMU || fa_device_open_cuda(options->gpu, &device, &ignored) != FA_PASS)
        return;
    *info = device.info;
    device.close(&device);
}
