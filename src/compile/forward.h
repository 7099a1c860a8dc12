/* Headers that only include another one: the C++ library for NVRTC, which has none, and the toolkit's for the emulator.
 * They have no files: NVRTC takes them from memory, g++ from a folder of the cache. */
#pragma once

#include <limits.h>

#include "base/file.h"

enum { FA_FORWARDS_MAX = 64 }; /* for one compiler */
typedef enum { FA_FORWARD_NVRTC, FA_FORWARD_EMULATOR } fa_forward_compiler;

typedef struct fa_forwards {
    int count;
    char *names[FA_FORWARDS_MAX], *texts[FA_FORWARDS_MAX];
} fa_forwards;

/* Those of a compiler, but for the names that stand in `own`, each between spaces. */
fa_forwards fa_forwards_make(fa_forward_compiler compiler, const char *own);
void fa_forwards_free(fa_forwards *forwards);
/* SHA-256 of their names and texts. */
fa_digest fa_forwards_digest(fa_forward_compiler compiler);

/* The file that a header of this name includes. False: there is no such header. */
bool fa_forward_target(const char *name, char path[PATH_MAX]);
/* Writes the emulator's headers below `folder` where they are not there yet. Another process may do so, too. */
fa_status fa_forward_write(const char *folder, fa_reason *why);
