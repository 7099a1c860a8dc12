#include "emu/core/pending_report.h"

#include <stdio.h>

size_t fa_emu_pending_explain(const fa_emu_worker *worker, char *text, size_t size)
{
    const fa_emu_pending *pending = worker->pending;
    size_t used = 0;
    bool pool = false;
    for (uint32_t i = 0; pending != NULL && i < pending->barrier_count && used + 160 < size; i++) {
        const fa_emu_mbarrier *b = pending->barriers[i];
        uint32_t waiters = 0;
        for (uint32_t t = 0; t < worker->threads; t++) {
            const fa_emu_op *op = worker->fibres[t].op;
            const bool waits = op != NULL && (op->kind == FA_EMU_PHASE || op->kind == FA_EMU_YIELD);
            waiters += waits && pending->patience[t].barrier == b;
        }
        if (!b->alive || (waiters == 0 && b->tx == 0 && b->pending == b->expected))
            continue;
        used += (size_t)snprintf(text + used, size - used,
                                 "\n  barrier at shared address 0x%x, initialised at line %d: phase %llu, %u of %u "
                                 "arrivals and %lld bytes to come, %u threads wait",
                                 fa_emu_shared_address(b->at, worker->smem, worker->launch->image->build), b->line,
                                 (unsigned long long)b->phase, b->pending, b->expected, (long long)b->tx, waiters);
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
