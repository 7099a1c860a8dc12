/* The digest of a kernel's source: of its file and all that it includes. */
#ifndef FA_SOURCE_DIGEST_H
#define FA_SOURCE_DIGEST_H

#include "base/digest.h"

/* SHA-256 over a source file and, recursively, every file it includes. A file is looked for beside the includer, beside
 * the kernel, and in include/, kernels/ and src/emu/include/ of the home folder; what lies elsewhere belongs to the
 * compiler, whose version is in the key. FA_COMPILE_ERROR: an include without a file name (a macro). */
fa_status fa_source_digest(const char *path, fa_digest *digest, fa_reason *why);

#endif
