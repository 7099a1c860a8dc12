#include "emu/core/pending.h"

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
