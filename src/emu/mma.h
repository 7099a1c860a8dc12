/* Operations of the tensor cores, and the moves of their fragments. op[l]: what lane l gives and receives. */
#pragma once

#include "emu/core/state.h"

void fa_emu_ldmatrix(fa_emu_op *const op[FA_EMU_WARP]);
void fa_emu_stmatrix(fa_emu_op *const op[FA_EMU_WARP]);
/* False: an element of A or B is held by two lanes, and they disagree. */
bool fa_emu_wmma(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP]);
/* Other shapes and types than m16n16k16 of halves and bfloats: op.mode, op.arg. */
void fa_emu_wmma_other(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP]);

/* Draws the layouts of the WMMA fragments from the seed of the launch. */
void fa_emu_wmma_maps(fa_emu_launch *launch);
