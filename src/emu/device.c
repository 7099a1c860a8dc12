/* The emulator as a device: host memory, and launches on fibres (src/emu/). */
#include "emu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/tensor_boxes.h"
#include "emu/core/tensor_map.h"
#include "emu/launch.h"

#define EMULATED_SM_COUNT 4 /* for persistent grids: the same on every machine */
#define LAZY_BYTES ((size_t)1 << 30)

typedef struct fa_emu {
    fa_schedule schedule, own; /* own: of the run */
    uint64_t seed, order_seed;
    int32_t smem_block_bytes;
    fa_findings found;
} fa_emu;

struct fa_kernel {
    fa_emu_image image;
    fa_kernel_info info;
};

static fa_status emu_load(fa_device *device, const fa_spec *spec, const fa_module *module, const fa_problem *problem,
                          fa_kernel **kernel, fa_reason *why)
{
    (void)device;
    (void)problem;
    char error[1024];
    if (spec->kind != FA_KIND_HAND)
        return fa_refuse(why, FA_NOT_RUN, "%s is a GPU library: not on the emulator", spec->name);
    fa_kernel *made = fa_alloc(sizeof *made);
    if (!fa_emu_open(module->path, &made->image, error, sizeof error)) {
        free(made);
        return fa_refuse(why, FA_ERROR, "%s: %s", spec->source, error);
    }
    made->info = module->info;
    *kernel = made;
    return FA_PASS;
}

static void emu_unload(fa_device *device, fa_kernel *kernel)
{
    (void)device;
    fa_emu_close(&kernel->image);
    free(kernel);
}

/* Exactly the requested bytes, so that ASan sees an access behind them; NaN until written. More than LAZY_BYTES are not
 * filled: tensors that lie far apart (--strides far) only take memory where they are used. */
static fa_status emu_alloc(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why)
{
    (void)device;
    void *memory = NULL;
    if (posix_memalign(&memory, 256, bytes) != 0)
        return fa_refuse(why, FA_NOT_RUN, "no memory for %zu bytes", bytes);
    if (bytes <= LAZY_BYTES)
        memset(memory, 0xff, bytes);
    *pointer = (fa_ptr)(uintptr_t)memory;
    return FA_PASS;
}

static void emu_free(fa_device *device, fa_ptr pointer)
{
    (void)device;
    free((void *)(uintptr_t)pointer);
}

static fa_status emu_copy_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why)
{
    (void)device;
    (void)why;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return FA_PASS;
}

static fa_status emu_copy_out(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why)
{
    (void)device;
    (void)why;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return FA_PASS;
}

static fa_status emu_copy(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why)
{
    return emu_copy_in(device, to, (const void *)(uintptr_t)from, bytes, why);
}

static fa_status emu_fill16(fa_device *device, fa_ptr to, uint16_t value, size_t count, fa_reason *why)
{
    (void)device;
    (void)why;
    uint16_t *memory = (uint16_t *)(uintptr_t)to;
    for (size_t i = 0; i < count; i++)
        memory[i] = value;
    return FA_PASS;
}

static fa_status encode_maps(const fa_kernel_info *info, fa_params *params, fa_reason *why)
{
    fa_tensor_box boxes[FA_TENSOR_BOXES];
    int count = 0;
    FA_TRY(fa_tensor_boxes(info, params, boxes, &count, why));
    for (int i = 0; i < count; i++) {
        const fa_tensor_box *b = &boxes[i];
        const char *wrong = fa_emu_map_encode(b->to, b->address, FA_TENSOR_RANK,
                                              b->dtype == FA_DTYPE_BF16   ? FA_EMU_MAP_BF16
                                              : b->dtype == FA_DTYPE_E4M3 ? FA_EMU_MAP_U8
                                                                          : FA_EMU_MAP_F16,
                                              b->dims, b->strides_bytes, b->box, (int)b->swizzle_bytes);
        if (wrong != NULL)
            return fa_refuse(why, FA_INFEASIBLE, "the tensor map of %s: %s", b->name, wrong);
    }
    return FA_PASS;
}

