#include "compile/cache_limit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"

typedef struct {
    char name[80];
    double bytes;
    time_t used;
} entry;

static double limit_bytes(void)
{
    const char *given = getenv("FA_CACHE_MB");
    char *end = NULL;
    const double mb = given != NULL ? strtod(given, &end) : 0;
    return 1048576.0 * (end != NULL && end != given && *end == '\0' && mb >= 0 ? mb : 2048);
}

/* The bytes on disk of the files in a folder. */
static double size_of(const char *folder)
{
    double bytes = 0;
    DIR *files = opendir(folder);
    for (struct dirent *file = NULL; files != NULL && (file = readdir(files)) != NULL;) {
        struct stat facts;
        if (fstatat(dirfd(files), file->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += 512.0 * (double)facts.st_blocks;
    }
    if (files != NULL)
        closedir(files);
    return bytes;
}

static int by_use(const void *a, const void *b)
{
    const time_t x = ((const entry *)a)->used, y = ((const entry *)b)->used;
    return (x > y) - (x < y);
}

static void drop(const char *root, const char *name)
{
    char *path = fa_format("%s/%s", root, name);
    fa_remove_folder(path);
    free(path);
}

static size_t list(const char *root, time_t now, entry **entries, double *bytes)
{
    size_t count = 0;
    DIR *folder = opendir(root);
    for (struct dirent *at = NULL; folder != NULL && (at = readdir(folder)) != NULL;) {
        struct stat facts;
        const size_t length = strlen(at->d_name);
        if (fstatat(dirfd(folder), at->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(facts.st_mode))
            continue;
        if (strncmp(at->d_name, "building.", 9) == 0 && facts.st_mtime < now - 86400)
            drop(root, at->d_name);
        if (length != 64 || strspn(at->d_name, "0123456789abcdef") != length)
            continue;
        *entries = fa_resize(*entries, (count + 1) * sizeof **entries);
        entry *one = &(*entries)[count++];
        *one = (entry){.used = facts.st_mtime};
        memcpy(one->name, at->d_name, length + 1);
        char *path = fa_format("%s/%s", root, at->d_name);
        one->bytes = size_of(path);
        free(path);
        *bytes += one->bytes;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

void fa_cache_limit(const char *root)
{
    const double most = limit_bytes();
    const time_t now = time(NULL);
    entry *entries = NULL;
    double bytes = 0;
    if (!(most > 0))
        return;
    const size_t count = list(root, now, &entries, &bytes);
    if (bytes > most) {
        qsort(entries, count, sizeof *entries, by_use);
        for (size_t i = 0; bytes > most * 0.75 && i < count && entries[i].used < now - 3600; i++) {
            drop(root, entries[i].name);
            bytes -= entries[i].bytes;
        }
    }
    free(entries);
}
