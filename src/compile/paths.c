#include "compile/paths.h"

#include <fcntl.h>
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

char *fa_path_to_show(const char *path)
{
    char *shown = fa_format("%s", path);
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
    if (!any_breaks(path))
        return path;
    for (const alias *a = aliases; a != NULL; a = a->next)
        if (strcmp(a->path, path) == 0)
            return a->other;
    const char *option = strncmp(path, "-I", 2) == 0 ? "-I" : "";
    const char *slash = strrchr(path, '/'), *first = path + strlen(option);
    const bool by_folder = slash != NULL && !any_breaks(slash); /* the file keeps its name */
    char *opened = by_folder ? fa_format("%.*s", (int)(slash - first) + 1, first) : fa_format("%s", first);
    const int file = open(opened, O_PATH | O_CLOEXEC);
    free(opened);
    if (file < 0)
        return path; /* the compiler says what is wrong with it */
    alias *a = fa_alloc(sizeof *a);
    *a = (alias){fa_format("%s", path), NULL, aliases};
    a->other = fa_format("%s/proc/%d/fd/%d%s", option, (int)getpid(), file, by_folder ? slash : "");
    aliases = a;
    return a->other;
}