static fa_status run_step(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_step *step,
                          const fa_params *params, fa_reason *why)
{
    fa_emu *emu = device->self;
    char error[4096] = "";
    if (step->shared_bytes > emu->smem_block_bytes)
        return fa_refuse(why, FA_INFEASIBLE, "%d bytes of shared memory per block against the limit of %d on %s",
                         step->shared_bytes, emu->smem_block_bytes, device->info.arch);
    const fa_emu_grid grid = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {(uint32_t)step->block[0], (uint32_t)step->block[1], (uint32_t)step->block[2]},
        .smem_bytes = (uint32_t)step->shared_bytes,
        .cluster = step->entry == FA_STEP_BEFORE || step->entry == FA_STEP_AFTER ? 1 : launch->cluster,
        .schedule = emu->schedule,
        .seed = emu->seed,
        .order_seed = emu->order_seed,
        .blocks_per_sm = kernel->info.blocks_per_sm,
    };
    const fa_emu_image image = fa_emu_entry(&kernel->image, step->entry);
    const fa_status status = fa_emu_run(&image, &grid, params, &emu->found, error, sizeof error);
    return status == FA_PASS ? FA_PASS : fa_refuse(why, status, "emulator: %s", error);
}

static fa_status emu_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                            fa_reason *why)
{
    fa_params copy = *params;
    FA_TRY(encode_maps(&kernel->info, &copy, why));
    for (int32_t i = 0; i < fa_launch_steps(launch); i++) {
        fa_step step;
        if (fa_launch_step_of(launch, params, i, &step))
            FA_TRY(run_step(device, kernel, launch, &step, &copy, why));
    }
    return FA_PASS;
}

static int32_t emu_vary(fa_device *device, int32_t variation)
{
    fa_emu *emu = device->self;
    static const fa_schedule order[] = {FA_SCHEDULE_GREEDY, FA_SCHEDULE_DESCENDING, FA_SCHEDULE_RANDOM,
                                        FA_SCHEDULE_ASCENDING};
    int32_t left = (variation - 1) % FA_SCHEDULES; /* the run's own is the last of four */
    emu->schedule = emu->own;
    for (int32_t i = 0; variation > 0 && i < FA_SCHEDULES; i++)
        if (order[i] != emu->own && left-- == 0)
            emu->schedule = order[i];
    emu->order_seed = emu->seed + (uint64_t)variation;
    return (int32_t)emu->schedule;
}

static void emu_close(fa_device *device)
{
    free(device->self);
    *device = (fa_device){0};
}

fa_status fa_device_open_emu(fa_schedule schedule, uint64_t seed, const char *arch, fa_device *device, fa_reason *why)
{
    fa_arch_limits limits;
    FA_TRY(fa_arch_limits_of(arch, &limits, why));
    fa_emu *emu = fa_alloc(sizeof *emu);
    *emu = (fa_emu){.own = schedule, .seed = seed, .smem_block_bytes = limits.smem_block_bytes};
    *device = (fa_device){
        .info = {.backend = "emu",
                 .sm_count = EMULATED_SM_COUNT,
                 .smem_block_bytes = limits.smem_block_bytes,
                 .memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE)},
        .self = emu,
        .load = emu_load,
        .unload = emu_unload,
        .alloc = emu_alloc,
        .free = emu_free,
        .copy_in = emu_copy_in,
        .copy_out = emu_copy_out,
        .copy = emu_copy,
        .fill16 = emu_fill16,
        .launch = emu_launch,
        .vary = emu_vary,
        .found = &emu->found,
        .close = emu_close,
    };
    emu_vary(device, 0);
    snprintf(device->info.name, sizeof device->info.name, "CPU emulator on %ld processors",
             sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(device->info.arch, sizeof device->info.arch, "%s", arch);
    return FA_PASS;
}
