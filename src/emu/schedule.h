/* Runs one block: chooses the next thread, and completes operations of several threads. */
#pragma once

#include "emu/core/state.h"

/* Resets the worker to block number `index` of the launch; no thread has run yet. */
void fa_emu_begin_block(fa_emu_worker *worker, uint64_t index);
/* Runs the block until it is over (worker->over), paused, stuck, or another block of the cluster runs. worker->stopped:
 * it failed, and that is reported. */
void fa_emu_run_block(fa_emu_worker *worker);
void fa_emu_resume_block(fa_emu_worker *worker);

/* Time is over: every block of the process fails at its next wait, with a report of where its threads are. Safe in a
 * signal's handler. */
void fa_emu_interrupt(void);
