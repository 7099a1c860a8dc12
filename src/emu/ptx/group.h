/* PTX of a whole warp or block: barriers, shuffles, votes, matrices. */
#ifndef FA_EMU_PTX_GROUP_H
#define FA_EMU_PTX_GROUP_H

#include "emu/ptx/state.h"

void fa_emu_ptx_group(fa_emu_ptx_run *run);
/* The last lane has come to an mma or movmatrix (kind FA_EMU_PTX): computes for all 32. */
void fa_emu_ptx_compute(fa_emu_op *const op[FA_EMU_WARP]);

#endif
