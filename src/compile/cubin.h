/* Reading a cubin (ELF 64) without a driver: the constants a kernel exports, and whether it has the entry point. */
#ifndef FA_CUBIN_H
#define FA_CUBIN_H

#include "base/digest.h"
#include "base/status.h"

/* Copies the initialised object `symbol` (`size` bytes). False when the file has no such object of that size. */
bool fa_cubin_object(const char *cubin, size_t cubin_size, const char *symbol, void *out, size_t size);
bool fa_cubin_function(const char *cubin, size_t cubin_size, const char *symbol);

/* SHA-256 over the machine code (.text sections), exported constants and debug lines left out. */
fa_digest fa_cubin_code_digest(const char *cubin, size_t cubin_size);

#endif
