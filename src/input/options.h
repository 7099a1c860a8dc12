/* The command line: parsing by the rows of options.def. */
#pragma once

#include "input/option_table.h"

/* Text options point into argv; everything else is parsed here, once. FA_USAGE: one line that names the option and its
 * allowed range. */
fa_status fa_options_parse(int argc, char *const argv[], fa_options *options, fa_reason *why);

/* An option that is refused on a line of --runs, and why. */
typedef struct fa_ban {
    const char *name, *reason;
} fa_ban;
/* Parses `words` on top of existing options. `banned` ends with a NULL name. */
fa_status fa_options_add(int count, char *const words[], const fa_ban *banned, fa_options *options, fa_reason *why);

/* Whether the options of a run go together: none is read and then forgotten. */
fa_status fa_options_agree(const fa_options *options, fa_reason *why);

/* Whether a value of this option stands for several: 64,128 or 512:8192:x2 of a number, fp16,bf16 of a word; --kernel
 * and --preset, too. */
bool fa_option_has_several(const char *name, const char *value);
