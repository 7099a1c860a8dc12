/* Beside the cache: which configuration first compiled to a given machine code. Two configurations with one code differ
 * in a knob that does nothing. */
#ifndef FA_CODE_INDEX_H
#define FA_CODE_INDEX_H

#include "base/digest.h"
#include "input/spec.h"

/* Looks up the code of `spec`, or adds it. `same_code_as`: the configuration that was there first, when it is another
 * one; else unchanged. `cache`: the folder of the cache. */
void fa_code_index_find(const char *cache, const fa_digest *code, const fa_spec *spec, char same_code_as[160]);

#endif
