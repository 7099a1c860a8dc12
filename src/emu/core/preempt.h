/* A thread of the kernel that runs for long without a wait may read memory in a loop until another thread writes it. A
 * timer makes it let others run. */
#pragma once

#include "emu/core/state.h"

/* Starts the timer of the calling OS thread, which fa_emu_preempt_end stops. Nothing under the race detector: its
 * volatile and atomic reads take turns. */
void fa_emu_preempt_begin(const fa_emu_launch *launch);
void fa_emu_preempt_end(void);
