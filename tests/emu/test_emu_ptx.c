/* Inline PTX on the emulator: every conformance kernel of tests/emu/ptx passes under every schedule and sanitizer, and
 * each kernel of its controls, wrong in one way, is reported with its class and the line marked HERE.
 * --test: one schedule, and the controls; --rest: the other schedules and the sanitizers; neither: both. */
#include "tests/emu/run_case.h"

#define CONTROL_FILE "tests/emu/ptx_controls.cu"

/* A build of the tests under AddressSanitizer runs no kernel under another sanitizer. */
static bool possible(int sanitize)
{
#if defined(__SANITIZE_ADDRESS__)
    return sanitize != FA_SANITIZE_UNDEFINED && sanitize != FA_SANITIZE_THREAD;
#else
    return sanitize >= 0;
#endif
}

static bool with_test = true, with_rest = true;

static void conforms(void **state)
{
    static const int points[][2] = {
        /* --test takes the first */
        {FA_SCHEDULE_RANDOM, FA_SANITIZE_NONE},    {FA_SCHEDULE_DESCENDING, FA_SANITIZE_NONE},
        {FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE}, {FA_SCHEDULE_RANDOM, FA_SANITIZE_ADDRESS},
        {FA_SCHEDULE_RANDOM, FA_SANITIZE_THREAD},  {FA_SCHEDULE_GREEDY, FA_SANITIZE_UNDEFINED}};
    const char *name = *state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (!(i == 0 ? with_test : with_rest) || !possible(points[i][1]))
            continue;
        char *file = fa_format("tests/emu/ptx/%s.cu", name);
        char *output = run_case(file, NULL, 0, points[i][0], points[i][1]);
        free(file);
        if (strcmp(output, "pass\n") != 0)
            fail_msg("%s, schedule %d, sanitizer %d: %s", name, points[i][0], points[i][1], output);
        free(output);
    }
}

typedef struct control {
    const char *name;
    int schedule, sanitize;
    const char *words, *more;
} control;

static const control controls[] = {
    {"race", FA_SCHEDULE_ASCENDING, FA_SANITIZE_THREAD, "data race", "CUDA thread"},
    {"race_atomic", FA_SCHEDULE_ASCENDING, FA_SANITIZE_THREAD, "data race", "CUDA thread"},
    {"race_vector", FA_SCHEDULE_ASCENDING, FA_SANITIZE_THREAD, "data race", "CUDA thread"},
    {"misaligned_vector", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "misaligned", "not a multiple of 16 bytes"},
    {"vector_in_shared", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "not_run", "a vector of atom or red is .global"},
    {"overflow_shared", FA_SCHEDULE_ASCENDING, FA_SANITIZE_ADDRESS, "heap-buffer-overflow", "WRITE of size 4"},
    {"overflow_global", FA_SCHEDULE_ASCENDING, FA_SANITIZE_ADDRESS, "heap-buffer-overflow", "READ of size 4"},
    {"misaligned", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "misaligned", "not a multiple of 16 bytes"},
    {"not_shared", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "illegal address", "is no address of shared memory"},
    {"divergent", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "divergent barrier", "bar.sync (barrier 0)"},
    {"unknown", FA_SCHEDULE_ASCENDING, FA_SANITIZE_NONE, "not_run", "pmevent 7 (no such instruction)"},
};

static void reported(void **state)
{
    const control *c = *state;
    if (!possible(c->sanitize))
        skip();
    char *place = fa_format("ptx_controls.cu:%d", line_marked(CONTROL_FILE, c->name));
    char *output = run_control(CONTROL_FILE, c->name, c->schedule, c->sanitize);
    if (strstr(output, c->words) == NULL || strstr(output, c->more) == NULL || strstr(output, place) == NULL)
        fail_msg("%s: no \"%s\" with \"%s\" and \"%s\" in:\n%s", c->name, c->words, c->more, place, output);
    free(output);
    free(place);
}

int main(int argc, char **argv)
{
    static const char *const kernels[] = {"integer", "floats", "convert", "memory", "atomics",
                                          "groups",  "matrix", "mma",     "async"};
    enum { KERNELS = sizeof kernels / sizeof kernels[0], CONTROLS = sizeof controls / sizeof controls[0] };
    struct CMUnitTest tests[KERNELS + CONTROLS] = {{0}};
    size_t count = 0;
    with_test = takes(argc, argv, "--test");
    with_rest = takes(argc, argv, "--rest");
    for (size_t i = 0; i < KERNELS; i++)
        add_test(tests, &count, fa_format("conforms_%s", kernels[i]), conforms, kernels[i]);
    for (const control *c = controls; c < controls + CONTROLS && with_test; c++)
        add_test(tests, &count, fa_format("control_%s", c->name), reported, c);
    return run_all(argv[0], "inline PTX", tests, count);
}
