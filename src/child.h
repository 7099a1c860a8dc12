/* Containment: the work runs in a child process; the parent watches the clock and outlives hangs and crashes. */
#ifndef FA_CHILD_H
#define FA_CHILD_H

#include <sys/types.h>

#include "report/result.h"

/* Does one run. `device` may be open from the run before and stays open; nothing else is left on it. */
typedef void fa_work(const fa_command *run, fa_result *result, fa_device *device);

/* The working process, and the memory it shares with this one. Zeroed: none. */
typedef struct fa_child {
    pid_t pid;
    int line; /* to the child: a byte each way per run; with --stream the line of the run, too */
    fa_result *result;
    char *dump; /* what a sanitizer said of the last run; NULL: nothing */
} fa_child;

/* Lets the child do run `index` (starts one when there is none) and waits at most the run's timeout. A hang is killed:
 * FA_TIMEOUT. A crash is FA_ERROR with the signal and the stage. The child is kept for the next run, except after the
 * last one and after FA_ERROR, which may have broken the device. The result is valid until the next call. */
const fa_result *fa_child_run(fa_child *child, fa_work *work, fa_runs *runs, size_t index);
void fa_child_end(fa_child *child);

#endif
