/* Containment: the work runs in a child process; the parent watches the clock and outlives hangs and crashes. */
#ifndef FA_CHILD_H
#define FA_CHILD_H

#include "result.h"

typedef void fa_work(const fa_options *options, fa_result *result);

/* Forks, runs `work` on a result both processes share, waits at most options->timeout seconds. A hang is killed (FA_TIMEOUT),
 * a crash reported (FA_ERROR with the signal and the stage). The result lives until the process ends. */
fa_result *fa_child_run(fa_work *work, const fa_options *options);

#endif
