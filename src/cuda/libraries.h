/* Which library candidate a spec means. */
#pragma once

#include "cuda/library.h"

/* The library of a spec of FA_KIND_LIBRARY: the file of --library, or the one that the registry row names. */
const fa_library *fa_library_of(const fa_spec *spec);
