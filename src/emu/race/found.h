/* Findings of the race detector. The block goes on. */
#pragma once

#include "emu/race/thread.h"

/* what: without its place in memory, which is that of `address`. Where it does not differ, it is the running thread's
 * store, race->storing. */
void fa_race_found_at(fa_emu_worker *worker, const fa_race_finding *what, uint64_t address);
/* Before the next write, or when the thread stops: the last store that raced is done. */
void fa_race_store_settle(fa_race *race);
/* `now` is undefined because of `before`; `class` and `between` say why. */
void fa_race_found(fa_emu_worker *worker, const char *class, const char *between, const fa_race_access *now,
                   const fa_race_access *before);
/* An access to shared memory of a block that has not started or has ended; the format says which. The caller ends its
 * block. */
void fa_race_note(fa_emu_worker *worker, const fa_race_access *now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds what was found, as text: threads, lines of the kernel, memory. Returns whether there is more than equal-value
 * stores. Call it outside the kernel's threads: it starts a program that reads the object's line table. */
bool fa_race_explain(fa_race *race, fa_findings *found);
