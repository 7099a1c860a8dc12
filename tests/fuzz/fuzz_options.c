/* The command line: the lines of the input are the arguments, and the whole input is a line of --runs. Accepted values
 * must lie in the ranges of options.def. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/runs.h"

enum { ARGUMENTS_MAX = 64 };

static void hold(const fa_options *options)
{
#define FA_GROUP(title)
#define FA_INT(name, field, value, low, high, about)                                                              \
    FA_ASSERT(options->field == (value) || (options->field >= (low) && options->field <= (high)), "%s: %d", name, \
              options->field);
#define FA_REAL(name, field, value, low, high, about)                                                             \
    FA_ASSERT(options->field == (value) || (options->field >= (low) && options->field <= (high)), "%s: %g", name, \
              options->field);
#define FA_WORD(name, field, value, words, about) FA_ASSERT(options->field >= FA_UNSET && options->field < 16, name);
#define FA_SET(name, field, value, words, metavar, about) FA_ASSERT(options->field > 0 && options->field < 16, name);
#define FA_LIST(name, field, metavar, about) \
    FA_ASSERT(options->field.count >= 0 && options->field.count <= FA_LIST_MAX, name);
#define FA_VS(name, field, metavar, about)
#define FA_TEXT(name, field, value, metavar, about) FA_ASSERT(!options->field || options->field[0] != '\0', name);
#define FA_FLAG(name, field, about)
#include "input/options.def"
}

/* Words lie in the line, in order and apart from each other. */
static void split(const uint8_t *data, size_t size)
{
    char *text = fa_alloc(size + 1), *words[FA_RUN_WORDS_MAX], *from = text;
    int count = 0;
    fa_reason why = {""};
    memcpy(text, data, size);
    const size_t length = strlen(text);
    if (fa_runs_split(text, words, &count, &why) == FA_PASS)
        for (int i = 0; i < count; i++) {
            FA_ASSERT(words[i] >= from && words[i] <= text + length, "word %d", i);
            from = words[i] + strlen(words[i]) + 1;
        }
    else
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fa_alloc(size + 1);
    char *arguments[ARGUMENTS_MAX + 1] = {"fa_bench"};
    int count = 1;
    fa_options options;
    fa_reason why = {""};
    split(data, size);
    memcpy(text, data, size);
    for (char *line = strtok(text, "\n"); line != NULL && count < ARGUMENTS_MAX; line = strtok(NULL, "\n"))
        arguments[count++] = line;
    if (fa_options_parse(count, arguments, &options, &why) == FA_PASS) {
        fa_problem problem;
        fa_spec spec;
        hold(&options);
        options.source = NULL; /* would ask the file system */
        if (fa_problem_make(&options, &problem, &why) == FA_PASS) {
            FA_ASSERT(isfinite(fa_problem_flop(&problem)) && problem.heads % problem.kv_heads == 0);
            fa_spec_make(&options, &problem, &spec, &why);
            fa_problem_free(&problem);
        }
    } else {
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    }
    free(text);
    return 0;
}
