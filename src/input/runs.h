/* The runs of a command: the command line itself, or with --runs one for each line of a file. */
#ifndef FA_RUNS_H
#define FA_RUNS_H

#include "input/options.h"

#define FA_RUN_WORDS_MAX 256

typedef struct fa_command {
    fa_options options;
    int argc; /* the command that would do this run alone, NULL at the end */
    char **argv;
    char *text; /* what options and argv point into, NULL for the command line */
} fa_command;

typedef struct fa_runs {
    const char *from; /* the file, for messages */
    size_t count;
    fa_command *at;
} fa_runs;

/* Reads all of the file. Empty lines and those that start with # are none. FA_USAGE with the file and the line for one that
 * cannot be parsed, or that has an option which belongs to the whole command. */
fa_status fa_runs_make(int argc, char *const argv[], const fa_options *options, fa_runs *runs, fa_reason *why);
void fa_runs_free(fa_runs *runs);
/* Puts where the run stands in front of the reason. */
fa_status fa_runs_blame(const fa_runs *runs, const fa_command *run, fa_status status, fa_reason *why);

/* Words of a line, parted by blanks, in place; '...' and "..." hold blanks. FA_USAGE: an open quote, too many words. */
fa_status fa_runs_split(char *line, char *words[FA_RUN_WORDS_MAX], int *count, fa_reason *why);

#endif
