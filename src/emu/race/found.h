/* Findings of the race detector; a finding ends the block. */
#ifndef FA_EMU_RACE_FOUND_H
#define FA_EMU_RACE_FOUND_H

#include "emu/race/thread.h"

/* `now` (`size` bytes at `address`) races with race->before. */
void fa_race_found_at(fa_emu_worker *worker, const fa_race_access *now, uint64_t address, size_t size);
/* `now` is undefined because of `before`; `class` and `between` say why. */
void fa_race_found(fa_emu_worker *worker, const char *class, const char *between, const fa_race_access *now,
                   const fa_race_access *before);
/* An access to shared memory of a block that has not started or has ended; the format says which. The caller ends its
 * block. */
void fa_race_note(fa_emu_worker *worker, const fa_race_access *now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
