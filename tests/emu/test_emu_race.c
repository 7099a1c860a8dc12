/* The race detector on kernels with a race (tests/emu/race/racy.cu, results_racy.cu) and without one (clean.cu,
 * results_clean.cu): none missed, none invented. Each run is a process of its own (emu_case). --test: one schedule;
 * --rest: the others; neither: all. */
#include "device/findings.h"
#include "tests/emu/run_case.h"

#include <glob.h>

enum { CASES_MAX = 200 };

typedef struct kernel {
    char name[64];
    const char *file;
    char line[80]; /* a report names it */
    int number, schedule;
    bool racy;
    bool call; /* it takes the plugin of src/emu/race/calls.cc to see it */
} kernel;

static bool plugin_is_there(void)
{
    glob_t found;
    const bool there = glob("build/race_calls-*.so", 0, NULL, &found) == 0;
    globfree(&found);
    return there;
}

static void judged(void **state)
{
    const kernel *k = *state;
    if (k->racy && k->call && !plugin_is_there())
        skip();
    FREED char *output = run_case(k->file, NULL, k->number, k->schedule, FA_SANITIZE_THREAD);
    const char *class = strncmp(k->name, "same_value", 10) == 0 ? FA_EQUAL_STORES : "data race";
    const bool good =
        k->racy ? strncmp(output, "wrong ", 6) == 0 && strstr(output, class) != NULL && strstr(output, k->line) != NULL
                : strcmp(output, "pass\n") == 0;
    if (!good)
        fail_msg("%s of %s under schedule %d: %s", k->name, k->file, k->schedule, output);
}

/* The cases of a file, in their order. A report names "results.cuh:LINE" of a form there, "racy.cu:" of a case. */
static size_t kernels_of(const char *file, const char *list, int schedule, kernel *kernels)
{
    FREED char *text = NULL;
    size_t size = 0, count = 0;
    int line = 1;
    fa_reason why;
    assert_int_equal(fa_read_file(list, &text, &size, &why), FA_PASS);
    for (const char *at = text, *next; count < CASES_MAX; at = strchr(at, '\n') + 1, line++) {
        kernel *k = &kernels[count];
        *k = (kernel){.file = file, .number = (int)count, .schedule = schedule, .racy = strstr(file, "racy") != NULL};
        if ((next = next_case(at, k->name, sizeof k->name, &line)) == NULL)
            break;
        at = next;
        count++;
        k->call = strncmp(at, "FORM_OF_A_CALL", 14) == 0;
        snprintf(k->line, sizeof k->line, *at == 'F' ? "%s:%d\n" : "%s:", strrchr(list, '/') + 1, line);
    }
    return count;
}

int main(int argc, char **argv)
{
    static const char *const files[][2] = {{"tests/emu/race/racy.cu", "tests/emu/race/racy.cu"},
                                           {"tests/emu/race/clean.cu", "tests/emu/race/clean.cu"},
                                           {"tests/emu/race/results_racy.cu", "tests/emu/race/results.cuh"},
                                           {"tests/emu/race/results_clean.cu", "tests/emu/race/results.cuh"}};
    static kernel kernels[4 * CASES_MAX];
    struct CMUnitTest tests[4 * CASES_MAX] = {{0}};
    size_t found = 0, count = 0;
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++)
        for (size_t i = 0; i < 4 && takes(argc, argv, schedule == FA_SCHEDULE_RANDOM ? "--test" : "--rest"); i++)
            found += kernels_of(files[i][0], files[i][1], schedule, kernels + found);
    for (const kernel *k = kernels; k < kernels + found; k++)
        add_test(tests, &count, fa_format("%s_%s_%c", k->racy ? "racy" : "clean", k->name, "adrg"[k->schedule]), judged,
                 k);
    return run_all(argv[0], "race detector", tests, count);
}
