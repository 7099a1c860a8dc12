/* The emulator tells the truth: primitives and inline PTX conform, and each control kernel, wrong in one way, is
 * reported with its class and the line of the kernel that is marked HERE. Every run is a process of its own (emu_case).
 * --test: primitives under one schedule, and a control of each class; --rest: primitives under the other schedules and
 * the sanitizers, and the other controls; neither: both. */
#include "tests/emu/run_case.h"

#define SCHEDULES 4
#define CONTROL_FILE "tests/emu/controls.cu"
#define PTX_CONTROL_FILE "tests/emu/ptx_controls.cu"

/* A build of the tests under AddressSanitizer runs no kernel under another sanitizer; our race detector is none, but it
 * does not see what inline PTX does there. */
static bool possible(const char *file, int sanitize)
{
#if defined(__SANITIZE_ADDRESS__)
    return sanitize != FA_SANITIZE_UNDEFINED && (sanitize != FA_SANITIZE_THREAD || strstr(file, "ptx") == NULL);
#else
    return sanitize >= 0 && file != NULL;
#endif
}

static void conforms_under(const char *name, int schedule, int sanitize)
{
    FREED char *file = fa_format("tests/emu/%s.cu", name), *output = run_case(file, NULL, 0, schedule, sanitize);
    if (strcmp(output, "pass\n") != 0)
        fail_msg("%s, schedule %d, sanitizer %d: %s", name, schedule, sanitize, output);
}

static void conforms(void **state) { conforms_under(*state, FA_SCHEDULE_RANDOM, FA_SANITIZE_NONE); }

static void conforms_everywhere(void **state)
{
    for (int schedule = 0; schedule < SCHEDULES; schedule++)
        if (schedule != FA_SCHEDULE_RANDOM)
            conforms_under(*state, schedule, FA_SANITIZE_NONE);
    for (int sanitize = FA_SANITIZE_NONE + 1; sanitize <= FA_SANITIZE_THREAD; sanitize++)
        if (possible(*state, sanitize))
            conforms_under(*state, FA_SCHEDULE_RANDOM, sanitize);
}

/* A control. words: all in its report. line: the marked one must be named. rest: --test has another of its class. */
typedef struct control {
    const char *name;
    int schedule, sanitize;
    const char *words, *more;
    bool line, rest;
    const char *file; /* NULL: CONTROL_FILE */
} control;

#define ASCENDING FA_SCHEDULE_ASCENDING
#define DESCENDING FA_SCHEDULE_DESCENDING
#define RANDOM FA_SCHEDULE_RANDOM
#define GREEDY FA_SCHEDULE_GREEDY
#define NONE FA_SANITIZE_NONE
#define ADDRESS FA_SANITIZE_ADDRESS
#define UNDEFINED FA_SANITIZE_UNDEFINED
#define THREAD FA_SANITIZE_THREAD

