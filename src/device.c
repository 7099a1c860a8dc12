#include "device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

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

void fa_device_probe(const fa_options *options, fa_device_info *info)
{
    fa_device device;
    fa_reason ignored;
    if (options->device == FA_DEVICE_EMU || fa_device_open_cuda(options->gpu, &device, &ignored) != FA_PASS)
        return;
    *info = device.info;
    device.close(&device);
}
