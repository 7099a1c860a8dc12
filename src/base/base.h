/* What every stage stands on: status and reason, assertions that name their place, files that appear whole or not at all. */
#ifndef FA_BASE_H
#define FA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a run ended. DESIGN.md section 2 and 3: each has one exit code and one word in the record. */
typedef enum fa_status {
    FA_PASS = 0,
    FA_WRONG,
    FA_USAGE,
    FA_INFEASIBLE,
    FA_NOT_RUN,
    FA_TIMEOUT,
    FA_COMPILE_ERROR,
    FA_ERROR,
} fa_status;

const char *fa_status_name(fa_status status); /* "pass", "wrong", ... as in the record */
int fa_status_exit_code(fa_status status);    /* 0..6 */

/* Why a status is not FA_PASS, in words for people; one line unless it carries a compiler's output. */
typedef struct fa_reason {
    char text[4096];
} fa_reason;

/* Writes the reason and returns the status: `return fa_refuse(why, FA_INFEASIBLE, "...", ...)`. */
fa_status fa_refuse(fa_reason *why, fa_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define FA_TRY(expression)                          \
    do {                                            \
        const fa_status try_status_ = (expression); \
        if (try_status_ != FA_PASS)                 \
            return try_status_;                     \
    } while (0)

/* A bug or a broken environment: prints file, line, expression and the message, and aborts. */
#define FA_ASSERT(condition, ...)                                      \
    do {                                                               \
        if (!(condition))                                              \
            fa_die_at(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
    } while (0)
_Noreturn void fa_die_at(const char *file, int line, const char *expression, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

double fa_now_s(void); /* monotonic seconds */

void *fa_alloc(size_t bytes); /* zeroed; dies when there is no memory */
char *fa_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* malloc'd string */

/* Whole file into memory, with a terminating 0 that `size` does not count. Caller frees *data. */
fa_status fa_read_file(const char *path, char **data, size_t *size, fa_reason *why);
/* Written to a temporary beside `path`, flushed, renamed: readers see the old file or the new one. */
fa_status fa_write_file(const char *path, const void *data, size_t size, fa_reason *why);
/* At the end of an open file, in one piece; what was written before a failure is taken off again where that can be done. */
fa_status fa_append(int file, const void *data, size_t size, fa_reason *why);
fa_status fa_make_dirs(const char *path, fa_reason *why); /* mkdir -p */

/* Lower-case hex SHA-256 of a buffer. */
typedef struct fa_digest {
    char hex[65];
} fa_digest;
fa_digest fa_sha256(const void *data, size_t size);

/* Folder of the running binary: kernels/, include/ and src/emu/ lie beside it. */
const char *fa_home(void);

/* Runs a program (argv[0] looked up in PATH), output of both streams captured. Returns its exit code, -1 if it could not start. */
int fa_run(const char *const argv[], char **output);

#endif
