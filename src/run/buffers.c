#include "run/buffers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[FA_TENSORS] = {"q", "k", "v", "o", "lse"};

/* Present when AddressSanitizer's runtime is: guards are then out of bounds for the emulator's kernels. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *address, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *address, size_t size);

size_t fa_buffers_bytes(const fa_buffers *buffers, int tensor) { return buffers->count[tensor] * sizeof(uint16_t); }

/* Halves from base to the tensor. --misalign counts elements: those of the log-sum-exp are two halves wide. */
static size_t offset_of(const fa_buffers *buffers, int tensor)
{
    return tensor == FA_L ? 2 * buffers->offset - FA_GUARD_COUNT : buffers->offset;
}

fa_ptr fa_buffers_at(const fa_buffers *buffers, int tensor)
{
    return buffers->base[tensor] + offset_of(buffers, tensor) * sizeof(uint16_t);
}

/* Where a guard starts and how many halves it has; `after`: the one behind the tensor. */
static fa_ptr guard_at(const fa_buffers *buffers, int tensor, bool after, size_t *count)
{
    *count = after ? FA_GUARD_COUNT : offset_of(buffers, tensor);
    return after ? fa_buffers_at(buffers, tensor) + fa_buffers_bytes(buffers, tensor) : buffers->base[tensor];
}

/* With AddressSanitizer on the emulator: whether a kernel may touch the guards. */
static void set_guards(const fa_buffers *buffers, bool closed)
{
    if (strcmp(buffers->device->info.backend, "emu") != 0 || !__asan_poison_memory_region ||
        !__asan_unpoison_memory_region)
        return;
    for (int tensor = 0; tensor < buffers->tensors; tensor++)
        for (int after = 0; after < 2; after++) {
            size_t count;
            const void *at = (const void *)(uintptr_t)guard_at(buffers, tensor, after, &count);
            (closed ? __asan_poison_memory_region : __asan_unpoison_memory_region)(at, count * sizeof(uint16_t));
        }
}

static double gib(double bytes) { return bytes / (double)(1 << 30); }

/* Host copies a check makes: the inputs, three outputs, one of them again in FP32, and the largest tensor read back. */
static fa_status check_memory(const fa_device *device, const fa_problem *problem, int64_t workspace_bytes, bool lse,
                              fa_reason *why)
{
    const double q = (double)problem->batch * problem->heads * problem->seq_q * problem->dim;
    const double kv = (double)problem->batch * problem->kv_heads * problem->seq_kv * problem->dim;
    const double sums = lse ? 4.0 * q / problem->dim : 0.0; /* bytes */
    const double on_device = 2.0 * (2.0 * q + 2.0 * kv + 10.0 * FA_GUARD_COUNT) + sums + (double)workspace_bytes;
    const double copies = 2.0 * (q + 2.0 * kv) + 10.0 * q + 2.0 * (q > kv ? q : kv) + 2.0 * sums;
    const double device_has = (double)device->info.memory_bytes;
    const double host_has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    const double host_needs = copies + (strcmp(device->info.backend, "emu") == 0 ? on_device : 0.0);
    if (!(on_device <= device_has))
        return fa_refuse(why, FA_INFEASIBLE, "out of memory: the tensors need %.1f GiB on the device, %s has %.1f GiB",
                         gib(on_device), device->info.name, gib(device_has));
    if (!(host_needs <= host_has))
        return fa_refuse(why, FA_INFEASIBLE, "out of memory: the check needs %.1f GiB on the host, which has %.1f GiB",
                         gib(host_needs), gib(host_has));
    return FA_PASS;
}

static fa_status allocate(fa_buffers *buffers, fa_reason *why)
{
    fa_device *device = buffers->device;
    for (int tensor = 0; tensor < buffers->tensors; tensor++) {
        const size_t count = offset_of(buffers, tensor) + buffers->count[tensor] + FA_GUARD_COUNT;
        FA_TRY(device->alloc(device, count * sizeof(uint16_t), &buffers->base[tensor], why));
    }
    if (buffers->workspace_bytes == 0)
        return FA_PASS;
    const size_t halves = ((size_t)buffers->workspace_bytes + 1) / 2;
    FA_TRY(device->alloc(device, halves * sizeof(uint16_t), &buffers->workspace, why));
    return device->fill16(device, buffers->workspace, 0, halves, why);
}

