/* Tensors of whole numbers in safetensors files: a JSON header and raw little-endian data. */
#ifndef FA_SAFETENSORS_H
#define FA_SAFETENSORS_H

#include "base/status.h"

/* Reads at most `most` numbers (int32 or int64) of the tensor `key`. FA_USAGE says what is wrong with the file. */
fa_status fa_safetensors_whole(const char *path, const char *key, int64_t most, int64_t *values, int64_t *count,
                               fa_reason *why);

#endif
