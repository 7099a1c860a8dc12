/* Containment: the work runs in a child process; the parent watches the clock and outlives hangs and crashes. */
#ifndef FA_CHILD_H
#define FA_CHILD_H

#include <sys/types.h>

#include "report/result.h"
#include "input/runs.h"

/* Does one run on a device that may be open from the run before, and leaves nothing on it but that it stays open. */
typedef void fa_work(const fa_options *options, fa_result *result, fa_device *device);

/* The process that works now, and what it shares with this one. Zeroed: none. */
typedef struct fa_child {
    pid_t pid;
    int line; /* to the child: a byte each way per run */
    fa_result *result;
} fa_child;

/* Has run `index` done by the child, by a new one when there is none, and waits at most the run's timeout. A hang is killed
 * (FA_TIMEOUT), a crash reported (FA_ERROR with the signal and the stage). The child stays for the next run unless this is
 * the last or has ended as FA_ERROR, which may have cost it the device. The result lives until the next call. */
const fa_result *fa_child_run(fa_child *child, fa_work *work, const fa_runs *runs, size_t index);
void fa_child_end(fa_child *child);

#endif
