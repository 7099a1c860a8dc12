/* PTX of sm_90a: barrier objects, bulk copies, products of warpgroups, setmaxnreg, proxy fences. */
#ifndef FA_EMU_HOPPER_INSTRUCTIONS_H
#define FA_EMU_HOPPER_INSTRUCTIONS_H

#include "emu/ptx/state.h"

void fa_emu_ptx_async(fa_emu_ptx_run *run);
/* A fence of the family FA_PTX_FENCES for a proxy or for barrier objects. */
void fa_emu_ptx_proxy_fence(const fa_emu_ptx_run *run);

#endif
