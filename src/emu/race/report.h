/* A race as text: threads, lines of the kernel, memory. */
#ifndef FA_EMU_RACE_REPORT_H
#define FA_EMU_RACE_REPORT_H

#include "emu/race/state.h"

/* Adds what was found; whether there is more than equal-value stores. Call it outside the kernel's threads: it starts a
 * program that reads the object's line table. */
bool fa_race_explain(fa_race *race, fa_findings *found);

#endif
