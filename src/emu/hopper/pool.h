/* Registers of a block: PTX ISA, "setmaxnreg". */
#pragma once

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

void fa_emu_ptx_setmaxnreg(fa_emu_ptx_run *run);
/* At the end of a block: checks that all warps of a warpgroup changed their registers equally often. */
void fa_emu_pool_block_ends(fa_emu_worker *worker);
