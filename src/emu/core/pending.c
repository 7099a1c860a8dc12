#include "emu/core/pending.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"

uint32_t fa_emu_draw(fa_emu_worker *worker, uint32_t count)
{
    return (uint32_t)((fa_random_next(&worker->random) >> 32) * count >> 32);
}

static fa_emu_pending *new_pending(void)
{
    fa_emu_pending *pending = fa_alloc(sizeof *pending);
    for (uint32_t warp = 0; warp < FA_EMU_MAX_WARPS; warp++)
        pending->awaited_warp[warp] = warp;
    return pending;
}

fa_emu_pending *fa_emu_pending_of(fa_emu_worker *worker)
{
    if (worker->pending == NULL)
        worker->pending = new_pending();
    return worker->pending;
}

fa_emu_pending *fa_emu_pending_now(void) { return fa_emu_pending_of(fa_emu_self); }

const fa_emu_mbarrier *fa_emu_pending_barrier(const fa_emu_pending *pending, uint64_t address, size_t size)
{
    if (address >= pending->barrier_high || address + size <= pending->barrier_low)
        return NULL;
    for (uint32_t i = 0; i < pending->barrier_count; i++) {
        const uint64_t at = (uint64_t)(uintptr_t)pending->barriers[i]->at;
        if (pending->barriers[i]->alive && address < at + FA_EMU_MBARRIER_BYTES && at < address + size)
            return pending->barriers[i];
    }
    return NULL;
}

size_t fa_emu_pending_explain(const fa_emu_worker *worker, char *text, size_t size)
{
    const fa_emu_pending *pending = worker->pending;
    size_t used = 0;
    bool pool = false;
    for (uint32_t i = 0; pending != NULL && i < pending->barrier_count && used + 256 < size; i++) {
        const fa_emu_mbarrier *b = pending->barriers[i];
        const char *slash = strrchr(b->file, '/');
        uint32_t waiters = 0;
        for (uint32_t t = 0; t < worker->threads; t++) {
            const fa_emu_op *op = worker->fibres[t].op;
            const bool waits = op != NULL && (op->kind == FA_EMU_PHASE || op->kind == FA_EMU_YIELD);
            waiters += waits && pending->patience[t].barrier == b;
        }
        if (!b->alive || (waiters == 0 && b->tx == 0 && b->pending == b->expected))
            continue;
        used += (size_t)snprintf(text + used, size - used,
                                 "\n  barrier at shared address 0x%x, initialised at %s:%d: phase %llu, %u of %u "
                                 "arrivals and %lld bytes to come, %u threads wait",
                                 fa_emu_shared_address(b->at, worker->smem, worker->launch->image->build),
                                 slash != NULL ? slash + 1 : b->file, b->line, (unsigned long long)b->phase, b->pending,
                                 b->expected, (long long)b->tx, waiters);
    }
    for (uint32_t warp = 0; pending != NULL && warp < worker->warps && used + 100 < size; warp++)
        if (pending->awaited_warp[warp] != warp)
            used += (size_t)snprintf(text + used, size - used,
                                     "\n  warp %u waits for a product that warp %u has not issued", warp,
                                     pending->awaited_warp[warp]);
    for (uint32_t warp = 0; pending != NULL && warp < worker->warps; warp++)
        pool |= pending->waiting_for_registers[warp] != 0;
    if (pool && used < size)
        used += (size_t)snprintf(text + used, size - used, "\n  the pool has %u registers", pending->pool);
    return used < size ? used : size;
}
