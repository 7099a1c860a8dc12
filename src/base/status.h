/* How a run ends, and why: a status with a reason. Also assertions that print their place, and memory for text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How a run ended. Each status has one exit code and one word in the record (docs/options.md, docs/record.md). */
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

/* Why a status is not FA_PASS, for people to read. One line, or several when it quotes a compiler. */
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

/* The next step of several that share their cleaning up: only while none has failed. */
#define FA_THEN(status, expression) ((status) = (status) == FA_PASS ? (expression) : (status))

/* A bug or a broken environment: prints file, line, expression and the message, and aborts. */
#define FA_ASSERT(condition, ...)                                      \
    do {                                                               \
        if (!(condition))                                              \
            fa_die_at(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
    } while (0)
_Noreturn void fa_die_at(const char *file, int line, const char *expression, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* These abort when there is no memory. */
void *fa_alloc(size_t bytes); /* zeroed */
void *fa_resize(void *memory, size_t bytes);
/* Room for one more than `count` elements of `size` bytes: the capacity, at first 0 and then `least`, doubles. */
void *fa_grow(void *memory, uint32_t count, uint32_t *capacity, uint32_t least, size_t size);
FILE *fa_open_text(char **text, size_t *size); /* fclose makes the text, malloc'd; size: NULL, or of the text */
char *fa_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* malloc'd string */
/* Adds to a malloc'd string. */
void fa_extend(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