fa_status fa_buffers_make(fa_device *device, const fa_problem *problem, int64_t workspace_bytes, int32_t misalign,
                          bool lse, fa_buffers *buffers, fa_reason *why)
{
    *buffers = (fa_buffers){.device = device};
    FA_TRY(check_memory(device, problem, workspace_bytes, lse, why));
    const size_t q = fa_problem_q_count(problem), kv = fa_problem_kv_count(problem);
    *buffers = (fa_buffers){.device = device,
                            .tensors = lse ? FA_TENSORS : FA_L,
                            .count = {q, kv, kv, q, lse ? 2 * (q / (size_t)problem->dim) : 0},
                            .offset = FA_GUARD_COUNT + (size_t)misalign,
                            .workspace_bytes = workspace_bytes};
    const fa_status status = allocate(buffers, why);
    if (status != FA_PASS)
        fa_buffers_free(buffers);
    return status;
}

void fa_buffers_free(fa_buffers *buffers)
{
    fa_device *device = buffers->device;
    if (buffers->base[FA_O])
        set_guards(buffers, false);
    for (int tensor = 0; tensor < buffers->tensors; tensor++)
        if (buffers->base[tensor])
            device->free(device, buffers->base[tensor]);
    if (buffers->workspace)
        device->free(device, buffers->workspace);
    *buffers = (fa_buffers){.device = NULL};
}

fa_params fa_buffers_params(const fa_buffers *buffers, const fa_problem *problem, const fa_launch *launch)
{
    const fa_i64 dim = problem->dim, q_head = dim * problem->seq_q, kv_head = dim * problem->seq_kv;
    const bool lse = buffers->tensors > FA_L;
    return (fa_params){
        .q = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_Q),
        .k = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_K),
        .v = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_V),
        .o = (void *)(uintptr_t)fa_buffers_at(buffers, FA_O),
        .q_stride_b = q_head * problem->heads,
        .q_stride_h = q_head,
        .q_stride_s = dim,
        .k_stride_b = kv_head * problem->kv_heads,
        .k_stride_h = kv_head,
        .k_stride_s = dim,
        .v_stride_b = kv_head * problem->kv_heads,
        .v_stride_h = kv_head,
        .v_stride_s = dim,
        .o_stride_b = q_head * problem->heads,
        .o_stride_h = q_head,
        .o_stride_s = dim,
        .batch = problem->batch,
        .heads = problem->heads,
        .kv_heads = problem->kv_heads,
        .seq_q = problem->seq_q,
        .seq_kv = problem->seq_kv,
        .dim = problem->dim,
        .causal = problem->causal,
        .scale = problem->scale,
        .tiles_m = launch->tiles_m,
        .tiles = launch->tiles,
        .sm_count = buffers->device != NULL ? buffers->device->info.sm_count : 0,
        .workspace = (void *)(uintptr_t)buffers->workspace,
        .workspace_bytes = buffers->workspace_bytes,
        .lse = lse ? (fa_f32 *)(uintptr_t)fa_buffers_at(buffers, FA_L) : NULL,
        .lse_stride_b = (fa_i64)problem->seq_q * problem->heads,
        .lse_stride_h = problem->seq_q,
        .lse_stride_s = 1,
        .dtype = FA_DTYPE_FP16,
    };
}

fa_status fa_buffers_poison_output(const fa_buffers *buffers, fa_reason *why)
{
    for (int tensor = FA_O; tensor < buffers->tensors; tensor++)
        FA_TRY(buffers->device->fill16(buffers->device, fa_buffers_at(buffers, tensor), FA_POISON,
                                       buffers->count[tensor], why));
    return FA_PASS;
}

