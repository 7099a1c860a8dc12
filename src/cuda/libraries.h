/* Which library candidate a spec means. */
#ifndef FA_LIBRARIES_H
#define FA_LIBRARIES_H

#include "cuda/library.h"

/* The library of a spec of FA_KIND_LIBRARY: the file of --library, or the one that the registry row names. */
const fa_library *fa_library_of(const fa_spec *spec);

#endif
