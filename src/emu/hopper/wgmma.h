/* Products of a warpgroup: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". A warp computes its 16 rows; a
 * product has ended when all four have. */
#pragma once

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

/* A thread reaches a wgmma instruction: waits for its warp. */
void fa_emu_ptx_wgmma(fa_emu_ptx_run *run);
/* All lanes of a warp have arrived. False: the instruction is invalid, and that is reported. */
bool fa_emu_wgmma_compute(fa_emu_worker *worker, uint32_t warp, fa_emu_op *const op[FA_EMU_WARP]);

/* A warp has reached `op`. False: it waits for products, and a warp of its warpgroup has not issued one of them yet:
 * fa_emu_pending.awaited_warp. */
bool fa_emu_wgmma_can_go_on(const fa_emu_worker *worker, uint32_t warp, const fa_emu_op *op);

/* Computes the oldest pending product of a warp. */
void fa_emu_wgmma_step(fa_emu_worker *worker, uint32_t warp);
/* At the end of a block: reports products without a wait, or not issued by all warps of a warpgroup. */
void fa_emu_wgmma_block_ends(fa_emu_worker *worker);
