/* Fibres: each has a stack; a switch goes from one to another. */
#pragma once

#include "emu/core/state.h"

bool fa_emu_fibres_make(fa_emu_worker *worker, uint32_t count);
void fa_emu_fibres_free(fa_emu_worker *worker);
void fa_emu_fibre_reset(fa_emu_fibre *fibre, void (*entry)(void)); /* the next switch to it calls `entry` */
/* Leaves the running stack for `to`; NULL: the worker's own. `dying`: nothing returns to the stack that is left. */
void fa_emu_switch(fa_emu_worker *worker, fa_emu_fibre *to, bool dying);

/* Pauses the block from a thread that waits for another block; returns when the block is resumed. */
void fa_emu_pause_block(fa_emu_worker *worker);
/* The same after many rounds of polls. The race detector has a count of its own. */
void fa_emu_pause_idle_block(fa_emu_worker *worker);
