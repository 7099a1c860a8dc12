#include "emu/hopper/instructions.h"

#include "emu/hopper/bulk.h"
#include "emu/hopper/map_proxy.h"
#include "emu/hopper/mbarrier.h"
#include "emu/hopper/pool.h"
#include "emu/hopper/wgmma.h"
#include "emu/race/fence.h"

void fa_emu_ptx_async(fa_emu_ptx_run *run)
{
    switch (run->instr->op) {
    case FA_PTX_OP_MBARRIER:
        fa_emu_ptx_mbarrier(run);
        break;
    case FA_PTX_OP_WGMMA:
        fa_emu_ptx_wgmma(run);
        break;
    case FA_PTX_OP_TENSORMAP:
        fa_emu_ptx_tensormap(run);
        break;
    case FA_PTX_OP_SETMAXNREG:
        fa_emu_ptx_setmaxnreg(run);
        break;
    case FA_PTX_OP_ST:
    case FA_PTX_OP_RED:
        fa_emu_ptx_send(run);
        break;
    default:
        if (fa_ptx_has(run->instr, FA_PTX_W_MBARRIER_))
            fa_emu_mbarrier_copies_arrive(run);
        else
            fa_emu_ptx_bulk(run);
    }
}

void fa_emu_ptx_proxy_fence(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const bool global = fa_ptx_has(i, FA_PTX_W_GLOBAL);
    const bool shared = fa_ptx_has(i, FA_PTX_W_SHARED_CTA) || fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER);
    if (fa_ptx_has(i, FA_PTX_W_MBARRIER_INIT)) {
        fa_race_note_fence(FA_RACE_BARRIER_INIT);
        return;
    }
    if (fa_ptx_has(i, FA_PTX_W_TENSORMAP_GENERIC))
        fa_emu_ptx_map_fence(run);
    /* A release of one thread; an acquire does not cover fences of other threads. */
    if (fa_ptx_has(i, FA_PTX_W_ASYNC_GENERIC) && fa_ptx_has(i, FA_PTX_W_RELEASE))
        fa_race_note_fence(FA_RACE_PROXY_SHARED);
    if (!fa_ptx_has(i, FA_PTX_W_ASYNC))
        return;
    if (shared || !global)
        fa_race_note_fence(FA_RACE_PROXY_SHARED);
    if (global || !shared)
        fa_race_note_fence(FA_RACE_PROXY_GLOBAL);
}
