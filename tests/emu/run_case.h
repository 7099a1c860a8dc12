/* What the tests of the emulator share: a run of emu_case, a process of its own, and the marks of its controls. */
#pragma once

#include <libgen.h>

#include "base/file.h"
#include "base/process.h"
#include "base/status.h"
#include "tests/unit/unit.h"

/* --test or --rest alone leaves the other part out. */
static inline bool takes(int argc, char **argv, const char *part)
{
    return argc < 2 || strcmp(argv[1], strcmp(part, "--test") == 0 ? "--rest" : "--test") != 0;
}

static inline void add_test(struct CMUnitTest *tests, size_t *count, char *name, CMUnitTestFunction judged,
                            const void *state)
{
    tests[(*count)++] =
        (struct CMUnitTest){.name = name, .test_func = judged, .initial_state = (void *)(uintptr_t)state};
}

/* Runs the tests of a program and frees their names. */
static inline int run_all(const char *program, const char *group, const struct CMUnitTest *tests, size_t count)
{
    FREED char *folder = fa_format("%s", program);
    setenv("EMU_CASE_FOLDER", dirname(folder), 1);
    setenv("FA_HOME", ".", 0);
    const int failed = count > 0 ? _cmocka_run_group_tests(group, tests, count, NULL, NULL) : 2;
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)tests[i].name);
    return failed;
}

/* What emu_case prints of FILE.cu, malloc'd; define: NULL, or a macro that chooses a part; number: of several cases */
static inline char *run_case(const char *file, const char *define, int number, int schedule, int sanitize)
{
    FREED char *binary = fa_format("%s/emu_case", getenv("EMU_CASE_FOLDER"));
    char *output = NULL, text[3][12];
    const int numbers[] = {number, schedule, sanitize};
    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "%d", numbers[i]);
    const char *const command[] = {binary,       file,         "--case",
                                   text[0],      "--schedule", text[1],
                                   "--sanitize", text[2],      define != NULL ? "--define" : NULL,
                                   define,       NULL};
    assert_int_not_equal(fa_run(command, &output), -1);
    return output;
}

/* A control is CONTROL(name, threads, bytes) {...} of FILE.cu. */
static inline char *run_control(const char *file, const char *name, int schedule, int sanitize)
{
    FREED char *define = fa_format("CONTROL_NAME=%s", name);
    return run_case(file, define, 0, schedule, sanitize);
}

/* The line of FILE.cu that is marked HERE in this control. */
static inline int line_marked(const char *file, const char *name)
{
    FREED char *begin = fa_format("\nCONTROL(%s, ", name), *text = NULL;
    fa_reason why;
    size_t size;
    assert_int_equal(fa_read_file(file, &text, &size, &why), FA_PASS);
    const char *mark = strstr(text, begin);
    assert_non_null(mark);
    mark = strstr(mark, "/* HERE */");
    assert_non_null(mark);
    int line = 1;
    for (const char *c = text; c < mark; c++)
        line += *c == '\n';
    return line;
}

/* The next case of a file of several, from `at` on, the beginning of a line: a line that begins with CASE(name or
 * FORM(name, or a longer word that ends so. NULL: none is left. line: where `at` is, then where the case is. */
static inline const char *next_case(const char *at, char *name, size_t size, int *line)
{
    while (at != NULL) {
        const size_t word = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        const char *begin = at + word + 1 + strspn(at + word + (at[word] != 0), "(\n ");
        if (word >= 4 && at[word] == '(' && (strncmp(at + word - 4, "CASE", 4) == 0 || !strncmp(at, "FORM", 4))) {
            snprintf(name, size, "%.*s", (int)strcspn(begin, ",)"), begin);
            return at;
        }
        at = strchr(at, '\n');
        at += at != NULL;
        ++*line;
    }
    return NULL;
}
