/* Instructions of sm_90a on the emulator, under the race detector: each kernel of tests/emu/hopper/bad*.cu, wrong in
 * one way, is reported with a class and line that its source marks; none of clean.cu is. The conformance kernels pass.
 * --test: one schedule; --rest: the others; neither: all. --case NAME: the kernels of that name alone. */
#include "tests/emu/run_case.h"

enum { CASES_MAX = 1200, MARKS_MAX = 8, WORD = 64 };

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
} kernel;

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
    FREED char *output = run_case(k->file, NULL, k->number, k->schedule, k->sanitize);
    bool good = !k->bad && strcmp(output, "pass\n") == 0;
    for (int i = 0; k->bad && i < k->mark_count; i++)
        good |= says(k, &k->marks[i], output);
    if (!good)
        fail_msg("%s of %s under schedule %d: %s", k->name, k->file, k->schedule, output);
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

/* Marks of the case at `at`: those of its line, or up to the line of its "}". False: this schedule does not show it. */
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

/* The cases of a file, in their order; only: that one alone. */
static size_t kernels_of(const char *file, bool bad, int schedule, const char *only, kernel *kernels)
{
    FREED char *text = NULL, *path = fa_format("tests/emu/hopper/%s", file);
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
        snprintf(k->file, sizeof k->file, "%s", path);
        snprintf(k->place, sizeof k->place, "%s", file);
        const bool shown = find_marks(k, at, line);
        count += shown && (only == NULL || strcmp(only, k->name) == 0);
    }
    return count;
}

int main(int argc, char **argv)
{
    const char *only = argc > 2 && strcmp(argv[argc - 2], "--case") == 0 ? argv[argc - 1] : NULL;
    static const char *const files[] = {"bad.cu",   "bad_products.cu", "bad_maps.cu",      "bad_cluster.cu",
                                        "clean.cu", "clean_maps.cu",   "clean_cluster.cu", "clean_cluster4.cu"};
    static const char *const conform[] = {"copies", "products", "cluster", "maps"};
    static kernel kernels[CASES_MAX];
    static struct CMUnitTest tests[CASES_MAX];
    size_t found = 0, count = 0;
    for (int schedule = FA_SCHEDULE_ASCENDING; schedule <= FA_SCHEDULE_GREEDY; schedule++) {
        if (!takes(argc, argv, schedule == FA_SCHEDULE_RANDOM ? "--test" : "--rest"))
            continue;
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            found += kernels_of(files[i], *files[i] == 'b', schedule, only, kernels + found);
        for (size_t i = 0; only == NULL && i < sizeof conform / sizeof conform[0]; i++) {
            kernel *k = &kernels[found++];
            *k = (kernel){.name = "conforms", .schedule = schedule};
            snprintf(k->file, sizeof k->file, "tests/emu/hopper/conform_%s.cu", conform[i]);
        }
    }
    for (const kernel *k = kernels; k < kernels + found; k++)
        add_test(tests, &count, fa_format("%s_%s_%c", k->bad ? "bad" : "clean", k->name, "adrg"[k->schedule]), judged,
                 k);
    return run_all(argv[0], "sm_90a", tests, count);
}
