/* Reads a cubin (ELF 64) without a driver: exported constants, entry points, the digest of the machine code. */
#pragma once

#include "base/file.h"

/* Copies the initialised object `symbol` (`size` bytes). False when the file has no such object of that size. */
bool fa_cubin_object(const char *cubin, size_t cubin_size, const char *symbol, void *out, size_t size);
bool fa_cubin_function(const char *cubin, size_t cubin_size, const char *symbol);

/* SHA-256 over the machine code alone (.text sections), without exported constants and debug lines. */
fa_digest fa_cubin_code_digest(const char *cubin, size_t cubin_size);
