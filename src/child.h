/* Containment: the work runs in a child process; the parent watches the clock and outlives hangs and crashes. */
#ifndef FA_CHILD_H
#define FA_CHILD_H

#include "result.h"

typedef void fa_work(const fa_options *options, fa_result *result);

typedef void fa_run_done(void *self, int32_t run, const fa_result *result);

/* Forks, does `work` for each of the options in turn on results both processes share; done(self, i, result) tells of each in the
 * parent, as it ends. A run lasts at most its options' timeout: a hang is killed (FA_TIMEOUT), a crash reported (FA_ERROR with the
 * signal and the stage), and the runs after it get a new child. */
void fa_child_runs(fa_work *work, const fa_options options[], int32_t count, fa_run_done *done, void *self);

#endif
