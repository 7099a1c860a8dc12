/* SHA-256 of bytes in memory. */
#ifndef FA_DIGEST_H
#define FA_DIGEST_H

#include "base/status.h"

/* Lower-case hexadecimal, terminated. */
typedef struct fa_digest {
    char hex[65];
} fa_digest;
fa_digest fa_sha256(const void *data, size_t size);

#endif
