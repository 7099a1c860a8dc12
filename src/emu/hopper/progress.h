/* What is under way in a block, as the scheduler sees it. */
#ifndef FA_EMU_HOPPER_PROGRESS_H
#define FA_EMU_HOPPER_PROGRESS_H

#include "emu/core/pending.h"

void fa_emu_pending_reset(fa_emu_worker *worker);
void fa_emu_pending_free(fa_emu_worker *worker);

/* Lets some of it happen: called whenever the schedule picks a thread. */
void fa_emu_pending_turn(fa_emu_worker *worker);
/* No thread can run: ends a copy that one may wait for. False: there is none. */
bool fa_emu_pending_force(fa_emu_worker *worker);
/* For a moment at which all threads wait or poll. A thread that polls waits for no copy, so a copy ends here now and
 * then. Returns true when they poll in vain: a deadlock, which it reports. */
bool fa_emu_pending_polled(fa_emu_worker *worker);
/* The running thread ends; the block has ended. Reports what was left under way: worker->stopped. */
void fa_emu_pending_thread_ends(fa_emu_worker *worker);
void fa_emu_pending_block_ends(fa_emu_worker *worker);

#endif
