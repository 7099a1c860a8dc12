/* A race as text: threads, lines of the kernel, memory. */
#ifndef FA_EMU_RACE_REPORT_H
#define FA_EMU_RACE_REPORT_H

#include "emu/race/state.h"

/* Call it outside the kernel's threads: it starts a program that reads the object's line table. */
void fa_race_explain(const fa_race *race, char *text, size_t size);
/* mark_calls puts a mark behind the line of the asm statement that a thread is in, and returns the length of the mark.
 * name_calls replaces the marks by the lines of the callers; call it outside the kernel's threads. */
size_t fa_race_mark_calls(const fa_emu_worker *worker, const fa_emu_fibre *fibre, const char *file, int line,
                          char *text, size_t size);
void fa_race_name_calls(const fa_race *race, char *text, size_t size);

#endif
