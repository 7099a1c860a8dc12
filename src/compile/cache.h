/* Compiled modules on disk, found by a digest of all that decides them. An entry is a folder: it appears whole, by one
 * rename, and its files are verified when it is opened. */
#pragma once

#include "base/file.h"

/* hit: `folder` is the published entry, verified. Otherwise it is a private folder to build in and then to publish. */
typedef struct fa_cache_entry {
    char folder[900];
    bool hit;
    bool temporary; /* no cache can be written: the folder lies in TMPDIR until fa_cache_tidy */
} fa_cache_entry;

fa_status fa_cache_open(const fa_digest *key, fa_cache_entry *entry, fa_reason *why);
/* Makes the private folder the entry; `folder` then names its final place. Another process may publish the same entry
 * first: that is a success too. */
fa_status fa_cache_publish(const fa_digest *key, fa_cache_entry *entry, fa_reason *why);
void fa_cache_discard(fa_cache_entry *entry); /* removes the private folder after a failed build */

/* Removes the temporary folders. Call it when their modules are unloaded; the end of the process does it too. */
void fa_cache_tidy(void);

/* Removes the folder that is being built in, when the process must end now: safe in a signal's handler. */
void fa_cache_abandon(void);
