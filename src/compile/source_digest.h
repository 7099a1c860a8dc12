/* The files of a kernel's source, its own and all that it includes, and their digest. */
#pragma once

#include "base/file.h"

#include <limits.h>

#include "input/options.h"

/* A source file and, recursively, every file it includes, each once, the source first; real paths. A file is looked
 * for beside the includer (not <name>), beside the kernel, in `folders` (--include; NULL: none), and in include/,
 * kernels/ and src/emu/include/ of the home folder; a header of forward.h counts as the file that it includes. What
 * lies elsewhere belongs to the compiler, whose version is in the key. */
typedef struct fa_source_files {
    char **paths;
    size_t count;
    fa_digest digest; /* SHA-256 over all of them */
    fa_digest stamp;  /* over each file's modification time before it was read: changes with any edit */
    char *own;        /* includes that are one of our headers by name (forward.h) and a file of the source; or NULL */
} fa_source_files;

/* FA_COMPILE_ERROR: an include without a file name (a macro). `files` is the caller's to free either way. */
fa_status fa_source_files_read(const char *path, const fa_list *folders, fa_source_files *files, fa_reason *why);
void fa_source_files_free(fa_source_files *files);
/* The digest alone. */
fa_status fa_source_digest(const char *path, const fa_list *folders, fa_digest *digest, fa_reason *why);

/* Whether a line is an include with a file name, and which. */
#define FA_INCLUDE_NAME 256
bool fa_source_include(const char *line, char name[FA_INCLUDE_NAME], bool *quoted);
/* Where that file lies, by the rules above. False: nowhere there. */
bool fa_source_resolve(const char *source, const fa_list *folders, const char *includer, const char *name, bool quoted,
                       char path[PATH_MAX]);
