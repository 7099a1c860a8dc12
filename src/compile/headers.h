/* Libraries of headers that a kernel of the registry needs and the repository does not hold: its trait `headers`. */
#ifndef FA_HEADERS_H
#define FA_HEADERS_H

#include "input/registry.h"

typedef struct fa_headers {
    char folder[1024]; /* for the compiler's -I; empty: the kernel needs none */
    char version[64];  /* "cutlass 4.2.0" */
} fa_headers;

/* They lie in <NAME>_DIR/include (CUTLASS_DIR/include) where that variable is set, else in build/<name>/include, where
 * scripts/setup.sh <name> puts them. row: NULL needs none. FA_NOT_RUN, saying so, when they are not there. */
fa_status fa_headers_find(const fa_kernel_row *row, fa_headers *headers, fa_reason *why);

#endif
