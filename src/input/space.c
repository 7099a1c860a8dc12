#include "input/space.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "input/launch_lines.h"
#include "input/needs.h"

static const char *const knob_names[] = {"m", "n", "warps", "vec", "stages", "swizzle", "acc", "splits", "maxreg"};
enum { KNOBS = sizeof knob_names / sizeof knob_names[0] };
_Static_assert(KNOBS * sizeof(char *) == sizeof(fa_space) && KNOBS * sizeof(int32_t) == sizeof(fa_knobs),
               "knob_names is in the order of both");

/* Each value as its option takes it; the first is the default. */
static fa_status check_values(size_t knob, const char *values, int32_t *first, fa_reason *why)
{
    static const fa_ban none = {.name = NULL};
    for (const char *at = values;; at++) {
        fa_options scratch = {.knob = {0}};
        char word[160];
        char *words[] = {word};
        const size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "--%s=%.*s", knob_names[knob], (int)length, at);
        FA_TRY(fa_options_add(1, words, &none, &scratch, why));
        if (at == values)
            *first = ((const int32_t *)&scratch.knob)[knob];
        at += length;
        if (*at == '\0')
            return FA_PASS;
    }
}

/* One "m=16,32". */
static fa_status add_knob(const char *word, size_t length, fa_source_space *space, fa_reason *why)
{
    const size_t name = strcspn(word, "=");
    size_t knob = 0;
    while (knob < KNOBS && (strlen(knob_names[knob]) != name || strncmp(knob_names[knob], word, name) != 0))
        knob++;
    if (knob == KNOBS || name >= length)
        return fa_refuse(why, FA_USAGE, "FA_SPACE takes knob=value,value..., not '%.*s'", (int)length, word);
    char *text = space->text[knob];
    if (length - name - 1 >= sizeof space->text[0])
        return fa_refuse(why, FA_USAGE, "FA_SPACE: more than %zu characters of values", sizeof space->text[0] - 1);
    snprintf(text, sizeof space->text[0], "%.*s", (int)(length - name - 1), word + name + 1);
    ((const char **)&space->values)[knob] = text;
    return check_values(knob, text, &((int32_t *)&space->first)[knob], why);
}

/* The words up to the end of the line, the parenthesis or the comment. */
static fa_status add_line(const char *at, fa_source_space *space, fa_reason *why)
{
    while (true) {
        at += strspn(at, " \t");
        const size_t length = strcspn(at, " \t\r\n)*;");
        if (length == 0)
            return FA_PASS;
        FA_TRY(add_knob(at, length, space, why));
        at += length;
    }
}

/* What a compiler would answer with a page of errors. */
static fa_status check_text(const char *path, const char *text, size_t size, fa_reason *why)
{
    const size_t length = strlen(text);
    int line = 1;
    for (size_t i = 0; i < length; i++)
        line += text[i] == '\n';
    if (strncmp(text, "\xFF\xFE", 2) == 0 || strncmp(text, "\xFE\xFF", 2) == 0)
        return fa_refuse(why, FA_USAGE, "--source: %s is UTF-16: save it as UTF-8", path);
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0)
        return fa_refuse(why, FA_USAGE, "--source: %s starts with a byte order mark: save it without", path);
    return length == size ? FA_PASS : fa_refuse(why, FA_USAGE, "--source: %s:%d: a zero byte in the line", path, line);
}

static fa_status add_needs(const char *at, fa_source_space *space, fa_reason *why)
{
    return fa_needs_read(at, &space->needs, why);
}

/* Every "MARK: words" or "MARK(words)" of the text that is not a definition. */
static fa_status read_marked(const char *path, const char *text, const char *mark,
                             fa_status (*add)(const char *at, fa_source_space *space, fa_reason *why),
                             fa_source_space *space, fa_reason *why)
{
    for (const char *at = text; (at = strstr(at, mark)) != NULL;) {
        const bool word_starts = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const bool defined = at - text >= 8 && strncmp(at - 8, "#define ", 8) == 0;
        const char *from = at;
        at += strlen(mark);
        at += strspn(at, " \t");
        if (!word_starts || defined || (*at != ':' && *at != '('))
            continue;
        const fa_status status = add(at + 1, space, why);
        if (status != FA_PASS) {
            const fa_reason bare = *why;
            int line = 1;
            for (const char *c = text; c < from; c++)
                line += *c == '\n';
            return fa_refuse(why, status, "%.1000s:%d: %.3000s", path, line, bare.text);
        }
    }
    return FA_PASS;
}

fa_status fa_source_space_read(const char *path, fa_source_space *space, fa_reason *why)
{
    char *text = NULL;
    size_t size = 0;
    *space = (fa_source_space){.values = {NULL}};
    for (size_t i = 0; i < KNOBS; i++)
        ((int32_t *)&space->first)[i] = FA_UNSET;
    FA_TRY(fa_read_file(path, &text, &size, why));
    fa_status status = check_text(path, text, size, why);
    FA_THEN(status, read_marked(path, text, "FA_SPACE", add_line, space, why));
    FA_THEN(status, read_marked(path, text, "FA_NEEDS", add_needs, space, why));
    fa_launch_lines lines = {.launch_count = 0};
    FA_THEN(status, fa_launch_lines_read(path, text, &lines, why));
    space->launches = lines.launch_count > 0;
    fa_launch_lines_free(&lines);
    free(text);
    return status;
}
