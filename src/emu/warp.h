/* Operations of a warp: computed for all lanes of a group when the last of them has arrived. */
#ifndef FA_EMU_WARP_H
#define FA_EMU_WARP_H

#include "emu/core/state.h"

/* Computes the operation that the lanes `group` of a warp wait in. False: it is invalid, and that is reported. */
bool fa_emu_compute(fa_emu_worker *worker, uint32_t warp, uint32_t group);

#endif
