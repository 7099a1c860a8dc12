#include "emu/wake.h"

void fa_emu_make_ready(fa_emu_worker *worker, uint32_t warp, uint32_t lanes)
{
    worker->warp[warp].ready |= lanes;
    worker->ready_warps |= 1u << warp;
}

void fa_emu_wake(fa_emu_worker *worker, uint32_t warp, uint32_t lanes)
{
    lanes &= worker->warp[warp].suspended;
    worker->warp[warp].suspended &= ~lanes;
    if (lanes != 0)
        fa_emu_make_ready(worker, warp, lanes);
}
