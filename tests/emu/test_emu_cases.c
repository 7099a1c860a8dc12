/* Files of many kernels on the emulator, under the race detector. The set `race`: none with a race is missed, none
 * without is accused. The set `hopper`, instructions of sm_90a: each kernel wrong in one way is reported with a class
 * and line that its source marks, and the conformance kernels pass.
 * test_emu_cases [--test|--rest] SET: one schedule; the others; neither: all. --case NAME: kernels of that name alone.
 */
#include "device/findings.h"
#include "tests/emu/run_case.h"

#include <glob.h>

enum { CASES_MAX = 1200, MARKS_MAX = 8, WORD = 64, ANY_LINE = -1 };

/* line 0: the report names none */
typedef struct mark {
    char class[WORD];
    int line;
} mark;

typedef struct kernel {
    char name[WORD], place[WORD], file[WORD];
    int number, schedule, sanitize, mark_count;
    mark marks[MARKS_MAX];
    bool bad;
    const char *kind; /* clean, bad, racy: bad, and the source marks nothing, so that the run must end as wrong */
    bool call;        /* it takes the plugin of src/emu/race/calls.cc to see it */
} kernel;

static bool plugin_is_there(void)
{
    glob_t found;
    const bool there = glob("build/race_calls-*.so", 0, NULL, &found) == 0;
    globfree(&found);
    return there;
}

static bool says(const kernel *k, const mark *m, const char *output)
{
    bool named = m->line == 0;
    const char *at = output;
    while (!named && (at = strstr(at, k->place)) != NULL) {
        at += strlen(k->place);
        named = *at == ':' && (m->line == ANY_LINE || atoi(at + 1) == m->line);
    }
    return named && strstr(output, m->class) != NULL;
}

static void judged(void **state)
{
    const kernel *k = *state;
    if (k->bad && k->call && !plugin_is_there())
        skip();
    char *output = run_case(k->file, NULL, k->number, k->schedule, k->sanitize);
    bool good = !k->bad && strcmp(output, "pass\n") == 0;
    for (int i = 0; k->bad && i < k->mark_count; i++)
        good |= says(k, &k->marks[i], output) && (*k->kind != 'r' || strncmp(output, "wrong ", 6) == 0);
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

/* The marks of the case that begins at `at`: those of its line, or up to the line of its "}". False: this schedule does
 * not show it. */
static bool find_marks(kernel *k, const char *at, int line)
{
    char only[8] = "adrg";
    const char *end = strchr(at, '\n');
    const bool lines = end[1] == '{';
    do {
        read_marks(k, at, (size_t)(end - at), line++, only);
        at = end + 1;
        end = strchr(at, '\n');
    } while (lines && *at != '}' && end != NULL);
    return strchr(only, "adrg"[k->schedule]) != NULL;
}

/* A report names the line of a form of results.cuh, and the file of any other case. */
static void mark_race(kernel *k, const char *at, int line)
{
    mark *m = &k->marks[k->mark_count++];
    snprintf(m->class, sizeof m->class, "%s", strncmp(k->name, "same_value", 10) ? "data race" : FA_EQUAL_STORES);
    m->line = *at == 'F' ? line : ANY_LINE;
    k->kind = "racy";
}

/* The cases of a file, in their order; only: that one alone. bad*, *racy: wrong kernels; one without a mark has a race.
 */
static size_t kernels_of(const char *file, int schedule, const char *only, kernel *kernels)
{
    const bool bad = strstr(file, "/bad") != NULL || strstr(file, "racy") != NULL;
    char *text = NULL, *path = fa_format("%s", strstr(file, "results") ? "tests/emu/race/results.cuh" : file);
    size_t size = 0, count = 0;
    int number = 0, line = 1;
    fa_reason why;
    assert_int_equal(fa_read_file(path, &text, &size, &why), FA_PASS);
    for (const char *at = text, *next;; at = strchr(at, '\n') + 1, line++) {
        kernel *k = &kernels[count];
        *k = (kernel){.number = number++, .schedule = schedule, .bad = bad, .sanitize = FA_SANITIZE_THREAD};
        if ((next = next_case(at, k->name, sizeof k->name, &line)) == NULL)
            break;
        at = next;
        snprintf(k->file, sizeof k->file, "%s", file);
        snprintf(k->place, sizeof k->place, "%s", strrchr(path, '/') + 1);
        k->kind = bad ? "bad" : "clean";
        k->call = strncmp(at, "FORM_OF_A_CALL", 14) == 0;
        const bool shown = find_marks(k, at, line);
        if (bad && k->mark_count == 0)
            mark_race(k, at, line);
        count += shown && (only == NULL || strcmp(only, k->name) == 0);
    }
    free(path);
    free(text);
    return count;
}

int main(int argc, char **argv)
{
    const char *only = argc > 3 && strcmp(argv[argc - 2], "--case") == 0 ? argv[argc - 1] : NULL;
    const char *set = argc > 1 ? argv[*argv[1] == '-' && argc > 2 ? 2 : 1] : "";
    static kernel kernels[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    size_t found = 0, count = 0;
    glob_t files;
    char *pattern = fa_format("tests/emu/%s/*.cu", set);
    if (glob(pattern, 0, NULL, &files) != 0)
        return fprintf(stderr, "usage: test_emu_cases [--test|--rest] race|hopper [--case NAME]\n"), 2;
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++)
        for (size_t i = 0; i < files.gl_pathc; i++) {
            const char *file = files.gl_pathv[i];
            if (!takes(argc, argv, schedule == FA_SCHEDULE_RANDOM ? "--test" : "--rest"))
                continue;
            if (strstr(file, "racy") != NULL || strstr(file, "/bad") != NULL || strstr(file, "clean") != NULL) {
                found += kernels_of(file, schedule, only, kernels + found);
            } else if (only == NULL && strstr(file, "/conform") != NULL) {
                kernel *k = &kernels[found++];
                *k = (kernel){.kind = "clean", .name = "conforms", .schedule = schedule};
                snprintf(k->file, sizeof k->file, "%s", file);
            }
        }
    globfree(&files);
    free(pattern);
    for (const kernel *k = kernels; k < kernels + found; k++)
        add_test(tests, &count, fa_format("%s_%s_%c", k->kind, k->name, "adrg"[k->schedule]), judged, k);
    return run_all(argv[0], set, tests, count);
}
