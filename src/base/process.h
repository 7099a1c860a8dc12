/* This process (its clock, its home folder) and the programs it runs. */
#ifndef FA_PROCESS_H
#define FA_PROCESS_H

#include "base/status.h"

double fa_now_s(void); /* monotonic seconds */
void fa_rest(double seconds);

/* How many threads this process may use: the cores that it may run on, or what it was told. */
int fa_threads(void);
void fa_use_threads(int count);

/* What a caller closed of the standard files, so that no other file takes its number: using it still fails. */
void fa_hold_standard_files(void);

/* The folder that holds kernels/, include/ and src/: FA_HOME, else the folder of the running binary, else
 * ../share/fa_bench beside an installed binary. */
const char *fa_home(void);

/* Runs a program (argv[0] is looked up in PATH) and waits for it. *output: what it wrote to stdout and stderr,
 * malloc'd; `output` may be NULL. Returns its exit code, or -1 when it could not start or was ended by a signal. */
int fa_run(const char *const argv[], char **output);

#endif
