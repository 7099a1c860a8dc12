#include "input/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/definition.h"
#include "input/presets.h"

#define AT(field) offsetof(fa_options, field)

static void *field(fa_options *options, const option_row *row) { return (char *)options + row->offset; }

static void set_defaults(fa_options *options)
{
    size_t count;
    const option_row *rows = fa_option_rows(&count);
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < count; i++) {
        const option_row *row = &rows[i];
        if (row->kind == KIND_INT || row->kind == KIND_WORD || row->kind == KIND_SET)
            *(int32_t *)field(options, row) = (int32_t)row->fallback;
        else if (row->kind == KIND_REAL)
            *(double *)field(options, row) = row->fallback;
        else if (row->kind == KIND_TEXT)
            *(const char **)field(options, row) = row->text_fallback;
    }
}

static int word_index(const char *words, const char *value, size_t value_length)
{
    for (int index = 0;; index++) {
        const size_t length = strcspn(words, "|");
        if (value_length == length && strncmp(words, value, length) == 0)
            return index;
        if (words[length] == '\0')
            return -1;
        words += length + 1;
    }
}

/* strtod and strtoll also take blanks and a plus. */
static bool begins_number(const char *value) { return strspn(value, "0123456789-.") > 0; }

static bool parse_int(const option_row *row, const char *value, int32_t *out)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (!begins_number(value) || *end != '\0' || errno != 0)
        return false;
    if ((double)number < row->min || (double)number > row->max)
        return false;
    *out = (int32_t)number;
    return true;
}

static bool parse_real(const option_row *row, const char *value, double *out)
{
    char *end = NULL;
    errno = 0;
    const double number = strtod(value, &end);
    if (!begins_number(value) || *end != '\0' || !isfinite(number))
        return false;
    if (!(number >= row->min && number <= row->max))
        return false;
    *out = number;
    return true;
}

static fa_status parse_set(const option_row *row, const char *what, const char *value, int32_t *out, fa_reason *why)
{
    *out = 0;
    for (const char *at = value;; at++) {
        const size_t length = strcspn(at, ",");
        const int index = word_index(row->words, at, length);
        if (index < 0)
            return fa_refuse(why, FA_USAGE, "%s takes a comma-separated list of %s, not '%s'", what, row->words, value);
        *out |= 1 << index;
        at += length;
        if (*at == '\0')
            return FA_PASS;
    }
}

static fa_status parse_list(const option_row *row, const char *what, const char *value, fa_list *list, fa_reason *why)
{
    enum { LENGTH_MAX = 1000 };
    if (value[0] == '\0' || strlen(value) > LENGTH_MAX)
        return fa_refuse(why, FA_USAGE, "%s takes %s of 1 to %d characters", what, row->text, LENGTH_MAX);
    if (list->count == FA_LIST_MAX)
        return fa_refuse(why, FA_USAGE, "%s may be given %d times", what, FA_LIST_MAX);
    list->at[list->count++] = value;
    return FA_PASS;
}

static fa_status parse_vs(const char *value, fa_vs *vs, fa_reason *why);

/* `what` names the option as the user wrote it: "--m", or "m in --vs". */
static fa_status parse_value(const option_row *row, const char *what, const char *value, void *out, fa_reason *why)
{
    switch (row->kind) {
    case KIND_INT:
        if (parse_int(row, value, out))
            return FA_PASS;
        return fa_refuse(why, FA_USAGE, "%s takes a whole number from %.0f to %.0f, not '%s'", what, row->min, row->max,
                         value);
    case KIND_REAL:
        if (parse_real(row, value, out))
            return FA_PASS;
        return fa_refuse(why, FA_USAGE, "%s takes a number from %g to %g, not '%s'", what, row->min, row->max, value);
    case KIND_WORD: {
        const int index = word_index(row->text, value, strlen(value));
        if (index < 0)
            return fa_refuse(why, FA_USAGE, "%s takes one of %s, not '%s'", what, row->text, value);
        *(int32_t *)out = index;
        return FA_PASS;
    }
    case KIND_SET:
        return parse_set(row, what, value, out, why);
    case KIND_VS:
        return parse_vs(value, out, why);
    case KIND_LIST:
        return parse_list(row, what, value, out, why);
    default:
        if (value[0] == '\0')
            return fa_refuse(why, FA_USAGE, "%s takes %s, not an empty text", what, row->text);
        *(const char **)out = value;
        return FA_PASS;
    }
}

/* lse=0 or lse=1 in --vs: the flag of the command line for this candidate alone. */
static fa_status parse_vs_lse(const char *number, fa_vs *vs, fa_reason *why)
{
    static const option_row row = {.kind = KIND_INT, .min = 0, .max = 1};
    return parse_value(&row, "lse in --vs", number, &vs->lse, why);
}