static const control controls[] = {
    {"missing_barrier", ASCENDING, NONE, "pass", "", false}, /* why one order is not enough */
    {"missing_barrier", DESCENDING, NONE, "wrong 381 ", "", true},
    {"missing_barrier", RANDOM, NONE, "wrong ", "", true},
    {"missing_barrier", ASCENDING, THREAD, "data race", "CUDA thread 1", true},
    {"missing_syncwarp", ASCENDING, NONE, "wrong ", "", true},
    {"missing_syncwarp", ASCENDING, THREAD, "data race", "warp.lane 0.1", true, true},
    {"buffer_overwritten", RANDOM, NONE, "wrong ", "", false},
    {"buffer_overwritten", ASCENDING, THREAD, "data race", "", true, true},
    {"shuffle_as_barrier", RANDOM, NONE, "pass", "", false}, /* only the race detector sees it */
    {"shuffle_as_barrier", ASCENDING, THREAD, "data race", "", true},
    {"divergent_barrier", ASCENDING, NONE, "divergent barrier", "lanes 16-31", true},
    {"divergent_barrier", RANDOM, NONE, "divergent barrier", "lanes 0-15", true},
    {"barrier_against_shuffle", ASCENDING, NONE, "divergent barrier", "lanes 8 (thread (40,0,0) on): __syncthreads",
     true},
    {"awaited_in_a_function", ASCENDING, NONE, "divergent barrier",
     "__shfl_sync (mask 0xffffffff) at controls.cu:", true},
    {"awaited_in_a_function", GREEDY, ADDRESS, "divergent barrier", "(called at controls.cu:", true, true},
    {"named_barrier_short", ASCENDING, NONE, "deadlock", "bar.sync (barrier 3)", true},
    {"bad_barrier", ASCENDING, NONE, "bad barrier", "warp.lane 1.0", true},
    {"partial_warp", ASCENDING, NONE, "partial warp", "lanes 16-31: exited", true},
    {"absent_lane", ASCENDING, NONE, "absent lane", "lane 16", true},
    {"bad_mask", ASCENDING, NONE, "bad mask", "thread (16,0,0)", true},
    {"async_early", ASCENDING, NONE, "wrong 96 ", "", true},
    {"async_early", ASCENDING, ADDRESS, "use-after-poison", "READ of size 2", true},
    {"async_left", ASCENDING, NONE, "wrong 96 ", "", true},
    {"async_left", ASCENDING, ADDRESS, "use-after-poison", "READ of size 2", true, true},
    {"async_left", ASCENDING, THREAD, "data race", "", true, true},
    {"async_left_over", ASCENDING, NONE, "wrong 96 ", "", true},
    {"async_left_over", ASCENDING, THREAD, "data race", "", true, true},
    {"async_misaligned", ASCENDING, NONE, "misaligned", "", true},
    {"async_no_barrier", ASCENDING, NONE, "wrong ", "", true},
    {"async_no_barrier", ASCENDING, THREAD, "data race", "", true, true},
    {"tail_global", ASCENDING, ADDRESS, "heap-buffer-overflow", "thread (31,0,0)", true},
    {"tail_async", ASCENDING, ADDRESS, "heap-buffer-overflow", "thread (31,0,0)", true, true},
    {"tail_shared", ASCENDING, NONE, "shared memory overflow", "128 bytes", false},
    {"tail_shared", ASCENDING, ADDRESS, "heap-buffer-overflow", "WRITE of size 4", true},
    {"tail_static_shared", ASCENDING, ADDRESS, "global-buffer-overflow", "WRITE of size 4", true},
    {"tail_ldmatrix", ASCENDING, ADDRESS, "heap-buffer-overflow", "thread (31,0,0)", true, true},
    {"wmma_layout", ASCENDING, NONE, "wrong ", "", true},
    {"wmma_no_syncwarp", ASCENDING, NONE, "wrong ", "", true},
    {"wmma_no_syncwarp", ASCENDING, THREAD, "data race", "", true, true},
    {"unwritten_shared", ASCENDING, NONE, "wrong 96 ", "", true},
    {"trap", ASCENDING, NONE, "trap", "thread (7,0,0)", true},
    {"grid_barrier", ASCENDING, NONE, "infeasible", "Make two launches", true},
    {"false_assert", ASCENDING, NONE, "trap", "assert: t != 7", true},
    {"null_pointer", ASCENDING, NONE, "illegal address", "thread (7,0,0)", false},
    {"null_pointer", ASCENDING, ADDRESS, "SEGV", "thread (7,0,0)", true, true},
    {"undefined_shift", ASCENDING, UNDEFINED, "shift exponent 32", "thread (32,0,0)", true},
    {"race", ASCENDING, THREAD, "data race", "CUDA thread", true, false, PTX_CONTROL_FILE},
    {"race_atomic", ASCENDING, THREAD, "data race", "CUDA thread", true, false, PTX_CONTROL_FILE},
    {"race_vector", ASCENDING, THREAD, "data race", "CUDA thread", true, false, PTX_CONTROL_FILE},
    {"misaligned_vector", ASCENDING, NONE, "misaligned", "not a multiple of 16 bytes", true, false, PTX_CONTROL_FILE},
    {"vector_in_shared", ASCENDING, NONE, "not_run", "a vector of atom or red is .global", true, false,
     PTX_CONTROL_FILE},
    {"overflow_shared", ASCENDING, ADDRESS, "heap-buffer-overflow", "WRITE of size 4", true, false, PTX_CONTROL_FILE},
    {"overflow_global", ASCENDING, ADDRESS, "heap-buffer-overflow", "READ of size 4", true, false, PTX_CONTROL_FILE},
    {"misaligned", ASCENDING, NONE, "misaligned", "not a multiple of 16 bytes", true, false, PTX_CONTROL_FILE},
    {"not_shared", ASCENDING, NONE, "illegal address", "is no address of shared memory", true, false, PTX_CONTROL_FILE},
    {"divergent", ASCENDING, NONE, "divergent barrier", "bar.sync (barrier 0)", true, false, PTX_CONTROL_FILE},
    {"unknown", ASCENDING, NONE, "not_run", "pmevent 7 (no such instruction)", true, false, PTX_CONTROL_FILE},
};

