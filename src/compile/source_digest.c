#include "compile/source_digest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

/* The files that are in a digest, each once. */
typedef struct file_list {
    char *paths[64];
    size_t count;
    char *digests; /* hex digests joined */
} file_list;

static bool beside(const char *file, const char *name, char path[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    const int folder = slash != NULL ? (int)(slash - file) : 0;
    snprintf(path, PATH_MAX, "%.*s/%s", folder > 0 ? folder : 1, folder > 0 ? file : ".", name);
    return access(path, R_OK) == 0;
}

/* Where the compilers look: beside the includer, beside the kernel (their first -I), then our own folders. A header of
 * the toolkit or the system is not found: it belongs to the compiler, whose version is in the key. */
static bool resolve_include(const file_list *list, const char *includer, const char *name, char path[PATH_MAX])
{
    if (beside(includer, name, path) || beside(list->paths[0], name, path))
        return true;
    const char *const roots[] = {"include", "kernels", "src/emu/include"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, PATH_MAX, "%s/%s/%s", fa_home(), roots[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

static fa_status add_file(const char *path, file_list *list, fa_reason *why)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read %s: %s", path, strerror(errno));
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->paths[i], real) == 0)
            return FA_PASS;
    if (list->count == sizeof list->paths / sizeof list->paths[0])
        return fa_refuse(why, FA_ERROR, "%s includes more than %zu files", path, list->count);
    list->paths[list->count++] = fa_format("%s", real);
    char *text = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(real, &text, &size, why));
    char *joined = fa_format("%s%s", list->digests, fa_sha256(text, size).hex);
    free(list->digests);
    list->digests = joined;
    fa_status status = FA_PASS;
    for (char *line = text; line != NULL && status == FA_PASS; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        if (*line != '#')
            continue;
        char name[256] = "", found[PATH_MAX];
        const bool quoted = sscanf(line, "# include \"%255[^\"\n]\"", name) == 1;
        if ((quoted || sscanf(line, "# include <%255[^>\n]>", name) == 1) && resolve_include(list, real, name, found))
            status = add_file(found, list, why);
        else if (name[0] == '\0' && sscanf(line, "# include %255[A-Za-z_]", name) == 1)
            status = fa_refuse(why, FA_COMPILE_ERROR,
                               "%s: #include %s: name the file: the cache could not see an edit of it", real, name);
    }
    free(text);
    return status;
}

fa_status fa_source_digest(const char *path, fa_digest *digest, fa_reason *why)
{
    file_list list = {.digests = fa_format("%s", "")};
    const fa_status status = add_file(path, &list, why);
    if (status == FA_PASS)
        *digest = fa_sha256(list.digests, strlen(list.digests));
    for (size_t i = 0; i < list.count; i++)
        free(list.paths[i]);
    free(list.digests);
    return status;
}
