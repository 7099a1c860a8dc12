/* Containment: the work runs in a child process; the parent watches the clock and outlives hangs and crashes. */
#pragma once

#include <sys/types.h>

#include "report/result.h"

#define FA_CHILDREN_MAX 256

/* Does one run. `device` may be open from the run before and stays open; nothing else is left on it. */
typedef void fa_work(const fa_command *run, fa_result *result, fa_device *device);

/* A working process, and the memory it shares with this one. Zeroed: none. */
typedef struct fa_child {
    pid_t pid;
    int line; /* to the child: a byte each way per run; with --stream the line of the run, too */
    bool busy;
    size_t run; /* that it does */
    double start_s;
    fa_result *result;
    char *dump; /* what a sanitizer said of the last run; NULL: nothing */
} fa_child;

/* Lets the child begin run `index` on `threads` threads; starts a process when there is none. */
void fa_child_begin(fa_child *child, fa_work *work, fa_runs *runs, size_t index, int threads);
/* True when its run is over: `result` and `dump` are valid until the next one begins. A run longer than its timeout is
 * killed: FA_TIMEOUT. A crash is FA_ERROR with the signal and the stage, and so is a run where this process gets a
 * signal. The process is kept for another run, except after the last one of the list and after FA_ERROR, which may
 * have broken the device. */
bool fa_child_is_done(fa_child *child, const fa_runs *runs);
/* Ends the processes of `count` children, and all that they started. */
void fa_children_end(fa_child *children, int count);
/* The signal that came to end this process (SIGHUP, SIGINT, SIGTERM); 0: none. Once there are children the caller ends
 * them, and then itself. */
int fa_children_signal(void);
