/* Several values for one option: a list (64,128), a range (512:8192:x2, 64:256:64), or ranges in a list. */
#pragma once

#include <stddef.h>

#include "input/options.h"

#define FA_GRID_RUNS_MAX 10000
#define FA_GRID_AXES_MAX 16

/* An option with several values. */
typedef struct fa_grid_axis {
    int word;         /* of the words: the value, or --name=value */
    const char *name; /* of the option */
    char **values;
    size_t count;
} fa_grid_axis;

typedef struct fa_grid {
    size_t runs; /* every value of an option with every value of the others; 1: each option has one value */
    int count;
    char *const *words; /* the caller's */
    int axes;
    fa_grid_axis axis[FA_GRID_AXES_MAX];
} fa_grid;

/* Finds the options with several values in `words`. Whether a value is in range is for fa_options_add to say. FA_USAGE:
 * a range that cannot be, several values for an option of `single` (ends with a NULL name), too many runs. */
fa_status fa_grid_make(int count, char *const words[], const fa_ban *single, fa_grid *grid, fa_reason *why);
/* The words of run `index`, the last option's values first; ends with NULL. One malloc'd piece, which words that are
 * the same in every run do not lie in. */
char **fa_grid_words(const fa_grid *grid, size_t index);
/* What tells run `index` from the others: "--seq 512 --dim 64"; malloc'd. */
char *fa_grid_values(const fa_grid *grid, size_t index);
void fa_grid_free(fa_grid *grid);
