/* Opens vendor libraries at run time, wherever they are installed. */
#pragma once

#include "base/status.h"

/* Opens the first of `names` (sonames, NULL-terminated) that loads. Places, in order: the folders in FA_LIBRARY_PATH
 * (separated by colons; below a Python site-packages also the folders of PyTorch's wheels), those of the dynamic
 * loader, /usr/local/cuda. FA_NOT_RUN with the loader's words. */
fa_status fa_library_open(const char *const names[], void **library, fa_reason *why);
typedef struct fa_library_symbol {
    const char *name;
    void *function_pointer;
} fa_library_symbol;
/* Opens one and finds all its `symbols`; FA_NOT_RUN also where it is too old to have one. what: its name for people. */
fa_status fa_library_open_all(const char *what, const char *const names[], const fa_library_symbol *symbols,
                              size_t count, void **library, fa_reason *why);
/* Copies the address of `symbol` into the function pointer at `function_pointer`; false when the library lacks it. */
bool fa_library_find(void *library, const char *symbol, void *function_pointer);
