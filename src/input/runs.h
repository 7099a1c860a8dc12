/* The runs of a command: the command line itself, with several values for an option one run for each, and with --runs
 * one run for each line of a file. */
#pragma once

#include <stdio.h>

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
    char *line; /* of the list, as it stands there; NULL for the command line */
    char *text; /* its words, or of several values its argv: which options and argv point into */
} fa_command;

typedef struct fa_runs {
    const char *from; /* the file, for messages */
    size_t count;
    fa_command **at; /* NULL: fa_runs_done */
    bool many;       /* a list, or several values, even where it is one run: records are JSON Lines */
    FILE *in;        /* of --stream: more lines may come from it; NULL when all are here */
    int32_t lines;   /* read so far, blank ones too */
    int argc;        /* of the command line, which each line is added to */
    char *const *argv;
    const fa_options *options;
} fa_runs;

/* Reads and validates every run before the first one starts; with --stream none: fa_runs_reach reads them. Blank lines
 * and lines that start with # are skipped. FA_USAGE: an invalid run is reported with the file and its line number; so
 * is a line with an option that belongs to the whole command. */
fa_status fa_runs_make(int argc, char *const argv[], const fa_options *options, fa_runs *runs, fa_reason *why);
/* True when there is a run `index`; with --stream waits for its line. False at the end of the list, and for a line
 * that is refused, with the reason in `status` and `why`. */
bool fa_runs_reach(fa_runs *runs, size_t index, fa_status *status, fa_reason *why);
/* Adds a run that another process has read and found valid: its line, and the line's number. */
void fa_runs_append(fa_runs *runs, const char *line, size_t size, int32_t number);
/* The command line of a run without the binary's folder, words quoted where a shell needs it; malloc'd. */
char *fa_command_text(const fa_command *run);
/* The same with options behind it that make the problem small, where it is larger; NULL: it is small as it is. */
char *fa_smaller_text(const fa_command *run);
/* Frees a run that is over: a stream has no end. */
void fa_runs_done(fa_runs *runs, size_t index);
void fa_runs_free(fa_runs *runs);

/* Splits a line into words in place, at spaces and tabs; quote values that contain spaces ('...' or "..."). FA_USAGE: a
 * quote that does not end, too many words. */
fa_status fa_runs_split(char *line, char *words[FA_RUN_WORDS_MAX], int *count, fa_reason *why);
