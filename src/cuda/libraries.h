/* Which library candidate a spec means. */
#ifndef FA_LIBRARIES_H
#define FA_LIBRARIES_H

#include "cuda/library.h"

/* Of a spec of FA_KIND_LIBRARY: the file of --library, or the library that the registry row is named for. */
const fa_library *fa_library_of(const fa_spec *spec);

#endif
