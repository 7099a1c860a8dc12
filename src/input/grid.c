#include "input/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_status add_value(fa_grid_axis *axis, char *value, fa_reason *why)
{
    if (axis->count == FA_GRID_RUNS_MAX) {
        free(value);
        return fa_refuse(why, FA_USAGE, "--%s has more than %d values", axis->name, FA_GRID_RUNS_MAX);
    }
    axis->values = fa_resize(axis->values, (axis->count + 1) * sizeof *axis->values);
    axis->values[axis->count++] = value;
    return FA_PASS;
}

/* FROM:TO, FROM:TO:STEP or FROM:TO:xFACTOR. */
static bool read_range(const char *text, bool whole, double *from, double *to, double *step, bool *multiplies)
{
    char *end = NULL;
    *step = 1;
    *from = strtod(text, &end);
    if (end == text || *end != ':')
        return false;
    const char *at = end + 1;
    *to = strtod(at, &end);
    if (end == at || (*end != ':' && *end != '\0'))
        return false;
    *multiplies = end[0] == ':' && end[1] == 'x';
    if (*end == ':') {
        at = end + 1 + *multiplies;
        *step = strtod(at, &end);
        if (end == at || *end != '\0')
            return false;
    }
    const bool whole_numbers = floor(*from) == *from && floor(*to) == *to && (*multiplies || floor(*step) == *step);
    return strspn(text, "0123456789.:x-") == strlen(text) && (whole_numbers || !whole) && *from <= *to &&
           *step > (*multiplies ? 1 : 0) && (!*multiplies || *from > 0);
}

static fa_status add_range(fa_grid_axis *axis, const char *text, bool whole, fa_reason *why)
{
    double from, to, step;
    bool multiplies;
    if (!read_range(text, whole, &from, &to, &step, &multiplies))
        return fa_refuse(why, FA_USAGE,
                         "--%s takes values and ranges such as 64,128, 512:8192:x2 or 64:256:64, not '%s'", axis->name,
                         text);
    double before = NAN;
    for (int i = 0; i <= FA_GRID_RUNS_MAX; i++) {
        const double value = multiplies ? from * pow(step, i) : from + i * step;
        const double shown = whole ? floor(value + 1e-9) : value;
        if (value > to + 1e-9 * fabs(to))
            return FA_PASS;
        if (shown != before)
            FA_TRY(add_value(axis, fa_format(whole ? "%.0f" : "%.10g", shown), why));
        before = shown;
    }
    return fa_refuse(why, FA_USAGE, "--%s has more than %d values", axis->name, FA_GRID_RUNS_MAX);
}

static fa_status add_axis(fa_grid *grid, int word, const char *value, const option_row *option, const fa_ban *single,
                          fa_reason *why)
{
    for (const fa_ban *ban = single; ban->name != NULL; ban++)
        if (strcmp(ban->name, option->name) == 0)
            return fa_refuse(why, FA_USAGE, "--%s takes one value for all runs, not '%s'", option->name, value);
    if (grid->axes == FA_GRID_AXES_MAX)
        return fa_refuse(why, FA_USAGE, "at most %d options have several values", FA_GRID_AXES_MAX);
    fa_grid_axis *axis = &grid->axis[grid->axes++];
    *axis = (fa_grid_axis){.word = word, .name = fa_format("%s", option->name)};
    for (const char *at = value;; at++) {
        const size_t length = strcspn(at, ",");
        char *item = fa_format("%.*s", (int)length, at);
        const bool whole = option->kind == KIND_INT, number = whole || option->kind == KIND_REAL;
        const bool range = number && strchr(item, ':') != NULL;
        const fa_status status = range ? add_range(axis, item, whole, why) : add_value(axis, item, why);
        if (range)
            free(item);
        FA_TRY(status);
        at += length;
        if (*at == '\0')
            break;
    }
    grid->runs *= axis->count;
    return grid->runs <= FA_GRID_RUNS_MAX ? FA_PASS
                                          : fa_refuse(why, FA_USAGE,
                                                      "these values make more than %d runs: --runs takes "
                                                      "a list of them",
                                                      FA_GRID_RUNS_MAX);
}

fa_status fa_grid_make(int count, char *const words[], const fa_ban *single, fa_grid *grid, fa_reason *why)
{
    *grid = (fa_grid){.runs = 1, .count = count, .words = words};
    for (int i = 0; i < count; i++) {
        const char *name = words[i] + 2;
        const option_row *option = strncmp(words[i], "--", 2) == 0 ? fa_option_find(name, strcspn(name, "=")) : NULL;
        if (option == NULL || option->kind == KIND_FLAG)
            continue;
        const char *equals = strchr(words[i], '=');
        const int word = equals != NULL ? i : ++i;
        const char *value = equals != NULL ? equals + 1 : i < count ? words[i] : "";
        if (fa_option_has_several(option->name, value))
            FA_TRY(add_axis(grid, word, value, option, single, why));
    }
    return FA_PASS;
}

/* The value of an axis in run `index`; the last axis turns fastest. */
static const char *value_of(const fa_grid *grid, int axis, size_t index)
{
    for (int i = grid->axes - 1; i > axis; i--)
        index /= grid->axis[i].count;
    return grid->axis[axis].values[index % grid->axis[axis].count];
}

char **fa_grid_words(const fa_grid *grid, size_t index)
{
    size_t size = ((size_t)grid->count + 1) * sizeof(char *);
    for (int i = 0; i < grid->axes; i++)
        size += strlen(grid->axis[i].name) + strlen(value_of(grid, i, index)) + sizeof "--=";
    char **words = fa_alloc(size), *text = (char *)(words + grid->count + 1);
    if (grid->count > 0)
        memcpy(words, grid->words, (size_t)grid->count * sizeof *words);
    words[grid->count] = NULL;
    for (int i = 0; i < grid->axes; i++) {
        const fa_grid_axis *axis = &grid->axis[i];
        const bool whole =
            strncmp(grid->words[axis->word], "--", 2) == 0 && strchr(grid->words[axis->word], '=') != NULL;
        words[axis->word] = text;
        text += sprintf(text, "%s%s%s%s", whole ? "--" : "", whole ? axis->name : "", whole ? "=" : "",
                        value_of(grid, i, index)) +
                1;
    }
    return words;
}

char *fa_grid_values(const fa_grid *grid, size_t index)
{
    char *text = NULL;
    FILE *out = fa_open_text(&text, NULL);
    for (int i = 0; i < grid->axes; i++)
        fprintf(out, "%s--%s %s", i > 0 ? " " : "", grid->axis[i].name, value_of(grid, i, index));
    fclose(out);
    return text;
}

void fa_grid_free(fa_grid *grid)
{
    for (int i = 0; i < grid->axes; i++) {
        for (size_t k = 0; k < grid->axis[i].count; k++)
            free(grid->axis[i].values[k]);
        free(grid->axis[i].values);
        free((char *)grid->axis[i].name);
    }
    grid->axes = 0;
}
