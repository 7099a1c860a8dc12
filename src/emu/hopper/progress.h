/* Advances the pending work of a block, for the scheduler. */
#pragma once

#include "emu/core/pending.h"

void fa_emu_pending_reset(fa_emu_worker *worker);
void fa_emu_pending_free(fa_emu_worker *worker);

/* Advances some of it: called whenever the schedule picks a thread. */
void fa_emu_pending_turn(fa_emu_worker *worker);
/* No thread can run: completes a copy that a thread may wait for. False: there is none. */
bool fa_emu_pending_force(fa_emu_worker *worker);
/* All threads wait or poll. Completes a copy now and then, because a polling thread does not wait for one. True: they
 * poll in vain, a deadlock, which it reports. */
bool fa_emu_pending_polled(fa_emu_worker *worker);
/* The running thread ends; the block has ended. Reports what is still pending: worker->stopped. */
void fa_emu_pending_thread_ends(fa_emu_worker *worker);
void fa_emu_pending_block_ends(fa_emu_worker *worker);
