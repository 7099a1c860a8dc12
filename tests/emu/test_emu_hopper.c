/* Instructions of sm_90a on the emulator, under the race detector: each kernel of tests/emu/hopper/bad*.cu, wrong in
 * one way, is reported with a class and line that its source marks; none of clean.cu is. The conformance kernels pass.
 * --test: one schedule; --rest: the others; neither: all. --case NAME: the kernels of that name alone. */
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

enum { CASES_MAX = 1200, MARKS_MAX = 8, WORD = 64 };

/* line 0: the report names none */
typedef struct mark {
    char class[WORD];
    int line;
} mark;

typedef struct kernel {
    char name[WORD], place[WORD];
    const char *file, *race; /* race: emu_case's number of the sanitizer */
    int number, schedule, mark_count;
    mark marks[MARKS_MAX];
    bool bad;
} kernel;

static char *run(const kernel *k)
{
    char *binary = fa_format("%s/emu_case", getenv("EMU_CASE_FOLDER")), *output = NULL, number[8], schedule[8];
    snprintf(number, sizeof number, "%d", k->number);
    snprintf(schedule, sizeof schedule, "%d", k->schedule);
    const char *const command[] = {binary, k->file,      "--sanitize", k->race, "--case",
                                   number, "--schedule", schedule,     NULL};
    assert_int_not_equal(fa_run(command, &output), -1);
    free(binary);
    return output;
}

static bool says(const kernel *k, const mark *m, const char *output)
{
    bool named = m->line == 0;
    const char *at = output;
    while (!named && (at = strstr(at, k->place)) != NULL) {
        at += strlen(k->place);
        named = *at == ':' && atoi(at + 1) == m->line;
    }
    return named && strstr(output, m->class) != NULL;
}

static void judged(void **state)
{
    const kernel *k = *state;
    char *output = run(k);
    bool good = !k->bad && strcmp(output, "pass\n") == 0;
    for (int i = 0; k->bad && i < k->mark_count; i++)
        good |= says(k, &k->marks[i], output);
    if (!good)
        fail_msg("%s of %s under schedule %d: %s", k->name, k->file, k->schedule, output);
    free(output);
}

/* "HERE class; HERE class ONLY dr" in a comment of this line */
static void read_marks(kernel *k, const char *text, size_t length, int line, char *only)
{
    for (const char *at = text; at < text + length && (at = strstr(at, "/* ")) != NULL && at < text + length; at++) {
        const char *end = strstr(at, " */");
        for (const char *c = at; end != NULL && c < end; c++) {
            const bool here = strncmp(c, "HERE ", 5) == 0, none = strncmp(c, "NO LINE ", 8) == 0;
            if (strncmp(c, "ONLY ", 5) == 0)
                sscanf(c + 5, "%4[adrg]", only);
            if ((!here && !none) || k->mark_count == MARKS_MAX)
                continue;
            const char *class = c + (here ? 5 : 8), *stop = class;
            while (stop < end && *stop != ';' && strncmp(stop, " ONLY", 5) != 0)
                stop++;
            mark *m = &k->marks[k->mark_count++];
            snprintf(m->class, sizeof m->class, "%.*s", (int)(stop - class), class);
            m->line = here ? line : 0;
        }
    }
}

/* False: this schedule does not show it. */
static bool find_marks(kernel *k, const char *text)
{
    char *begin = fa_format("CASE(%s)\n", k->name), only[8] = "adrg";
    const char *at = strstr(text, begin);
    int line = 1;
    for (const char *c = text; at != NULL && c < at; c++)
        line += *c == '\n';
    while (at != NULL && *at != '}') {
        const char *end = strchr(at, '\n');
        if (end == NULL)
            break;
        read_marks(k, at, (size_t)(end - at), line++, only);
        at = end + 1;
    }
    free(begin);
    return strchr(only, "adrg"[k->schedule]) != NULL;
}

/* The names in the list of a file, X(name), in their order. */
static size_t kernels_of(const char *file, bool bad, int schedule, const char *only, kernel *kernels)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    int number = 0;
    fa_reason why;
    if (fa_read_file(file, &text, &size, &why) != FA_PASS)
        return 0;
    const char *at = strstr(text, "#define CASES(X)");
    for (at = at != NULL ? strchr(at + 15, ')') : NULL; at != NULL && (at = strstr(at, "X(")) != NULL; at += 2) {
        kernel *k = &kernels[count];
        *k = (kernel){.file = file, .number = number++, .schedule = schedule, .bad = bad, .race = "3"};
        snprintf(k->name, sizeof k->name, "%.*s", (int)strcspn(at + 2, ")"), at + 2);
        snprintf(k->place, sizeof k->place, "%s", strrchr(file, '/') + 1);
        const bool shown = find_marks(k, text);
        count += shown && (only == NULL || strcmp(only, k->name) == 0);
    }
    free(text);
    return count;
}

int main(int argc, char **argv)
{
    const bool test = argc < 2 || strcmp(argv[1], "--rest") != 0, rest = argc < 2 || strcmp(argv[1], "--test") != 0;
    const char *only = argc > 2 && strcmp(argv[argc - 2], "--case") == 0 ? argv[argc - 1] : NULL;
    static const char *const conform[] = {"tests/emu/hopper/conform_copies.cu", "tests/emu/hopper/conform_products.cu",
                                          "tests/emu/hopper/conform_cluster.cu", "tests/emu/hopper/conform_maps.cu"};
    static kernel kernels[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    size_t count = 0;
    char *folder = fa_format("%s", argv[0]);
    setenv("EMU_CASE_FOLDER", dirname(folder), 1);
    setenv("FA_HOME", ".", 0);
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++) {
        if (schedule == FA_SCHEDULE_RANDOM ? !test : !rest)
            continue;
        count += kernels_of("tests/emu/hopper/bad.cu", true, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/bad_products.cu", true, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/bad_maps.cu", true, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/bad_cluster.cu", true, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/clean.cu", false, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/clean_maps.cu", false, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/clean_cluster.cu", false, schedule, only, kernels + count);
        count += kernels_of("tests/emu/hopper/clean_cluster4.cu", false, schedule, only, kernels + count);
        for (size_t i = 0; only == NULL && i < sizeof conform / sizeof conform[0]; i++)
            kernels[count++] = (kernel){.name = "conforms", .file = conform[i], .schedule = schedule, .race = "0"};
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = fa_format("%s_%s_%c", kernels[i].bad ? "bad" : "clean", kernels[i].name,
                                                         "adrg"[kernels[i].schedule]),
                                       .test_func = judged,
                                       .initial_state = &kernels[i]};
    const int failed = count > 0 ? _cmocka_run_group_tests("sm_90a", tests, count, NULL, NULL) : 2;
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)tests[i].name);
    free(folder);
    return failed;
}
