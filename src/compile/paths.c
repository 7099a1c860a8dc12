#include "compile/paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static bool breaks(char c) { return c == '"' || c == '\\' || ((unsigned char)c < ' ' && c != '\0'); }

static bool any_breaks(const char *path)
{
    while (*path != '\0' && !breaks(*path))
        path++;
    return *path != '\0';
}

/* NVRTC puts the working folder before a relative path: where that folder breaks it, the path from the root.
 * malloc'd */
static char *whole(const char *path)
{
    char folder[PATH_MAX];
    if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL || !any_breaks(folder))
        return fa_format("%s", path);
    return fa_format("%s/%s", folder, path);
}

char *fa_path_to_show(const char *path)
{
    char *shown = whole(path);
    for (char *at = shown; *at != '\0'; at++)
        if (breaks(*at))
            *at = '_';
    return shown;
}

typedef struct alias {
    char *path, *other;
    struct alias *next;
} alias;

const char *fa_path_to_open(const char *path)
{
    static alias *aliases;
    for (const alias *a = aliases; a != NULL; a = a->next)
        if (strcmp(a->path, path) == 0)
            return a->other;
    const char *option = strncmp(path, "-I", 2) == 0 ? "-I" : "";
    char *from_root = whole(path + strlen(option));
    const char *slash = strrchr(from_root, '/');
    const bool by_folder = slash != NULL && !any_breaks(slash); /* the file keeps its name */
    char *opened = fa_format("%.*s", by_folder ? (int)(slash - from_root) + 1 : (int)strlen(from_root), from_root);
    const int file = any_breaks(from_root) ? open(opened, O_PATH | O_CLOEXEC) : -1;
    free(opened);
    const char *other = path; /* a path that cannot be opened stays: the compiler reports the error */
    if (file >= 0) {
        alias *a = fa_alloc(sizeof *a);
        *a = (alias){fa_format("%s", path), NULL, aliases};
        other = a->other = fa_format("%s/proc/%d/fd/%d%s", option, (int)getpid(), file, by_folder ? slash : "");
        aliases = a;
    }
    free(from_root);
    return other;
}
