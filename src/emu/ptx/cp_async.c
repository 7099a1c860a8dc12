/* cp.async: a copy is queued when it is issued and done at the wait that covers it. In between its destination reads as
 * NaN, and under AddressSanitizer a read is reported. */
#include "emu/ptx/cp_async.h"

#include <string.h>

#include "emu/core/report.h"
#include "emu/core/preload.h"
#include "emu/race/memory.h"
#include "emu/race/shadow.h"

enum { SHADOW_BYTES = 8 }; /* ASan poisons whole groups of 8 bytes */

void fa_emu_cp_async(void *dst, const void *src, int32_t size, int32_t bytes, const char *file, int32_t line)
{
    if ((uintptr_t)dst % (uintptr_t)size || (bytes > 0 && (uintptr_t)src % (uintptr_t)size))
        fa_emu_fail(FA_EMU_MISALIGNED, "cp.async: address is not a multiple of the size", file, line);
    if (bytes < 0 || bytes > size)
        fa_emu_fail(FA_EMU_MISALIGNED, "cp.async: source bytes outside 0..size", file, line);
    fa_emu_async *async = &fa_emu_self->current->async;
    async->copies = fa_grow(async->copies, async->count, &async->capacity, 16, sizeof *async->copies);
    async->copies[async->count++] = (fa_emu_copy){dst, src, size, bytes, async->group, file, line, fa_race_last_pc()};
    memset(dst, 0xff, (size_t)size);
    if (fa_emu_san.poison && size >= SHADOW_BYTES)
        fa_emu_san.poison(dst, (size_t)size);
}

void fa_emu_cp_async_commit(void) { fa_emu_self->current->async.group++; }

void fa_emu_cp_async_wait(int32_t groups_left, int32_t everything)
{
    fa_emu_async *async = &fa_emu_self->current->async;
    uint32_t done = 0;
    while (done < async->count) {
        const fa_emu_copy *copy = &async->copies[done];
        /* group `async->group` is not committed: only wait_all covers it */
        if (!everything && (int64_t)copy->group + groups_left >= (int64_t)async->group)
            break;
        if (fa_emu_san.unpoison && copy->size >= SHADOW_BYTES)
            fa_emu_san.unpoison(copy->dst, (size_t)copy->size);
        if (copy->bytes > 0)
            fa_race_touch(copy->src, (size_t)copy->bytes, 0, copy->pc);
        fa_race_touch(copy->dst, (size_t)copy->size, FA_RACE_WRITE, copy->pc);
        memcpy(copy->dst, copy->src, (size_t)copy->bytes);
        memset(copy->dst + copy->bytes, 0, (size_t)(copy->size - copy->bytes));
        done++;
    }
    async->count -= done;
    memmove(async->copies, async->copies + done, async->count * sizeof *async->copies);
}

void fa_emu_cp_async_leave(void)
{
    const fa_emu_async *async = &fa_emu_self->current->async;
    for (uint32_t i = 0; i < async->count; i++) {
        const fa_emu_copy *copy = &async->copies[i];
        if (copy->bytes > 0)
            fa_race_touch(copy->src, (size_t)copy->bytes, 0, copy->pc);
        fa_race_touch(copy->dst, (size_t)copy->size, FA_RACE_WRITE, copy->pc);
        if (!fa_emu_san.poison || copy->size < SHADOW_BYTES)
            memset(copy->dst, 0xff, (size_t)copy->size);
    }
}

void fa_emu_async_drop(fa_emu_async *async)
{
    for (uint32_t i = 0; i < async->count; i++)
        if (fa_emu_san.unpoison && async->copies[i].size >= SHADOW_BYTES)
            fa_emu_san.unpoison(async->copies[i].dst, (size_t)async->copies[i].size);
    async->count = 0;
    async->group = 0;
}
