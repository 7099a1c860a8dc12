#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name;
    int exit_code;
} statuses[] = {
    [FA_PASS] = {"pass", 0},
    [FA_WRONG] = {"wrong", 1},
    [FA_USAGE] = {"usage", 2},
    [FA_INFEASIBLE] = {"infeasible", 3},
    [FA_NOT_RUN] = {"not_run", 4},
    [FA_TIMEOUT] = {"timeout", 5},
    [FA_COMPILE_ERROR] = {"compile_error", 6},
    [FA_ERROR] = {"error", 6},
};

const char *fa_status_name(fa_status status) { return statuses[status].name; }

int fa_status_exit_code(fa_status status) { return statuses[status].exit_code; }

fa_status fa_refuse(fa_reason *why, fa_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return status;
}

void fa_die_at(const char *file, int line, const char *expression, const char *format, ...)
{
    fprintf(stderr, "fa_bench: %s:%d: %s", file, line, expression);
    if (format[0] != '\0') {
        va_list arguments;
        va_start(arguments, format);
        fputs(": ", stderr);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
    }
    fputc('\n', stderr);
    abort();
}

double fa_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void *fa_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes != 0 ? bytes : 1);
    FA_ASSERT(memory != NULL, "%zu bytes", bytes);
    return memory;
}

char *fa_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    FA_ASSERT(length >= 0);
    return text;
}

fa_status fa_read_file(const char *path, char **data, size_t *size, fa_reason *why)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    if (file == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read %s: %s", path, strerror(errno));
    if (fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        fclose(file);
        return fa_refuse(why, FA_ERROR, "cannot read %s: not a regular file", path);
    }
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

/* A device or a pipe cannot be replaced: renaming over /dev/null would take it from everybody. */
static fa_status write_through(const char *path, const void *data, size_t size, fa_reason *why)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    bool good = file >= 0 && write_all(file, data, size);
    const int error = errno;
    good = file >= 0 && close(file) == 0 && good;
    return good ? FA_PASS : fa_refuse(why, FA_ERROR, "cannot write %s: %s", path, strerror(error));
}

fa_status fa_write_file(const char *path, const void *data, size_t size, fa_reason *why)
{
    char real[PATH_MAX];
    struct stat facts;
    if (realpath(path, real) != NULL)
        path = real; /* a link stays a link */
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        return write_through(path, data, size, why);
    char *temporary = fa_format("%s.%d.tmp", path, (int)getpid());
    const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
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

const char *fa_home(void)
{
    static char home[PATH_MAX];
    if (home[0] == '\0') {
        const char *given = getenv("FA_HOME");
        if (given != NULL && given[0] != '\0') {
            snprintf(home, sizeof home, "%s", given);
        } else {
            const ssize_t length = readlink("/proc/self/exe", home, sizeof home - 1);
            FA_ASSERT(length > 0);
            home[length] = '\0';
            *strrchr(home, '/') = '\0';
        }
    }
    return home;
}

static char *read_pipe(int from)
{
    size_t size = 0, room = 4096;
    char *text = fa_alloc(room);
    for (;;) {
        const ssize_t got = read(from, text + size, room - size - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
        if (room - size < 2048) {
            room *= 2;
            text = realloc(text, room);
            FA_ASSERT(text != NULL);
        }
    }
    text[size] = '\0';
    return text;
}

int fa_run(const char *const argv[], char **output)
{
    int ends[2];
    FA_ASSERT(pipe2(ends, O_CLOEXEC) == 0, "%s", strerror(errno));
    const pid_t child = fork();
    FA_ASSERT(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[1]);
    char *text = read_pipe(ends[0]);
    close(ends[0]);
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (output != NULL)
        *output = text;
    else
        free(text);
    const bool started = WIFEXITED(how) && WEXITSTATUS(how) != 127;
    return started ? WEXITSTATUS(how) : -1;
}
