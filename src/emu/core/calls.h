/* The calls that a thread of the kernel is in, for reports. */
#pragma once

#include "emu/core/state.h"

/* Writes a mark with the addresses of the thread's calls; fa_emu_calls_name replaces it. Returns its length: 0 for a
 * thread that neither runs nor waits. */
size_t fa_emu_calls_mark(fa_emu_worker *worker, const fa_emu_fibre *fibre, char *text, size_t size);
/* For a thread that goes on after a wait: answers fa_emu_calls_mark first if that asks. */
void fa_emu_calls_answer(fa_emu_worker *worker);
/* Replaces the marks of a text by lines of the kernel: " (called at FILE:LINE, ...)", or behind " at " the innermost
 * line first. Call it outside the kernel's threads: it starts a program that reads the object's line table. */
void fa_emu_calls_name(const fa_emu_image *image, char *text, size_t size);
