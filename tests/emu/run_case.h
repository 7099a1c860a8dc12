/* What the tests of the emulator share: a run of emu_case, a process of its own, and the marks of its controls. */
#ifndef FA_RUN_CASE_H
#define FA_RUN_CASE_H

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "base/status.h"
#include "input/options.h"

/* What emu_case prints of FILE.cu; define: NULL, or a macro that chooses a part of the file. malloc'd */
static inline char *run_case(const char *file, const char *define, int schedule, int sanitize)
{
    char *output = NULL, *binary = fa_format("%s/emu_case", getenv("EMU_CASE_FOLDER"));
    char schedule_text[12], sanitize_text[12];
    snprintf(schedule_text, sizeof schedule_text, "%d", schedule);
    snprintf(sanitize_text, sizeof sanitize_text, "%d", sanitize);
    const char *const command[] = {
        binary, file, "--schedule", schedule_text, "--sanitize", sanitize_text, define != NULL ? "--define" : NULL,
        define, NULL};
    assert_int_not_equal(fa_run(command, &output), -1);
    free(binary);
    return output;
}

/* A control is a part of FILE.cu, between #if defined(CONTROL_name) and #endif. */
static inline char *run_control(const char *file, const char *name, int schedule, int sanitize)
{
    char *define = fa_format("CONTROL_%s", name), *output = run_case(file, define, schedule, sanitize);
    free(define);
    return output;
}

/* The line of FILE.cu that is marked HERE in the part of this control. */
static inline int line_marked(const char *file, const char *name)
{
    char *begin = fa_format("#if defined(CONTROL_%s)\n", name), *text = NULL;
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
    free(text);
    free(begin);
    return line;
}

#endif
