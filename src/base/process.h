/* This process (its clock, its home folder) and the programs it runs. */
#pragma once

#include <sys/types.h>

#include "base/status.h"

double fa_now_s(void); /* monotonic seconds */
void fa_rest(double seconds);

/* fork; ends the program with a line and code 6 where no process can be started. */
pid_t fa_fork(void);

/* How many threads this process may use: the cores that it may run on, or what it was told. */
int fa_threads(void);
void fa_use_threads(int count);

/* Opens what a caller closed of the standard files, so that no other file takes its number: using it still fails. Ends
 * the program with a line and code 4 where `ulimit` leaves too little stack or too few open files. */
void fa_process_begin(void);

/* The folder that holds kernels/, include/ and src/: FA_HOME, else the folder of the running binary, else
 * ../share/fa_bench beside an installed binary. */
const char *fa_home(void);

/* Runs a program (argv[0] is looked up in PATH) and waits for it. *output: what it wrote to stdout and stderr,
 * malloc'd; `output` may be NULL. Returns its exit code, or -1 when it could not start or was ended by a signal. */
int fa_run(const char *const argv[], char **output);
