/* Text for other programs: valid UTF-8, words for a shell, reports that grow. */
#pragma once

#include <stddef.h>

/* The text with U+FFFD in place of every byte that is not part of valid UTF-8; malloc'd. */
char *fa_utf8(const char *text);
/* The text on one line of a terminal: a space in place of every control character; malloc'd. */
char *fa_line(const char *text);
/* The word as a POSIX shell reads it back; with bytes that are not text, as bash does ($'\377'). Valid UTF-8;
 * malloc'd. */
char *fa_shell_word(const char *word);

/* Text that grows in a buffer of `size` bytes; what does not fit is cut off. */
typedef struct fa_writer {
    char *text;
    size_t size, used;
} fa_writer;

__attribute__((format(printf, 2, 3))) void fa_put(fa_writer *w, const char *format, ...);
/* The same at the end of a text that is there. */
__attribute__((format(printf, 3, 4))) void fa_append_text(char *text, size_t size, const char *format, ...);
