#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Bytes of the character at `at`, 0 when there is none: RFC 3629. */
static size_t character(const unsigned char *at)
{
    if (at[0] < 0x80)
        return 1;
    const size_t length = at[0] >= 0xc2 && at[0] <= 0xdf ? 2 : at[0] >= 0xe0 && at[0] <= 0xef ? 3 : 4;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool surrogate = at[0] == 0xed && at[1] > 0x9f, beyond = at[0] == 0xf4 && at[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

char *fa_utf8(const char *text)
{
    char *made = fa_alloc(3 * strlen(text) + 1), *to = made;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        const size_t length = character(at);
        memcpy(to, length > 0 ? (const char *)at : "\xEF\xBF\xBD", length > 0 ? length : 3);
        to += length > 0 ? length : 3;
        at += length > 0 ? length : 1;
    }
    return made;
}

static bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

char *fa_line(const char *text)
{
    char *made = fa_format("%s", text);
    for (char *at = made; *at != '\0'; at++)
        if (is_control((unsigned char)*at))
            *at = ' ';
    return made;
}

char *fa_shell_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    bool bytes = false;
    for (const unsigned char *at = (const unsigned char *)word; *at != '\0';
         at += character(at) > 0 ? character(at) : 1)
        bytes |= character(at) == 0 || is_control(*at);
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0')
        return fa_format("%s", word);
    char *made = fa_alloc(4 * strlen(word) + 4), *to = made;
    to += sprintf(to, bytes ? "$'" : "'");
    for (const unsigned char *at = (const unsigned char *)word; *at != '\0'; at++) {
        if (bytes && (*at < 0x20 || *at >= 0x7f))
            to += sprintf(to, "\\%03o", *at);
        else if (*at == '\'' || (bytes && *at == '\\'))
            to += sprintf(to, bytes ? "\\%c" : "'\\%c'", *at);
        else
            *to++ = (char)*at;
    }
    *to = '\'';
    return made;
}

void fa_put(fa_writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int wrote = vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
    w->used = w->used + (size_t)wrote < w->size ? w->used + (size_t)wrote : w->size - 1;
}

void fa_append_text(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}
