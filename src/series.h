/* --runs FILE: the command line again for each line of a file. */
#ifndef FA_SERIES_H
#define FA_SERIES_H

#include "child.h"

typedef struct fa_series {
    int32_t count;
    fa_options *options;
    int *argc;
    char ***argv; /* of each run: the command line without --runs, then the words of the line */
} fa_series;

/* One run without --runs. FA_USAGE with FILE:LINE for a line that is not the options of a check. Lives until the process ends. */
fa_status fa_series_make(const fa_options *options, int argc, char *const argv[], fa_series *series, fa_reason *why);

/* Does the runs and reports each. The exit code is that of the first that did not pass. */
int fa_series_run(fa_work *work, const fa_series *series);

/* Called by each run of a series: the first keeps the GPU's context for as long as the process lives, and the next find it made. */
void fa_series_hold_gpu(const fa_options *options);

#endif
