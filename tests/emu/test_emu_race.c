/* The race detector on kernels with a race (tests/emu/race/racy.cu) and without one (clean.cu): none missed, none
 * invented. Each run is a process of its own (emu_case). --test: one schedule; --rest: the others; neither: all. */
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
                                    strstr(output, "racy.cu:") != NULL
                              : strcmp(output, "pass\n") == 0;
    if (!good)
        fail_msg("%s of %s under schedule %d: %s", k->name, k->file, k->schedule, output);
    free(output);
    free(binary);
}

/* The names in the list of a file, X(name), in their order. */
static size_t kernels_of(const char *file, bool racy, int schedule, kernel *kernels)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    fa_reason why;
    if (fa_read_file(file, &text, &size, &why) != FA_PASS)
        return 0;
    const char *at = strstr(text, "#define CASES(X)");
    for (at = at != NULL ? strchr(at + 15, ')') : NULL; at != NULL && (at = strstr(at, "X(")) != NULL; at += 2) {
        kernel *k = &kernels[count];
        *k = (kernel){.file = file, .number = (int)count++, .schedule = schedule, .racy = racy};
        snprintf(k->name, sizeof k->name, "%.*s", (int)strcspn(at + 2, ")"), at + 2);
    }
    free(text);
    return count;
}

int main(int argc, char **argv)
{
    const bool test = argc < 2 || strcmp(argv[1], "--rest") != 0, rest = argc < 2 || strcmp(argv[1], "--test") != 0;
    static kernel kernels[4 * CASES_MAX];
    struct CMUnitTest tests[4 * CASES_MAX] = {{0}};
    size_t count = 0;
    char *folder = fa_format("%s", argv[0]);
    setenv("EMU_CASE_FOLDER", dirname(folder), 1);
    setenv("FA_HOME", ".", 0);
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++) {
        if (schedule == FA_SCHEDULE_RANDOM ? !test : !rest)
            continue;
        count += kernels_of("tests/emu/race/racy.cu", true, schedule, kernels + count);
        count += kernels_of("tests/emu/race/clean.cu", false, schedule, kernels + count);
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
