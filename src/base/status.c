#include "base/status.h"

#include <stdarg.h>
#include <stdlib.h>

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

void *fa_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes != 0 ? bytes : 1);
    FA_ASSERT(memory != NULL, "%zu bytes", bytes);
    return memory;
}

void *fa_resize(void *memory, size_t bytes)
{
    void *resized = realloc(memory, bytes);
    FA_ASSERT(resized != NULL, "%zu bytes", bytes);
    return resized;
}

void *fa_grow(void *memory, uint32_t count, uint32_t *capacity, uint32_t least, size_t size)
{
    if (count < *capacity)
        return memory;
    *capacity = *capacity > 0 ? 2 * *capacity : least;
    return fa_resize(memory, *capacity * size);
}

FILE *fa_open_text(char **text, size_t *size)
{
    static _Thread_local size_t unwanted;
    FILE *file = open_memstream(text, size != NULL ? size : &unwanted);
    FA_ASSERT(file != NULL);
    return file;
}

static char *written(const char *format, va_list arguments)
{
    char *text = NULL;
    FA_ASSERT(vasprintf(&text, format, arguments) >= 0);
    return text;
}

char *fa_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = written(format, arguments);
    va_end(arguments);
    return text;
}

void fa_extend(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *more = written(format, arguments), *whole = fa_format("%s%s", *text, more);
    va_end(arguments);
    free(more);
    free(*text);
    *text = whole;
}
