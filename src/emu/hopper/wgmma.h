/* Products of a warpgroup: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A warp computes its 16 rows; a
 * product has ended when all four have. */
#ifndef FA_EMU_HOPPER_WGMMA_H
#define FA_EMU_HOPPER_WGMMA_H

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

/* wgmma.* as a thread comes to it: waits for its warp. */
void fa_emu_ptx_wgmma(fa_emu_ptx_run *run);
/* All lanes of a warp have come. False: it is invalid, and that is reported. */
bool fa_emu_wgmma_compute(fa_emu_worker *worker, uint32_t warp, fa_emu_op *const op[FA_EMU_WARP]);

/* A warp has come to `op`. False: it waits for products, and a warp of its warpgroup has yet to issue one of them:
 * fa_emu_pending.awaited_warp. */
bool fa_emu_wgmma_can_go_on(const fa_emu_worker *worker, uint32_t warp, const fa_emu_op *op);

/* Computes the oldest product of a warp that is under way. */
void fa_emu_wgmma_step(fa_emu_worker *worker, uint32_t warp);
/* At the end of a block: what no wait covered, or not all warps of a warpgroup did. */
void fa_emu_wgmma_block_ends(fa_emu_worker *worker);

#endif
