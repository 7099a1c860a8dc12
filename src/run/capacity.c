#include "run/capacity.h"

#include <unistd.h>

static double gib(double bytes) { return bytes / (double)(1 << 30); }

static double at_least(double a, double b) { return a > b ? a : b; }

size_t fa_capacity_of(const fa_problem *problem, const fa_layout *layout, int tensor)
{
    size_t most = fa_layout_span(layout);
    const bool large = (size_t)layout->blocks * fa_layout_dense(layout) > FA_LAYOUTS_MOST;
    if (large && layout->strides != FA_STRIDES_ODD) /* padded takes at least what odd takes with any seed */
        return most;
    for (fa_strides strides = FA_STRIDES_PACKED; strides <= FA_STRIDES_BSHD; strides++) {
        const fa_layout other = fa_layout_of(problem, strides, 0, tensor);
        most = fa_layout_span(&other) > most ? fa_layout_span(&other) : most;
    }
    return most;
}

/* Host copies a check makes: the inputs, three outputs, one of them again in FP32, and the largest tensor read back. On
 * the emulator the tensors themselves too: of FA_STRIDES_FAR only what is touched. */
fa_status fa_capacity_check(const fa_device *device, int tensors, const fa_layout layouts[FA_TENSORS],
                            const size_t capacity[FA_TENSORS], int64_t workspace_bytes, fa_reason *why)
{
    double on_device = (double)workspace_bytes, touched = on_device, largest = 0, dense[FA_TENSORS] = {0};
    for (int tensor = 0; tensor < tensors; tensor++) {
        const fa_layout *layout = &layouts[tensor];
        const double blocks = (double)layout->blocks * (double)layout->block_count * fa_layout_bytes(layout);
        const double reserved = (double)capacity[tensor] * fa_layout_bytes(layout);
        on_device += reserved + 4.0 * FA_GUARD_COUNT;
        touched += (layout->blocks > 1 ? blocks : reserved) + 4.0 * FA_GUARD_COUNT;
        largest = at_least(largest, blocks / fa_layout_bytes(layout) * 2.0);
        dense[tensor] = 2.0 * (double)layout->blocks * (double)fa_layout_dense(layout);
    }
    double copies = 6.0 * dense[FA_Q] + 2.0 * dense[FA_K] + largest + 2.0 * dense[FA_L];
    for (int tensor = FA_DO; tensor < tensors; tensor++) /* inputs in FP32, gradients in FP64, O in FP64 */
        copies += 10.0 * dense[tensor];
    const double device_has = (double)device->info.memory_bytes;
    const double host_has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    const bool emu = fa_device_is_emu(device);
    const double host_needs = copies + (emu ? touched : 0.0);
    if (!((emu ? touched : on_device) <= device_has))
        return fa_refuse(why, FA_INFEASIBLE, "out of memory: the tensors need %.1f GiB on the device, %s has %.1f GiB",
                         gib(on_device), device->info.name, gib(device_has));
    if (!(host_needs <= host_has))
        return fa_refuse(why, FA_INFEASIBLE, "out of memory: the check needs %.1f GiB on the host, which has %.1f GiB",
                         gib(host_needs), gib(host_has));
    return FA_PASS;
}
