/* A line on the terminal while a run takes long: what it does, how far it is, how long it may take. */
#pragma once

#include "report/result.h"

/* Rewrites the line, from two seconds on; nothing unless stderr is a terminal, or with --quiet. `run` of `runs` is
 * counted from 0; `elapsed_s` since it began. */
void fa_progress_show(const fa_result *result, const fa_runs *runs, size_t run, double elapsed_s);
void fa_progress_clear(void);
