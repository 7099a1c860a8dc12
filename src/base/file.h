/* Files that are read and written whole, and digests of what they hold. */
#pragma once

#include <stdio.h>

#include "base/status.h"

/* A regular file alone: a pipe without a writer would block. The caller closes it. */
fa_status fa_open_file(const char *path, FILE **file, fa_reason *why);
/* Reads a whole file and adds a terminating 0 that `size` does not count. The caller frees *data. */
fa_status fa_read_file(const char *path, char **data, size_t *size, fa_reason *why);
/* FA_ERROR when writing there would follow a link that leads nowhere or that another user made. */
fa_status fa_check_output(const char *path, fa_reason *why);
/* Writes a temporary file beside `path`, flushes it and renames it: a reader sees the old file or the new one, never a
 * part. A device or a pipe is written in place. */
fa_status fa_write_file(const char *path, const void *data, size_t size, fa_reason *why);
/* Writes at the end of an open file. After a failure a regular file is cut back to the size it had. */
fa_status fa_append(int file, const void *data, size_t size, fa_reason *why);
fa_status fa_make_dirs(const char *path, fa_reason *why); /* mkdir -p */
void fa_remove_folder(const char *folder);                /* rm -rf of a folder, or a file in its place */

/* SHA-256 of bytes in memory. */

/* Lower-case hexadecimal, terminated. */
typedef struct fa_digest {
    char hex[65];
} fa_digest;
fa_digest fa_sha256(const void *data, size_t size);
