#include "compile/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An entry on disk, as the limit of the cache sees it. */
typedef struct {
    char name[80];
    double bytes;
    time_t used;
} kept;

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
    const time_t x = ((const kept *)a)->used, y = ((const kept *)b)->used;
    return (x > y) - (x < y);
}

static void drop(const char *root, const char *name)
{
    char *path = fa_format("%s/%s", root, name);
    fa_remove_folder(path);
    free(path);
}

static size_t list(const char *root, time_t now, kept **entries, double *bytes)
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
        kept *one = &(*entries)[count++];
        *one = (kept){.used = facts.st_mtime};
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

/* Where the entries of `root` take more than FA_CACHE_MB mebibytes (default 2048; 0: no limit), those that were unused
 * for longest go until three quarters are left; none that was used within an hour. Folders of builds that a kill has
 * left go after a day. */
static void limit_size(const char *root)
{
    const double most = limit_bytes();
    const time_t now = time(NULL);
    kept *entries = NULL;
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

#define SUMS "sums"

static bool cache_root(char root[640])
{
    const char *given = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (given != NULL && given[0] == '/')
        return snprintf(root, 640, "%s/fa_bench", given) < 640;
    if (home != NULL && home[0] == '/')
        return snprintf(root, 640, "%s/.cache/fa_bench", home) < 640;
    return false;
}

/* A module is code that we run: only what this user alone can have written is trusted. */
static bool is_ours(const char *folder)
{
    struct stat facts;
    return lstat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
           (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The cache's folder, made for this user alone. */
static bool root_is_ours(const char *root, fa_reason *why)
{
    struct stat facts;
    char *parent = fa_format("%.*s", (int)(strrchr(root, '/') - root), root);
    if (lstat(root, &facts) != 0 && fa_make_dirs(parent, why) == FA_PASS)
        mkdir(root, 0700);
    free(parent);
    if (lstat(root, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 077) != 0)
        chmod(root, 0700);
    return is_ours(root);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* "<sha256>  <name>" for every file of the folder but the list itself, sorted: what sha256sum -c reads. */
static char *sums_of(const char *folder)
{
    char *names[32];
    size_t count = 0;
    char *text = NULL;
    fa_reason ignored;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return NULL;
    for (struct dirent *entry = readdir(entries); entry != NULL && count < 32; entry = readdir(entries))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, SUMS) != 0)
            names[count++] = fa_format("%s", entry->d_name);
    closedir(entries);
    qsort(names, count, sizeof names[0], by_name);
    FILE *out = fa_open_text(&text, NULL);
    bool good = count > 0;
    for (size_t i = 0; i < count; i++) {
        char *path = fa_format("%s/%s", folder, names[i]), *data = NULL;
        size_t bytes = 0;
        if (fa_read_file(path, &data, &bytes, &ignored) == FA_PASS)
            fprintf(out, "%s  %s\n", fa_sha256(data, bytes).hex, names[i]);
        else
            good = false;
        free(data);
        free(path);
        free(names[i]);
    }
    fclose(out);
    if (good)
        return text;
    free(text);
    return NULL;
}

static bool entry_verifies(const char *folder)
{
    char *path = fa_format("%s/" SUMS, folder), *stored = NULL, *found = NULL;
    size_t size = 0;
    fa_reason ignored;
    bool good = fa_read_file(path, &stored, &size, &ignored) == FA_PASS;
    if (good) {
        found = sums_of(folder);
        good = found != NULL && strcmp(stored, found) == 0;
    }
    free(found);
    free(stored);
    free(path);
    return good;
}

/* The folders in which modules were built because no cache could be written. */
static struct {
    char **folders;
    size_t count;
    bool registered;
} temporary;

void fa_cache_tidy(void)
{
    for (size_t i = 0; i < temporary.count; i++) {
        fa_remove_folder(temporary.folders[i]);
        free(temporary.folders[i]);
    }
    free(temporary.folders);
    temporary.folders = NULL;
    temporary.count = 0;
}

static void keep_until_tidied(const char *folder)
{
    temporary.folders = fa_resize(temporary.folders, (temporary.count + 1) * sizeof *temporary.folders);
    temporary.folders[temporary.count++] = fa_format("%s", folder);
    if (!temporary.registered)
        temporary.registered = atexit(fa_cache_tidy) == 0;
}

/* The folder that is being built in; empty: none. */
static char building[900];

static void in_work(const char *folder) { snprintf(building, sizeof building, "%s", folder); }

/* In a signal's handler: system calls alone. */
void fa_cache_abandon(void)
{
    _Alignas(struct dirent64) char entries[4096];
    const int folder = building[0] != '\0' ? open(building, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0)
        return;
    for (long size; (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
        for (long at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            unlinkat(folder, entry->d_name, 0);
            at += entry->d_reclen;
        }
    close(folder);
    rmdir(building);
}

static fa_status open_temporary(fa_cache_entry *entry, fa_reason *why)
{
    const char *parent = getenv("TMPDIR");
    snprintf(entry->folder, sizeof entry->folder, "%.600s/fa_bench.XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(entry->folder) != NULL)
        in_work(entry->folder);
    else
        return fa_refuse(why, FA_ERROR, "no folder to compile in: %s: %s", entry->folder, strerror(errno));
    entry->temporary = true;
    return FA_PASS;
}

fa_status fa_cache_open(const fa_digest *key, fa_cache_entry *entry, fa_reason *why)
{
    char root[640];
    *entry = (fa_cache_entry){.hit = false};
    if (!cache_root(root) || !root_is_ours(root, why))
        return open_temporary(entry, why);
    snprintf(entry->folder, sizeof entry->folder, "%s/%s", root, key->hex);
    entry->hit = is_ours(entry->folder) && entry_verifies(entry->folder);
    if (entry->hit) {
        utimensat(AT_FDCWD, entry->folder, NULL, 0); /* used now: limit_size */
        return FA_PASS;
    }
    snprintf(entry->folder, sizeof entry->folder, "%s/building.XXXXXX", root);
    if (mkdtemp(entry->folder) != NULL) {
        in_work(entry->folder);
        return FA_PASS;
    }
    return open_temporary(entry, why);
}

fa_status fa_cache_publish(const fa_digest *key, fa_cache_entry *entry, fa_reason *why)
{
    in_work("");
    if (entry->temporary) {
        keep_until_tidied(entry->folder);
        return FA_PASS;
    }
    char *sums = sums_of(entry->folder);
    if (sums == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read back %s", entry->folder);
    char *path = fa_format("%s/" SUMS, entry->folder);
    const fa_status written = fa_write_file(path, sums, strlen(sums), why);
    free(path);
    free(sums);
    FA_TRY(written);
    char final[900];
    const int parent = (int)(strrchr(entry->folder, '/') - entry->folder);
    snprintf(final, sizeof final, "%.*s/%s", parent, entry->folder, key->hex);
    for (int attempt = 0; attempt < 10; attempt++) {
        if (rename(entry->folder, final) == 0)
            break;
        if (entry_verifies(final)) { /* another process was first, with the same content */
            fa_remove_folder(entry->folder);
            break;
        }
        fa_remove_folder(final);
    }
    if (access(final, R_OK) != 0)
        return fa_refuse(why, FA_ERROR, "cannot publish %s: %s", final, strerror(errno));
    memcpy(entry->folder, final, sizeof final);
    if (key->hex[0] == '0' || getenv("FA_CACHE_MB") != NULL) { /* one entry in 16 looks at them all */
        final[parent] = '\0';
        limit_size(final);
    }
    return FA_PASS;
}

void fa_cache_discard(fa_cache_entry *entry)
{
    in_work("");
    if (!entry->hit)
        fa_remove_folder(entry->folder);
}
