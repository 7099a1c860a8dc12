/* Tensors in safetensors files: a JSON header and raw little-endian data. */
#pragma once

#include "base/status.h"

typedef struct fa_safetensor {
    char dtype[16]; /* "F16", "BF16", "I32", ... */
    int rank;
    int64_t shape[8];
    const char *data;
    size_t bytes; /* the product of the shape times the type's width */
    char *file;   /* what the caller frees */
} fa_safetensor;

/* The tensor `key` of a file. FA_USAGE says what is wrong with the file. */
fa_status fa_safetensors_read(const char *path, const char *key, fa_safetensor *tensor, fa_reason *why);
/* Reads at most `most` whole numbers (int32 or int64) of it. */
fa_status fa_safetensors_whole(const char *path, const char *key, int64_t most, int64_t *values, int64_t *count,
                               fa_reason *why);
