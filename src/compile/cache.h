/* Content-addressed store of compiled modules: one folder per key, published whole by one rename, verified when read. */
#ifndef FA_CACHE_H
#define FA_CACHE_H

#include "base/digest.h"
#include "input/spec.h"

/* hit: `folder` is the published entry, its files verified. Otherwise it is a private folder to build in, then to publish. */
typedef struct fa_cache_entry {
    char folder[900];
    bool hit;
    bool temporary; /* the cache is not writable: the folder lives under TMPDIR and goes with fa_cache_tidy */
} fa_cache_entry;

fa_status fa_cache_open(const fa_digest *key, fa_cache_entry *entry, fa_reason *why);
/* Makes the private folder the entry; `folder` then names its final place. Losing a race to another process is fine. */
fa_status fa_cache_publish(const fa_digest *key, fa_cache_entry *entry, fa_reason *why);
void fa_cache_discard(fa_cache_entry *entry); /* removes the private folder after a failed build */

/* Removes what was built where no cache is writable: after a run, when its modules are unloaded, and when the process ends. */
void fa_cache_tidy(void);

/* SHA-256 over a source file and, recursively, every file it includes with quotes (searched beside the includer, then in
 * include/ and kernels/ of the home folder). */
fa_status fa_source_digest(const char *path, fa_digest *digest, fa_reason *why);

#endif
