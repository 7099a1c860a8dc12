/* Paths as ptxas and nvcc take them, without quotes, backslashes and control characters; folders of headers. */
#pragma once

#include "input/registry.h"

char *fa_path_to_show(const char *path); /* to be put between quotes: '_' for each such character; malloc'd */

/* A path to the same file or folder; by /proc where its own has such a character, good while this process runs. The
 * text is kept as long. A "-I" before it stays. */
const char *fa_path_to_open(const char *path);

/* Libraries of headers that a kernel of the registry needs and the repository does not hold: its trait `headers`. */
typedef struct fa_headers {
    char folder[1024]; /* for the compiler's -I; empty: the kernel needs none */
    char version[64];  /* "cutlass 4.2.0" */
} fa_headers;

/* They lie in <NAME>_DIR/include (CUTLASS_DIR/include) where that variable is set, else in build/<name>/include, where
 * scripts/setup.sh <name> puts them. row: NULL needs none. FA_NOT_RUN, saying so, when they are not there. */
fa_status fa_headers_find(const fa_kernel_row *row, fa_headers *headers, fa_reason *why);
