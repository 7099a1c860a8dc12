#include "input/option_table.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(fa_options, field)
static const option_row table[] = {
#define FA_GROUP(title) {.kind = KIND_GROUP, .name = "", .text = title},
#define FA_INT(option, field, value, low, high, about) \
    {.kind = KIND_INT, .name = option, .help = about, .offset = AT(field), .min = low, .max = high, .fallback = value},
#define FA_REAL(option, field, value, low, high, about) \
    {.kind = KIND_REAL, .name = option, .help = about, .offset = AT(field), .min = low, .max = high, .fallback = value},
#define FA_WORD(option, field, value, words, about) \
    {.kind = KIND_WORD, .name = option, .help = about, .offset = AT(field), .text = words, .fallback = value},
#define FA_SET(option, field, value, list, metavar, about) \
    {.kind = KIND_SET,                                     \
     .name = option,                                       \
     .help = about,                                        \
     .offset = AT(field),                                  \
     .text = metavar,                                      \
     .words = list,                                        \
     .fallback = value},
#define FA_TEXT(option, field, value, metavar, about) \
    {.kind = KIND_TEXT, .name = option, .help = about, .offset = AT(field), .text = metavar, .text_fallback = value},
#define FA_LIST(option, field, metavar, about) \
    {.kind = KIND_LIST, .name = option, .help = about, .offset = AT(field), .text = metavar},
#define FA_VS(option, field, metavar, about) \
    {.kind = KIND_VS, .name = option, .help = about, .offset = AT(field), .text = metavar},
#define FA_FLAG(option, field, about) {.kind = KIND_FLAG, .name = option, .help = about, .offset = AT(field)},
#include "input/options.def"
#undef FA_GROUP
#undef FA_INT
#undef FA_REAL
#undef FA_WORD
#undef FA_SET
#undef FA_TEXT
#undef FA_LIST
#undef FA_VS
#undef FA_FLAG
};
#define TABLE_COUNT (sizeof table / sizeof table[0])

const option_row *fa_option_rows(size_t *count)
{
    *count = TABLE_COUNT;
    return table;
}

const option_row *fa_option_find(const char *name, size_t length)
{
    for (const option_row *row = table; row < table + TABLE_COUNT; row++)
        if (row->kind != KIND_GROUP && strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

/* Length of the word at the start of a '|'-separated list. */
static size_t word_length(const char *words) { return strcspn(words, "|"); }

const char *fa_word(const char *words, int index, char out[32])
{
    for (; index > 0 && *words != '\0'; index--) {
        words += word_length(words);
        words += *words == '|';
    }
    snprintf(out, 32, "%.*s", (int)word_length(words), words);
    return out;
}

static void print_set(FILE *out, const option_row *row)
{
    const char *separator = " (";
    char word[32];
    for (int i = 0; fa_word(row->words, i, word)[0] != '\0'; i++) {
        if (((int)row->fallback >> i & 1) == 0)
            continue;
        fprintf(out, "%s%s", separator, word);
        separator = ",";
    }
    fputc(')', out);
}

static void print_default(FILE *out, const option_row *row)
{
    char word[32];
    if (row->kind == KIND_INT && row->fallback != FA_UNSET)
        fprintf(out, " (%.0f)", row->fallback);
    else if (row->kind == KIND_REAL && row->fallback != FA_UNSET_REAL)
        fprintf(out, " (%g)", row->fallback);
    else if (row->kind == KIND_WORD && row->fallback != FA_UNSET)
        fprintf(out, " (%s)", fa_word(row->text, (int)row->fallback, word));
    else if (row->kind == KIND_TEXT && row->text_fallback != NULL)
        fprintf(out, " (%s)", row->text_fallback);
    else if (row->kind == KIND_SET)
        print_set(out, row);
}

/* What follows the option's name: its range, its words or its metavariable; empty for a flag. */
static void describe_value(const option_row *row, char out[128])
{
    if (row->kind == KIND_INT)
        snprintf(out, 128, "%.0f..%.0f", row->min, row->max);
    else if (row->kind == KIND_REAL)
        snprintf(out, 128, "NUMBER");
    else
        snprintf(out, 128, "%s", row->kind == KIND_FLAG ? "" : row->text);
}

void fa_options_each(void (*see)(void *to, const fa_option_facts *facts), void *to)
{
    fa_option_facts facts = {.group = ""};
    size_t count;
    const option_row *rows = fa_option_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const option_row *row = &rows[i];
        if (row->kind == KIND_GROUP) {
            facts.group = row->text;
            continue;
        }
        facts.name = row->name;
        facts.help = row->help;
        describe_value(row, facts.value);
        facts.fallback[0] = '\0';
        FILE *text = fmemopen(facts.fallback, sizeof facts.fallback, "w");
        FA_ASSERT(text != NULL);
        print_default(text, row);
        fclose(text);
        const bool has_range = row->kind == KIND_INT || row->kind == KIND_REAL;
        facts.min = has_range ? row->min : 0;
        facts.max = has_range ? row->max : 0;
        see(to, &facts);
    }
}
