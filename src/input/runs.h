/* The runs of a command: the command line itself or, with --runs, one run for each line of a file. */
#ifndef FA_RUNS_H
#define FA_RUNS_H

#include "input/spec.h"

#define FA_RUN_WORDS_MAX 256

/* One run: its options, and what they ask for. */
typedef struct fa_command {
    fa_options options;
    fa_problem problem;
    fa_spec spec;
    fa_spec other; /* of --vs; zeroed without it */
    int argc;      /* the command line that does this run alone; argv ends with NULL */
    char **argv;
    char *text; /* the line of the file, which options and argv point into; NULL for the command line */
} fa_command;

typedef struct fa_runs {
    const char *from; /* the file, for messages */
    size_t count;
    fa_command *at;
} fa_runs;

/* Reads and validates every run before the first one starts. Blank lines and lines that start with # are skipped.
 * FA_USAGE: an invalid run is reported with the file and its line number; so is a line with an option that belongs to
 * the whole command. */
fa_status fa_runs_make(int argc, char *const argv[], const fa_options *options, fa_runs *runs, fa_reason *why);
/* The command line of a run without the binary's folder, words quoted where a shell needs it; malloc'd. */
char *fa_command_text(const fa_command *run);
void fa_runs_free(fa_runs *runs);

/* Splits a line into words in place, at spaces and tabs; quote values that contain spaces ('...' or "..."). FA_USAGE: a
 * quote that does not end, too many words. */
fa_status fa_runs_split(char *line, char *words[FA_RUN_WORDS_MAX], int *count, fa_reason *why);

#endif
