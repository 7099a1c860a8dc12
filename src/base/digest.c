#include "base/digest.h"

#include <openssl/evp.h>
#include <stdio.h>

fa_digest fa_sha256(const void *data, size_t size)
{
    unsigned char bytes[32];
    size_t length = 0;
    FA_ASSERT(EVP_Q_digest(NULL, "SHA256", NULL, data, size, bytes, &length) == 1 && length == sizeof bytes);
    fa_digest digest;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    return digest;
}