static void reported(void **state)
{
    const control *c = *state;
    const char *file = c->file != NULL ? c->file : CONTROL_FILE;
    if (!possible(file, c->sanitize))
        skip();
    FREED char *output = run_control(file, c->name, c->schedule, c->sanitize);
    char place[128] = "";
    if (c->line && strncmp(c->words, "wrong", 5) == 0)
        snprintf(place, sizeof place, " %d\n", line_marked(file, c->name));
    else if (c->line)
        snprintf(place, sizeof place, "%s:%d", strrchr(file, '/') + 1, line_marked(file, c->name));
    if (strstr(output, c->words) == NULL || strstr(output, c->more) == NULL || strstr(output, place) == NULL)
        fail_msg("%s, schedule %d, sanitizer %d: no \"%s\" with \"%s\" and \"%s\" in:\n%s", c->name, c->schedule,
                 c->sanitize, c->words, c->more, place, output);
}

/* A failure repeats exactly: schedules and fragment maps come from the seed. */
static void repeats(void **state)
{
    (void)state;
    FREED char *first = run_control(CONTROL_FILE, "missing_barrier", FA_SCHEDULE_RANDOM, FA_SANITIZE_NONE);
    for (int i = 0; i < 3; i++) {
        FREED char *again = run_control(CONTROL_FILE, "missing_barrier", FA_SCHEDULE_RANDOM, FA_SANITIZE_NONE);
        assert_string_equal(first, again);
    }
}

int main(int argc, char **argv)
{
    static const char *const conform[] = {
        "conform/shuffles", "conform/barriers", "conform/matrix", "conform/wmma", "conform/async", "conform/halves",
        "conform/atomics",  "conform/polls",    "ptx/integer",    "ptx/floats",   "ptx/convert",   "ptx/memory",
        "ptx/atomics",      "ptx/groups",       "ptx/matrix",     "ptx/mma",      "ptx/async"};
    enum { CONFORM = sizeof conform / sizeof conform[0], CONTROLS = sizeof controls / sizeof controls[0] };
    struct CMUnitTest tests[2 * CONFORM + CONTROLS + 1] = {{0}};
    size_t count = 0;
    const bool test = takes(argc, argv, "--test"), rest = takes(argc, argv, "--rest");
    for (size_t i = 0; i < CONFORM; i++) {
        const int folder = (int)strcspn(conform[i], "/");
        const char *name = conform[i] + folder + 1;
        if (rest)
            add_test(tests, &count, fa_format("everywhere_%.*s_%s", folder, conform[i], name), conforms_everywhere,
                     conform[i]);
        if (test)
            add_test(tests, &count, fa_format("%.*s_%s", folder, conform[i], name), conforms, conform[i]);
    }
    for (const control *c = controls; c < controls + CONTROLS; c++)
        if (c->rest ? rest : test)
            add_test(tests, &count, fa_format("control_%s_%c%c", c->name, "adrg"[c->schedule], "naut"[c->sanitize]),
                     reported, c);
    if (test)
        add_test(tests, &count, fa_format("repeats"), repeats, NULL);
    return run_all(argv[0], "emulator", tests, count);
}
