#include "emu/core/state.h"

_Thread_local fa_emu_worker *fa_emu_self;

void fa_emu_make_ready(fa_emu_worker *worker, uint32_t warp, uint32_t lanes)
{
    worker->warp[warp].ready |= lanes;
    worker->ready_warps |= 1u << warp;
    worker->stuck = false;
}

void fa_emu_wake(fa_emu_worker *worker, uint32_t waiting[FA_EMU_MAX_WARPS])
{
    for (uint32_t warp = 0; warp < worker->warps; warp++) {
        const uint32_t lanes = waiting[warp] & worker->warp[warp].suspended;
        worker->warp[warp].suspended &= ~lanes;
        if (lanes != 0)
            fa_emu_make_ready(worker, warp, lanes);
        waiting[warp] = 0;
    }
}

uint32_t fa_emu_cluster_living(const fa_emu_cluster *cluster)
{
    uint32_t living = 0;
    for (uint32_t rank = 0; rank < cluster->count; rank++)
        living += cluster->block[rank]->alive;
    return living;
}
