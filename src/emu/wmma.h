/* WMMA of the other shapes and types (op.mode); one lane holds each element. */
#ifndef FA_EMU_WMMA_H
#define FA_EMU_WMMA_H

#include "emu/core/state.h"

void fa_emu_wmma_other(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP]);

#endif
