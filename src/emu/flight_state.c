#include "emu/flight_state.h"

#include "base/random.h"
#include "base/status.h"

uint32_t fa_emu_draw(fa_emu_worker *worker, uint32_t count)
{
    return (uint32_t)((fa_random_next(&worker->random) >> 32) * count >> 32);
}

static fa_emu_flight *new_flight(void)
{
    fa_emu_flight *flight = fa_alloc(sizeof *flight);
    for (uint32_t warp = 0; warp < FA_EMU_MAX_WARPS; warp++)
        flight->awaited_warp[warp] = warp;
    return flight;
}

fa_emu_flight *fa_emu_flight_of(fa_emu_worker *worker)
{
    if (worker->flight == NULL)
        worker->flight = new_flight();
    return worker->flight;
}

fa_emu_flight *fa_emu_flight_now(void) { return fa_emu_flight_of(fa_emu_self); }

const fa_emu_mbarrier *fa_emu_flight_barrier(const fa_emu_flight *flight, uint64_t address, size_t size)
{
    if (address >= flight->barrier_high || address + size <= flight->barrier_low)
        return NULL;
    for (uint32_t i = 0; i < flight->barrier_count; i++) {
        const uint64_t at = (uint64_t)(uintptr_t)flight->barriers[i]->at;
        if (flight->barriers[i]->alive && address < at + FA_EMU_MBARRIER_BYTES && at < address + size)
            return flight->barriers[i];
    }
    return NULL;
}
