/* Runs one block: which of its threads runs next, and what happens where they meet. */
#ifndef FA_EMU_SCHEDULE_H
#define FA_EMU_SCHEDULE_H

#include "emu/core.h"

/* Runs block number `index` of the launch to its end, or until worker->paused; worker->stopped: it failed, and the
 * failure is reported. */
void fa_emu_run_block(fa_emu_worker *worker, uint64_t index);
/* Goes on with a paused block. */
void fa_emu_resume_block(fa_emu_worker *worker);

#endif