/* ":knob=value,..." or nothing. The knobs have the names and ranges of the options. */
static fa_status parse_vs_knobs(const char *rest, fa_vs *vs, fa_reason *why)
{
    fa_options scratch;
    set_defaults(&scratch);
    while (*rest != '\0') {
        rest++; /* the ':' or ',' before each knob */
        const size_t length = strcspn(rest, ","), key = strcspn(rest, "=,");
        const option_row *row = fa_option_find(rest, key);
        const size_t first = offsetof(fa_options, knob), last = first + sizeof(fa_knobs);
        const bool lse = row != NULL && row->offset == AT(lse), dtype = row != NULL && row->offset == AT(dtype);
        if (!lse && !dtype && (row == NULL || row->offset < first || row->offset >= last))
            return fa_refuse(why, FA_USAGE, "--vs: '%.*s' is not a tile knob", (int)(key < 60 ? key : 60), rest);
        char what[64];
        snprintf(what, sizeof what, "%s in --vs", row->name);
        char *number = fa_format("%.*s", key < length ? (int)(length - key - 1) : 0, rest + key + 1);
        const fa_status status = lse ? parse_vs_lse(number, vs, why)
                                     : parse_value(row, what, number, dtype ? &vs->dtype : field(&scratch, row), why);
        free(number);
        FA_TRY(status);
        rest += length;
    }
    vs->knobs = scratch.knob;
    return FA_PASS;
}

/* What follows "kind:"; NULL when the value does not begin so. */
static const char *path_after(const char *kind, const char *value)
{
    const size_t length = strlen(kind);
    return strncmp(value, kind, length) == 0 && value[length] == ':' ? value + length + 1 : NULL;
}

static fa_status parse_vs(const char *value, fa_vs *vs, fa_reason *why)
{
    const char *library = strcmp(value, "library") == 0 ? "" : path_after("library", value);
    const char *source = path_after("source", value);
    *vs = (fa_vs){.lse = FA_UNSET, .dtype = FA_UNSET, .library = library};
    if (library != NULL) { /* all that follows the colon is the path */
        if (library[0] == '\0')
            return fa_refuse(why, FA_USAGE, "--vs: library takes a file, library:FILE.so, not '%s'", value);
        snprintf(vs->name, sizeof vs->name, "library");
        return parse_vs_knobs("", vs, why);
    }
    const char *name = source != NULL ? source : value;
    const size_t length = strcspn(name, ":");
    if (length == 0 || length >= (source != NULL ? sizeof vs->source : sizeof vs->name))
        return fa_refuse(why, FA_USAGE,
                         "--vs takes NAME or source:FILE.cu, with :knob=value,... or without, or "
                         "library:FILE.so, not '%.200s'",
                         value);
    snprintf(vs->name, sizeof vs->name, "%.*s", source != NULL ? (int)strlen("source") : (int)length, value);
    snprintf(vs->source, sizeof vs->source, "%.*s", (int)length, source != NULL ? source : "");
    return parse_vs_knobs(name + length, vs, why);
}

/* "a whole number from 1 to 1024" and the like, for a missing value. */
static void describe_range(const option_row *row, char out[256])
{
    if (row->kind == KIND_INT)
        snprintf(out, 256, "a whole number from %.0f to %.0f", row->min, row->max);
    else if (row->kind == KIND_REAL)
        snprintf(out, 256, "a number from %g to %g", row->min, row->max);
    else
        snprintf(out, 256, row->kind == KIND_WORD ? "one of %s" : "%s", row->text);
}

fa_status fa_options_parse(int argc, char *const argv[], fa_options *options, fa_reason *why)
{
    static const fa_ban none = {.name = NULL};
    set_defaults(options);
    return fa_options_add(argc - 1, argv + 1, &none, options, why);
}

static bool has_several(const option_row *row, const char *value)
{
    if (row->kind == KIND_INT || row->kind == KIND_REAL)
        return strpbrk(value, ",:") != NULL;
    return (row->kind == KIND_WORD || row->offset == AT(kernel) || row->offset == AT(preset)) &&
           strchr(value, ',') != NULL;
}

bool fa_option_has_several(const char *name, const char *value)
{
    const option_row *row = fa_option_find(name, strlen(name));
    return row != NULL && has_several(row, value);
}

