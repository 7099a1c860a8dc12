#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

fa_status fa_open_file(const char *path, FILE **opened_file, fa_reason *why)
{
    const int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe without a writer does not block */
    FILE *file = opened >= 0 ? fdopen(opened, "rb") : NULL;
    struct stat facts;
    if (file == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read %s: %s", path, strerror(errno));
    if (fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        fclose(file);
        return fa_refuse(why, FA_ERROR, "cannot read %s: not a regular file", path);
    }
    *opened_file = file;
    return FA_PASS;
}

fa_status fa_read_file(const char *path, char **data, size_t *size, fa_reason *why)
{
    FILE *file;
    struct stat facts = {.st_size = 0};
    FA_TRY(fa_open_file(path, &file, why));
    fstat(fileno(file), &facts);
    *data = fa_alloc((size_t)facts.st_size + 1);
    *size = fread(*data, 1, (size_t)facts.st_size, file);
    const bool whole = *size == (size_t)facts.st_size;
    fclose(file);
    if (whole)
        return FA_PASS;
    free(*data);
    *data = NULL;
    return fa_refuse(why, FA_ERROR, "cannot read %s: short read", path);
}

static bool write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(file, data, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* For a device or a pipe, which must not be replaced: renaming a file to /dev/null would destroy it for all
 * programs. */
static fa_status write_through(const char *path, const void *data, size_t size, fa_reason *why)
{
    const int file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC); /* fails for a pipe that nobody reads */
    bool good = file >= 0 && fcntl(file, F_SETFL, 0) == 0 && write_all(file, data, size);
    const int error = errno;
    good = file >= 0 && close(file) == 0 && good;
    return good ? FA_PASS : fa_refuse(why, FA_ERROR, "cannot write %s: %s", path, strerror(error));
}

fa_status fa_check_output(const char *path, fa_reason *why)
{
    struct stat link, target;
    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode) || strncmp(path, "/dev/", 5) == 0)
        return FA_PASS;
    if (link.st_uid != geteuid())
        return fa_refuse(why, FA_ERROR, "cannot write %s: it is a link that another user made", path);
    if (stat(path, &target) != 0)
        return fa_refuse(why, FA_ERROR, "cannot write %s: it is a link that leads nowhere", path);
    return FA_PASS;
}

/* With as much of the name as leaves room for the rest: a name of NAME_MAX bytes is one that can be written. */
static char *temporary_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    return fa_format("%.*s%.*s.%d.tmp", folder, path, NAME_MAX - 20, path + folder, (int)getpid());
}

fa_status fa_write_file(const char *path, const void *data, size_t size, fa_reason *why)
{
    char real[PATH_MAX];
    struct stat facts;
    FA_TRY(fa_check_output(path, why));
    if (realpath(path, real) != NULL)
        path = real; /* a link stays a link */
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        return write_through(path, data, size, why);
    char *temporary = temporary_beside(path);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int file = open(temporary, flags, 0644);
    if (file < 0 && errno == EEXIST && unlink(temporary) == 0) /* left by a process of this number, or planted */
        file = open(temporary, flags, 0644);
    bool good = file >= 0;
    if (good) {
        good = write_all(file, data, size) && fsync(file) == 0;
        good = close(file) == 0 && good;
        good = good && rename(temporary, path) == 0;
    }
    const int error = errno;
    if (!good && file >= 0)
        unlink(temporary);
    free(temporary);
    if (!good)
        return fa_refuse(why, FA_ERROR, "cannot write %s: %s", path, strerror(error));
    return FA_PASS;
}

fa_status fa_append(int file, const void *data, size_t size, fa_reason *why)
{
    struct stat before;
    const bool regular = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
    if (write_all(file, data, size))
        return FA_PASS;
    const int error = errno;
    if (regular && ftruncate(file, before.st_size) != 0)
        return fa_refuse(why, FA_ERROR, "cannot write the record: %s; a part of it is in the file", strerror(error));
    return fa_refuse(why, FA_ERROR, "cannot write the record: %s", strerror(error));
}

fa_status fa_make_dirs(const char *path, fa_reason *why)
{
    char partial[PATH_MAX];
    if (snprintf(partial, sizeof partial, "%s", path) >= (int)sizeof partial)
        return fa_refuse(why, FA_ERROR, "path too long: %s", path);
    for (char *slash = partial + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        const char end = *slash;
        *slash = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            return fa_refuse(why, FA_ERROR, "cannot make folder %s: %s", partial, strerror(errno));
        if (end == '\0')
            return FA_PASS;
        *slash = end;
    }
}

void fa_remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        unlink(folder); /* a file in a folder's place */
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(entries), entry->d_name, 0) == 0 || errno != EISDIR)
            continue;
        char *inner = fa_format("%s/%s", folder, entry->d_name);
        fa_remove_folder(inner);
        free(inner);
    }
    closedir(entries);
    rmdir(folder);
}

fa_digest fa_sha256(const void *data, size_t size)
{
    unsigned char bytes[32];
    size_t length = 0;
    FA_ASSERT(EVP_Q_digest(NULL, "SHA256", NULL, data, size, bytes, &length) == 1 && length == sizeof bytes);
    fa_digest digest;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    return digest;
}
