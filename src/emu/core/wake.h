/* Makes threads ready to run. */
#ifndef FA_EMU_CORE_WAKE_H
#define FA_EMU_CORE_WAKE_H

#include "emu/core/state.h"

void fa_emu_make_ready(fa_emu_worker *worker, uint32_t warp, uint32_t lanes);
/* These lanes were suspended (FA_EMU_PHASE) and can go on. */
void fa_emu_wake(fa_emu_worker *worker, uint32_t warp, uint32_t lanes);
/* How many threads of a cluster have not exited. */
uint32_t fa_emu_cluster_living(const fa_emu_cluster *cluster);

#endif