static fa_status add_words(int count, char *const words[], const fa_ban *banned, fa_options *options, fa_reason *why)
{
    for (int i = 0; i < count; i++) {
        const char *argument = strcmp(words[i], "-h") == 0 ? "--help" : words[i];
        if (strncmp(argument, "--", 2) != 0 || argument[2] == '\0')
            return fa_refuse(why, FA_USAGE, "'%s' is not an option (see --help)", argument);
        const char *name = argument + 2;
        const size_t length = strcspn(name, "=");
        const option_row *row = fa_option_find(name, length);
        if (row == NULL)
            return fa_refuse(why, FA_USAGE, "unknown option --%.*s (see --help)", (int)length, name);
        char what[64];
        snprintf(what, sizeof what, "--%s", row->name);
        for (const fa_ban *ban = banned; ban->name != NULL; ban++)
            if (strcmp(ban->name, row->name) == 0)
                return fa_refuse(why, FA_USAGE, "%s %s", what, ban->reason);
        if (row->kind == KIND_FLAG) {
            if (name[length] == '=')
                return fa_refuse(why, FA_USAGE, "%s takes no value", what);
            *(bool *)field(options, row) = true;
            continue;
        }
        const char *value = name[length] == '=' ? name + length + 1 : ++i < count ? words[i] : NULL;
        if (value == NULL) {
            char range[256];
            describe_range(row, range);
            return fa_refuse(why, FA_USAGE, "%s needs a value: %s", what, range);
        }
        if (has_several(row, value))
            options->several = true;
        else
            FA_TRY(parse_value(row, what, value, field(options, row), why));
        options->sized = options->sized || (row->offset >= AT(batch) && row->offset <= AT(lengths));
        options->batch_set = options->batch_set || row->offset == AT(batch);
        options->seeds_set = options->seeds_set || row->offset == AT(seeds);
    }
    if (options->beat > 0 && options->vs.name[0] != '\0')
        return fa_refuse(why, FA_USAGE, "--beat stops a timing, which --vs needs: one of the two");
    if (options->race && options->sanitize != FA_SANITIZE_NONE && options->sanitize != FA_SANITIZE_THREAD)
        return fa_refuse(why, FA_USAGE, "--race is --sanitize thread: not with another sanitizer");
    if (options->race)
        options->sanitize = FA_SANITIZE_THREAD;
    return FA_PASS;
}

/* What --preset or --definition of the words stands for goes before them: what is given beside it wins. */
static fa_status add_problem(const fa_options *given, fa_options *options, fa_reason *why)
{
    static const fa_ban none = {.name = NULL};
    fa_definition_words words;
    int count = 0;
    if (given->preset != NULL && given->definition != NULL)
        return fa_refuse(why, FA_USAGE, "--preset and --definition are one problem each: one of them");
    if (given->workload != NULL && given->definition == NULL)
        return fa_refuse(why, FA_USAGE, "--workload goes with --definition");
    if (given->definition != NULL) {
        FA_TRY(fa_definition_read(given->definition, given->workload, &words, why));
        options->valued = words.values;
        return add_words(words.count, words.at, &none, options, why);
    }
    char *const *preset = given->preset != NULL ? fa_preset_words(given->preset, &count, why) : NULL;
    return given->preset != NULL && preset == NULL ? FA_USAGE : add_words(count, preset, &none, options, why);
}

fa_status fa_options_add(int count, char *const words[], const fa_ban *banned, fa_options *options, fa_reason *why)
{
    fa_options given = *options;
    given.preset = given.definition = given.workload = NULL;
    FA_TRY(add_words(count, words, banned, &given, why));
    if (given.preset == NULL && given.definition == NULL && given.workload == NULL) {
        given.preset = options->preset;
        given.definition = options->definition;
        given.workload = options->workload;
        *options = given;
        return FA_PASS;
    }
    if (options->preset != NULL || options->definition != NULL)
        return fa_refuse(why, FA_USAGE, "%s is given twice: once on the command line or once on a line",
                         options->preset != NULL ? "--preset" : "--definition");
    FA_TRY(add_problem(&given, options, why));
    return add_words(count, words, banned, options, why);
}

fa_status fa_options_agree(const fa_options *o, fa_reason *why)
{
    const bool emulates = o->sanitize != FA_SANITIZE_NONE || o->schedule != FA_SCHEDULE_ASCENDING || o->no_ptxas;
    const struct {
        bool both;
        const char *text;
    } pairs[] = {
        {o->bound && o->no_bound, "--bound and --no-bound: one of the two"},
        {o->compile_only && o->vs.name[0] != '\0', "--vs needs times: not with --compile-only"},
        {o->compile_only && o->dump != NULL, "--dump writes what a kernel made: not with --compile-only"},
        {o->select && (o->compile_only || o->bound || o->cubin != NULL || o->dump != NULL),
         "--select compiles nothing: not with --compile-only, --bound, --cubin or --dump"},
        {o->device == FA_DEVICE_EMU && o->gpu > 0, "--gpu is not for --device emu"},
        {o->device == FA_DEVICE_CUDA && !o->compile_only && emulates,
         "--sanitize, --race, --schedule and --no-ptxas are for the emulator: not with --device cuda"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].both)
            return fa_refuse(why, FA_USAGE, "%s", pairs[i].text);
    return FA_PASS;
}
