#include "series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static void append(fa_series *series, const fa_options *options, int argc, char **argv)
{
    const size_t n = (size_t)series->count + 1;
    series->options = realloc(series->options, n * sizeof *series->options);
    series->argc = realloc(series->argc, n * sizeof *series->argc);
    series->argv = realloc(series->argv, n * sizeof *series->argv);
    FA_ASSERT(series->options != NULL && series->argc != NULL && series->argv != NULL, "%zu runs", n);
    series->options[n - 1] = *options;
    series->argc[n - 1] = argc;
    series->argv[n - 1] = argv;
    series->count++;
}

/* The command line without --runs, and the words of `line` behind it; argv[argc] is NULL. */
static char **join(int argc, char *const argv[], const char *line, int *joined)
{
    char **all = fa_alloc(((size_t)argc + strlen(line) / 2 + 2) * sizeof *all);
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--runs") == 0)
            i++;
        else if (strncmp(argv[i], "--runs=", 7) != 0)
            all[n++] = argv[i];
    }
    for (const char *at = line + strspn(line, " \t"); *at != '\0'; at += strspn(at, " \t")) {
        const size_t length = strcspn(at, " \t");
        all[n++] = fa_format("%.*s", (int)length, at);
        at += length;
    }
    all[n] = NULL;
    *joined = n;
    return all;
}

/* What a line may not ask for: each run would wait for, or disturb, the others. */
static fa_status suits(const fa_options *base, const fa_options *run, fa_reason *why)
{
    if (run->help || run->version || run->list_kernels || run->runs != NULL)
        return fa_refuse(why, FA_USAGE, "not a run");
    if (run->timing != FA_TIMING_NONE && !run->compile_only)
        return fa_refuse(why, FA_USAGE, "a run of many checks or compiles: --timing none or --compile-only");
    if (run->sanitize != base->sanitize)
        return fa_refuse(why, FA_USAGE, "--sanitize and --race are for all runs: on the command line");
    return FA_PASS;
}

static fa_status read_lines(FILE *file, const fa_options *options, int argc, char *const argv[], fa_series *series, fa_reason *why)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    for (int number = 1; (length = getline(&line, &room, file)) >= 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[strspn(line, " \t")] == '\0')
            continue;
        fa_options run;
        fa_reason inner = {.text = ""};
        int joined = 0;
        char **words = join(argc, argv, line, &joined);
        fa_status status = fa_options_parse(joined, words, &run, &inner);
        if (status == FA_PASS)
            status = suits(options, &run, &inner);
        run.runs = options->runs; /* one of many */
        append(series, &run, joined, words);
        if (status != FA_PASS) {
            free(line);
            return fa_refuse(why, status, "%s:%d: %.400s", options->runs, number, inner.text);
        }
    }
    free(line);
    return series->count > 0 ? FA_PASS : fa_refuse(why, FA_USAGE, "--runs: no run in %s", options->runs);
}

fa_status fa_series_make(const fa_options *options, int argc, char *const argv[], fa_series *series, fa_reason *why)
{
    *series = (fa_series){.count = 0};
    if (options->runs == NULL) {
        int joined = 0;
        char **words = join(argc, argv, "", &joined);
        append(series, options, joined, words);
        return FA_PASS;
    }
    FILE *file = fopen(options->runs, "r");
    if (file == NULL)
        return fa_refuse(why, FA_USAGE, "--runs: cannot read '%s'", options->runs);
    const fa_status status = read_lines(file, options, argc, argv, series, why);
    fclose(file);
    return status;
}

typedef struct told {
    const fa_series *series;
    int code;
} told;

static void tell(void *self, int32_t run, const fa_result *result)
{
    told *t = self;
    const fa_series *s = t->series;
    const int code = fa_report(result, &s->options[run], s->argc[run], s->argv[run]);
    t->code = t->code != 0 ? t->code : code;
}

int fa_series_run(fa_work *work, const fa_series *series)
{
    told t = {.series = series, .code = 0};
    fa_child_runs(work, series->options, series->count, tell, &t);
    return t.code;
}

void fa_series_hold_gpu(const fa_options *options)
{
    static fa_device held;
    fa_reason ignored;
    if (options->runs != NULL && !options->compile_only && options->device != FA_DEVICE_EMU && held.self == NULL)
        fa_device_open_cuda(options->gpu, &held, &ignored);
}
