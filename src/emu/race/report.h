/* A race in words: who, where in the kernel, in which memory. */
#ifndef FA_EMU_RACE_REPORT_H
#define FA_EMU_RACE_REPORT_H

#include "emu/race/state.h"

/* Call it outside the kernel's threads: it starts a program that reads the object's line table. */
void fa_race_explain(const fa_race *race, char *text, size_t size);
/* Puts a mark behind the line of the asm statement that a thread is in, and makes it the lines of the calls that it is
 * in: the latter outside the kernel's threads, too. Returns how many bytes the mark has. */
size_t fa_race_mark_calls(const fa_emu_worker *worker, const fa_emu_fibre *fibre, const char *file, int line,
                          char *text, size_t size);
void fa_race_name_calls(const fa_race *race, char *text, size_t size);

#endif
