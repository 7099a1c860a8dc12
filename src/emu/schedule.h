/* Runs one block: which of its threads runs next, and what happens where they meet. */
#ifndef FA_EMU_SCHEDULE_H
#define FA_EMU_SCHEDULE_H

#include "emu/core/state.h"

/* Makes it block number `index` of the launch, of which no thread has run. */
void fa_emu_begin_block(fa_emu_worker *worker, uint64_t index);
/* Runs the block until it is over (worker->over), paused, stuck, or another block of the cluster has its turn;
 * worker->stopped: it failed, and the failure is reported. */
void fa_emu_run_block(fa_emu_worker *worker);
/* Goes on with a paused block. */
void fa_emu_resume_block(fa_emu_worker *worker);

#endif