fa_status fa_buffers_fill(const fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why)
{
    fa_device *device = buffers->device;
    const uint16_t *const from[FA_O] = {tensors->q, tensors->k, tensors->v};
    set_guards(buffers, false);
    for (int tensor = 0; tensor < buffers->tensors; tensor++) {
        for (int after = 0; after < 2; after++) {
            size_t count;
            const fa_ptr at = guard_at(buffers, tensor, after, &count);
            FA_TRY(device->fill16(device, at, FA_POISON, count, why));
        }
        if (tensor < FA_O)
            FA_TRY(device->copy_in(device, fa_buffers_at(buffers, tensor), from[tensor],
                                   fa_buffers_bytes(buffers, tensor), why));
    }
    FA_TRY(fa_buffers_poison_output(buffers, why));
    set_guards(buffers, true);
    return FA_PASS;
}

static fa_status check_guards(const fa_buffers *buffers, uint16_t *room, fa_reason *why)
{
    fa_device *device = buffers->device;
    for (int tensor = 0; tensor < buffers->tensors; tensor++)
        for (int after = 0; after < 2; after++) {
            size_t count, changed = 0, nearest = 0;
            const fa_ptr at = guard_at(buffers, tensor, after, &count);
            FA_TRY(device->copy_out(device, room, at, count * sizeof *room, why));
            for (size_t i = 0; i < count; i++) {
                const size_t distance = after ? i : count - 1 - i;
                if (room[i] != FA_POISON && (changed++ == 0 || distance < nearest))
                    nearest = distance;
            }
            const size_t halves = tensor == FA_L ? 2 : 1; /* of an element */
            if (changed > 0)
                return fa_refuse(
                    why, FA_WRONG,
                    "out of bounds: the guard band %s %s was overwritten: %zu elements, the nearest %zu %s",
                    after ? "after" : "before", names[tensor], (changed + halves - 1) / halves, nearest / halves + 1,
                    after ? "past the last element" : "before the first element");
        }
    return FA_PASS;
}

static fa_status check_inputs(const fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why)
{
    fa_device *device = buffers->device;
    const uint16_t *const want[FA_O] = {tensors->q, tensors->k, tensors->v};
    for (int tensor = 0; tensor < FA_O; tensor++) {
        uint16_t *got = malloc(fa_buffers_bytes(buffers, tensor));
        FA_ASSERT(got != NULL, "%zu bytes", fa_buffers_bytes(buffers, tensor));
        fa_status status =
            device->copy_out(device, got, fa_buffers_at(buffers, tensor), fa_buffers_bytes(buffers, tensor), why);
        if (status == FA_PASS && memcmp(got, want[tensor], fa_buffers_bytes(buffers, tensor)) != 0) {
            size_t first = 0;
            while (got[first] == want[tensor][first])
                first++;
            status = fa_refuse(why, FA_WRONG, "input %s was overwritten: element %zu of %zu was 0x%04x and is 0x%04x",
                               names[tensor], first, buffers->count[tensor], want[tensor][first], got[first]);
        }
        free(got);
        FA_TRY(status);
    }
    return FA_PASS;
}

fa_status fa_buffers_read(const fa_buffers *buffers, const fa_tensors *tensors, uint16_t *output, fa_reason *why)
{
    fa_device *device = buffers->device;
    FA_TRY(device->copy_out(device, output, fa_buffers_at(buffers, FA_O), fa_buffers_bytes(buffers, FA_O), why));
    set_guards(buffers, false);
    uint16_t *room = fa_alloc(offset_of(buffers, FA_L) * sizeof *room);
    const fa_status status = check_guards(buffers, room, why);
    free(room);
    set_guards(buffers, true);
    FA_TRY(status);
    return check_inputs(buffers, tensors, why);
}

fa_status fa_buffers_read_lse(const fa_buffers *buffers, float *lse, fa_reason *why)
{
    if (buffers->tensors <= FA_L)
        return FA_PASS;
    return buffers->device->copy_out(buffers->device, lse, fa_buffers_at(buffers, FA_L),
                                     fa_buffers_bytes(buffers, FA_L), why);
}
