/* --runs FILE: the command line again for each line of a file. */
#ifndef FA_SERIES_H
#define FA_SERIES_H

#include "options.h"

typedef struct fa_series {
    int32_t count;
    fa_options *options;
    int *argc;
    char ***argv; /* of each run: the command line without --runs, then the words of the line */
} fa_series;

/* One run without --runs. FA_USAGE with FILE:LINE for a line that is not the options of a check. Lives until the process ends. */
fa_status fa_series_make(const fa_options *options, int argc, char *const argv[], fa_series *series, fa_reason *why);

#endif
