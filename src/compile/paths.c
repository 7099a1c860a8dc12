#include "compile/paths.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

static bool breaks(char c) { return c == '"' || c == '\\' || ((unsigned char)c < ' ' && c != '\0'); }

static bool any_breaks(const char *path)
{
    while (*path != '\0' && !breaks(*path))
        path++;
    return *path != '\0';
}

/* NVRTC puts the working folder before a relative path: where that breaks it, the path from the root. malloc'd */
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

static void upper_case(const char *name, char upper[32])
{
    size_t length = 0;
    for (; name[length] != '\0' && length < 31; length++)
        upper[length] = (char)toupper((unsigned char)name[length]);
    upper[length] = '\0';
}

/* #define CUTLASS_MAJOR 4; -1: there is no such line. */
static int defined_as(const char *text, const char *name, const char *what)
{
    int value = -1;
    char *line = fa_format("#define %s_%s %%d", name, what);
    for (const char *at = text; value < 0 && at != NULL; at = strstr(at + 1, "#define"))
        sscanf(at, line, &value);
    free(line);
    return value;
}

/* Reads <folder>/cutlass/version.h. */
static fa_status read_version(const char *name, const char *upper, fa_headers *headers, fa_reason *why)
{
    char *path = fa_format("%s/%s/version.h", headers->folder, name), *text = NULL;
    size_t size = 0;
    const fa_status status = access(path, R_OK) == 0 ? fa_read_file(path, &text, &size, why) : FA_NOT_RUN;
    free(path);
    if (status == FA_PASS)
        snprintf(headers->version, sizeof headers->version, "%s %d.%d.%d", name, defined_as(text, upper, "MAJOR"),
                 defined_as(text, upper, "MINOR"), defined_as(text, upper, "PATCH"));
    free(text);
    return status;
}

fa_status fa_headers_find(const fa_kernel_row *row, fa_headers *headers, fa_reason *why)
{
    *headers = (fa_headers){.folder = ""};
    const char *name = row != NULL ? row->traits.headers : NULL;
    if (name == NULL)
        return FA_PASS;
    char upper[32];
    upper_case(name, upper);
    char *variable = fa_format("%s_DIR", upper);
    const char *set = getenv(variable);
    const int length = set != NULL
                           ? snprintf(headers->folder, sizeof headers->folder, "%s/include", set)
                           : snprintf(headers->folder, sizeof headers->folder, "%s/build/%s/include", fa_home(), name);
    fa_status status = length < (int)sizeof headers->folder ? read_version(name, upper, headers, why) : FA_NOT_RUN;
    if (status == FA_NOT_RUN)
        status =
            fa_refuse(why, FA_NOT_RUN,
                      "%s needs the headers of %s, and %s has none: scripts/setup.sh %s brings them into build/%s, "
                      "or set %s to a folder with its include/",
                      row->name, name, headers->folder, name, name, variable);
    free(variable);
    return status;
}
