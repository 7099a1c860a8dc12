/* The race detector on kernels with a race (tests/emu/race/racy.cu, results_racy.cu) and without one (clean.cu,
 * results_clean.cu): none missed, none invented. Each run is a process of its own (emu_case). --test: one schedule;
 * --rest: the others; neither: all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "input/options.h"

enum { CASES_MAX = 200 };

typedef struct kernel {
    char name[64];
    const char *file;
    char line[80]; /* a report names it */
    int number, schedule;
    bool racy;
} kernel;

static void judged(void **state)
{
    const kernel *k = *state;
    char *binary = fa_format("%s/emu_case", getenv("EMU_CASE_FOLDER")), *output = NULL, number[8], schedule[8];
    snprintf(number, sizeof number, "%d", k->number);
    snprintf(schedule, sizeof schedule, "%d", k->schedule);
    const char *const command[] = {binary, k->file, "--sanitize", "3", "--case", number, "--schedule", schedule, NULL};
    assert_int_not_equal(fa_run(command, &output), -1);
    const bool good = k->racy ? strncmp(output, "wrong ", 6) == 0 && strstr(output, "data race") != NULL &&
                                    strstr(output, k->line) != NULL
                              : strcmp(output, "pass\n") == 0;
    if (!good)
        fail_msg("%s of %s under schedule %d: %s", k->name, k->file, k->schedule, output);
    free(output);
    free(binary);
}

/* "results.cuh:LINE" of a form there, "racy.cu:" of a case. */
static void name_line(kernel *k, const char *list, const char *text)
{
    char *form = fa_format("\nFORM(%s,", k->name);
    const char *at = strstr(text, form);
    int line = 1;
    for (const char *c = text; at != NULL && c <= at; c++)
        line += *c == '\n';
    snprintf(k->line, sizeof k->line, at != NULL ? "%s:%d\n" : "%s:", strrchr(list, '/') + 1, line);
    free(form);
}

/* The names in the list, X(name), in their order. */
static size_t kernels_of(const char *file, const char *list, int schedule, kernel *kernels)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    fa_reason why;
    if (fa_read_file(list, &text, &size, &why) != FA_PASS)
        return 0;
    const char *at = strstr(text, "#define CASES(X)");
    for (at = at != NULL ? strchr(at + 15, ')') : NULL; at != NULL && (at = strstr(at, "X(")) != NULL; at += 2) {
        kernel *k = &kernels[count];
        *k = (kernel){.file = file, .number = (int)count++, .schedule = schedule, .racy = strstr(file, "racy") != NULL};
        snprintf(k->name, sizeof k->name, "%.*s", (int)strcspn(at + 2, ")"), at + 2);
        name_line(k, list, text);
    }
    free(text);
    return count;
}

int main(int argc, char **argv)
{
    const bool test = argc < 2 || strcmp(argv[1], "--rest") != 0, rest = argc < 2 || strcmp(argv[1], "--test") != 0;
    static const char *const files[][2] = {{"tests/emu/race/racy.cu", "tests/emu/race/racy.cu"},
                                           {"tests/emu/race/clean.cu", "tests/emu/race/clean.cu"},
                                           {"tests/emu/race/results_racy.cu", "tests/emu/race/results.cuh"},
                                           {"tests/emu/race/results_clean.cu", "tests/emu/race/results.cuh"}};
    static kernel kernels[4 * CASES_MAX];
    struct CMUnitTest tests[4 * CASES_MAX] = {{0}};
    size_t count = 0;
    char *folder = fa_format("%s", argv[0]);
    setenv("EMU_CASE_FOLDER", dirname(folder), 1);
    setenv("FA_HOME", ".", 0);
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++) {
        if (schedule == FA_SCHEDULE_RANDOM ? !test : !rest)
            continue;
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            count += kernels_of(files[i][0], files[i][1], schedule, kernels + count);
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = fa_format("%s_%s_%c", kernels[i].racy ? "racy" : "clean",
                                                         kernels[i].name, "adrg"[kernels[i].schedule]),
                                       .test_func = judged,
                                       .initial_state = &kernels[i]};
    const int failed = _cmocka_run_group_tests("race detector", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)tests[i].name);
    free(folder);
    return failed;
}
