/* Text for other programs: valid UTF-8, and words for a shell. */
#ifndef FA_TEXT_H
#define FA_TEXT_H

/* The text with U+FFFD in place of every byte that is not part of valid UTF-8; malloc'd. */
char *fa_utf8(const char *text);
/* The text on one line of a terminal: a space in place of every control character; malloc'd. */
char *fa_line(const char *text);
/* The word as a POSIX shell reads it back; with bytes that are not text, as bash does ($'\377'). Valid UTF-8;
 * malloc'd. */
char *fa_shell_word(const char *word);

#endif
