#include "compile/source_digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "compile/forward.h"

typedef struct reading {
    fa_source_files *files;
    const fa_list *folders; /* --include; NULL: none */
    char *digests, *stamps; /* of each file, joined: hex digests; inode, time and size */
} reading;

enum { FILES_MAX = 4096 };

/* #include CUDA_STD_HEADER(limits): how CUTLASS names headers of the toolkit, which the digest does not cover. */
#define TOOLKIT_HEADER "CUDA_STD_HEADER"

static bool beside(const char *file, const char *name, char path[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    const int folder = slash != NULL ? (int)(slash - file) : 0;
    snprintf(path, PATH_MAX, "%s", name);
    if (name[0] != '/')
        snprintf(path, PATH_MAX, "%.*s/%s", folder > 0 ? folder : 1, folder > 0 ? file : ".", name);
    return access(path, R_OK) == 0;
}

bool fa_source_resolve(const char *source, const fa_list *folders, const char *includer, const char *name, bool quoted,
                       char path[PATH_MAX])
{
    if ((quoted && beside(includer, name, path)) || beside(source, name, path))
        return true;
    for (int i = 0; folders != NULL && i < folders->count; i++) {
        snprintf(path, PATH_MAX, "%s/%s", folders->at[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    const char *const roots[] = {"include", "kernels", "include/nvrtc", "src/emu/include"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, PATH_MAX, "%s/%s/%s", fa_home(), roots[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    return fa_forward_target(name, path);
}

bool fa_source_include(const char *line, char name[FA_INCLUDE_NAME], bool *quoted)
{
    *quoted = sscanf(line, "# include \"%255[^\"\n]\"", name) == 1;
    return *quoted || sscanf(line, "# include <%255[^>\n]>", name) == 1;
}

static void note_own(fa_source_files *files, const char *name, const char *found)
{
    char ours[PATH_MAX], emulators[PATH_MAX];
    snprintf(emulators, sizeof emulators, "%s/src/emu/include/%s", fa_home(), name);
    if (!fa_forward_target(name, ours) || strcmp(found, ours) == 0 || strcmp(found, emulators) == 0)
        return;
    if (files->own == NULL)
        files->own = fa_format("%s", "");
    fa_extend(&files->own, "%s ", name);
}

static fa_status add_file(const char *path, reading *r, fa_reason *why);

/* Every include of a text. `real`: its file. */
static fa_status add_includes(const char *text, const char *real, reading *r, fa_reason *why)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        if (*line != '#')
            continue;
        char name[FA_INCLUDE_NAME] = "", found[PATH_MAX];
        bool quoted = false;
        if (fa_source_include(line, name, &quoted)) {
            if (!fa_source_resolve(r->files->paths[0], r->folders, real, name, quoted, found))
                continue;
            note_own(r->files, name, found);
            FA_TRY(add_file(found, r, why));
        } else if (sscanf(line, "# include %255[A-Za-z_]", name) == 1 && strcmp(name, TOOLKIT_HEADER) != 0) {
            return fa_refuse(why, FA_COMPILE_ERROR,
                             "%s: #include %s: name the file: the cache could not see an edit of it", real, name);
        }
    }
    return FA_PASS;
}

static fa_status add_file(const char *path, reading *r, fa_reason *why)
{
    fa_source_files *files = r->files;
    char real[PATH_MAX], *text = NULL;
    size_t size = 0;
    if (realpath(path, real) == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read %s: %s", path, strerror(errno));
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->paths[i], real) == 0)
            return FA_PASS;
    if (files->count == FILES_MAX)
        return fa_refuse(why, FA_ERROR, "%s includes more than %d files", path, FILES_MAX);
    files->paths = fa_resize(files->paths, (files->count + 1) * sizeof *files->paths);
    files->paths[files->count++] = fa_format("%s", real);
    struct stat facts;
    if (stat(real, &facts) != 0)
        return fa_refuse(why, FA_ERROR, "cannot read %s: %s", real, strerror(errno));
    FA_TRY(fa_read_file(real, &text, &size, why));
    fa_extend(&r->digests, "%s", fa_sha256(text, size).hex);
    fa_extend(&r->stamps, "%llu %lld.%09ld %lld\n", (unsigned long long)facts.st_ino, (long long)facts.st_mtim.tv_sec,
              facts.st_mtim.tv_nsec, (long long)facts.st_size);
    const fa_status status = add_includes(text, real, r, why);
    free(text);
    return status;
}

fa_status fa_source_files_read(const char *path, const fa_list *folders, fa_source_files *files, fa_reason *why)
{
    *files = (fa_source_files){.count = 0};
    reading r = {.files = files, .folders = folders, .digests = fa_format("%s", ""), .stamps = fa_format("%s", "")};
    const fa_status status = add_file(path, &r, why);
    files->digest = fa_sha256(r.digests, strlen(r.digests));
    files->stamp = fa_sha256(r.stamps, strlen(r.stamps));
    free(r.digests);
    free(r.stamps);
    return status;
}

void fa_source_files_free(fa_source_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    free(files->own);
    *files = (fa_source_files){.count = 0};
}

fa_status fa_source_digest(const char *path, const fa_list *folders, fa_digest *digest, fa_reason *why)
{
    fa_source_files files;
    const fa_status status = fa_source_files_read(path, folders, &files, why);
    *digest = files.digest;
    fa_source_files_free(&files);
    return status;
}
