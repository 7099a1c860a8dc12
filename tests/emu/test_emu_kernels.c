/* Every kernel of the registry that can be emulated, over tails, causal masks, grouped heads, odd dims, misaligned
 * tensors, and features together where it serves them: right under every schedule, clean under the sanitizers, right
 * with every tile of its rules. Through fa_bench itself:
 *     test_emu_kernels [--check|--test|--rest|--all] [KERNEL]        --list: the kernels
 * The machine code is not asked for: tests/cli/compile_all.bats and features.bats have the CUDA compiler's word.
 * check: two points, one schedule. test (default): the common points, and for the first kernel every point, under one
 * schedule, one under the race detector. rest: what test leaves out. all: both. */
#include "base/process.h"
#include "base/status.h"
#include "compile/paths.h"
#include "input/registry.h"
#include "tests/unit/unit.h"

#define ARGUMENTS_MAX 64

typedef struct point {
    const char *name, *arguments;
    const char *sanitizers; /* besides none: a address, u undefined, t thread */
    bool common;            /* in make test for every kernel */
} point;

static const point points[] = {
    {"tail", "--batch 1 --heads 1 --seq 65 --seq-kv 200 --dim 64 --dist needle", "at", true},
    {"causal_gqa", "--batch 2 --heads 4 --kv-heads 2 --seq 33 --seq-kv 70 --dim 40 --causal --dist sharp", "aut", true},
    {"rows_without_keys", "--batch 1 --heads 1 --seq 40 --seq-kv 17 --dim 24 --causal", "a", false},
    {"one_row", "--batch 1 --heads 3 --seq 1 --seq-kv 130 --dim 128", "a", false},
    {"overflow", "--batch 1 --heads 2 --kv-heads 1 --seq 9 --seq-kv 250 --dim 64 --scale 40", "t", false}, /* S again */
    {"misaligned", "--batch 1 --heads 2 --seq 35 --seq-kv 66 --dim 72 --misalign 3", "au", true},
    {"window", "--batch 1 --heads 4 --kv-heads 2 --seq 150 --seq-kv 190 --dim 64 --causal --window 40,0 --sinks --lse",
     "aut", true},
    {"lengths",
     "--heads 2 --kv-heads 1 --lengths 70:90,0,1:5,33:20,9:0 --dim 40 --causal --chunk 30 --lse --deterministic", "aut",
     true},
    {"scores", "--heads 2 --lengths 40:110,1:1,20 --window 60,9 --dim 64 --softcap 3 --alibi --sinks --lse", "at",
     false},
    {"pages", "--page-size 16 --heads 4 --kv-heads 2 --lengths 70:90,0,1:5,33:20,3:130 --dim 40 --causal --lse", "aut",
     true},
    {"tree", "--mask tree --heads 4 --kv-heads 2 --lengths 5:130,20,1:33 --page-size 16 --dim 64 --sinks", "at", false},
    {"wide_v", "--batch 1 --heads 2 --seq 50 --seq-kv 90 --dim 40 --dim-v 88 --causal --dtype bf16 --lse", "at", false},
};
enum { POINTS = sizeof points / sizeof points[0] };

typedef struct combination {
    const char *kernel;
    const point *at;
} combination;

/* A point whose features the kernel does not serve. tests/cli/features.bats has what must be served. */
static char not_served[] = "does not serve", not_that_page[] = "takes pages of a multiple of";

/* "serves --dim 576 ... only": the options that a kernel of one shape takes alone, malloc'd; NULL: it says none. Of one
 * that takes no V wider than K: the wider K. */
static char *only_shape(const char *output)
{
    if (strstr(output, "dim-v must be a multiple of 8 from 16 to dim") != NULL)
        return fa_format("--dim 88 --dim-v 40");
    const char *from = strstr(output, "serves --"), *to = from != NULL ? strstr(from, " only") : NULL;
    return to != NULL ? fa_format("%.*s", (int)(to - from - 7), from + 7) : NULL;
}

/* The options in argv, of which there are `count`, for e4m3: dims become multiples of 16. Returns how many follow. */
static size_t take_e4m3(const char **argv, size_t count)
{
    static char dims[2][16];
    for (size_t i = 0; i + 1 < count; i++)
        if (strcmp(argv[i], "--dim") == 0 || strcmp(argv[i], "--dim-v") == 0) {
            char *rounded = dims[argv[i][5] != '\0'];
            snprintf(rounded, sizeof dims[0], "%d", (atoi(argv[i + 1]) + 15) / 16 * 16);
            argv[i + 1] = rounded;
        }
    argv[count] = "--dtype";
    argv[count + 1] = "e4m3";
    return 2;
}

/* NULL on success. */
static char *run_bench(const combination *c, const char *schedule, const char *sanitize)
{
    /* --maxreg is a tile option: no variant takes the kernel's place */
    const char *argv[ARGUMENTS_MAX] = {"./fa_bench", "--device", "emu",     "--check",    "cpu",    "--seeds",
                                       "1",          "--kernel", c->kernel, "--schedule", schedule, "--sanitize",
                                       sanitize,     "--maxreg", "0",       "--no-ptxas"};
    size_t count = 16;
    FREED char *words = fa_format("%s", c->at->arguments), *output = NULL;
    const fa_kernel_row *row = NULL;
    fa_reason why;
    const bool backward = fa_registry_find(c->kernel, &row, &why) == FA_PASS && row->traits.backward;
    argv[count++] = "--op";
    argv[count++] = backward ? "backward" : "forward";
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        if (strcmp(word, backward ? "--lse" : "--deterministic") != 0)
            argv[count++] = word;
    if (row != NULL && row->traits.fp8)
        count += take_e4m3(argv, count);
    const int code = fa_run(argv, &output);
    if (code == 0 && strstr(output, "PASS") != NULL)
        return NULL;
    FREED char *shape = code == fa_status_exit_code(FA_INFEASIBLE) ? only_shape(output) : NULL;
    if (shape != NULL && strstr(c->at->arguments, shape) == NULL) { /* the point, with that shape */
        FREED char *arguments = fa_format("%s %s", c->at->arguments, shape);
        const point at = {c->at->name, arguments, c->at->sanitizers, c->at->common};
        return run_bench(&(combination){c->kernel, &at}, schedule, sanitize);
    }
    const bool no_gradients = backward && strstr(output, "--op backward does not go with") != NULL;
    if (no_gradients || (code == fa_status_exit_code(FA_INFEASIBLE) &&
                         (strstr(output, not_served) != NULL || strstr(output, not_that_page) != NULL)))
        return not_served;
    return fa_format("%s %s, %s, %s: exit code %d\n%s", c->kernel, c->at->arguments, schedule, sanitize, code, output);
}

static void judge(const char *failure)
{
    if (failure == not_served)
        skip();
    if (failure != NULL)
        fail_msg("%s", failure);
}

static void right_in_one_order(void **state)
{
    char *failure = run_bench(*state, "random", "none");
    judge(failure);
}

static void right_in_every_other_order(void **state)
{
    static const char *const schedules[] = {"ascending", "greedy", "descending"};
    const combination *c = *state;
    /* ascending and greedy hide most; one point each is enough of them */
    for (size_t i = c->at == &points[0] ? 0 : 2; i < sizeof schedules / sizeof schedules[0]; i++) {
        char *failure = run_bench(c, schedules[i], "none");
        judge(failure);
    }
}

static void clean_under(const combination *c, const char *sanitize)
{
#if defined(__SANITIZE_ADDRESS__)
    if (strcmp(sanitize, "address") != 0) /* fa_bench is under AddressSanitizer, too: no other one beside it */
        skip();
#endif
    char *failure = run_bench(c, "random", sanitize);
    judge(failure);
}

static void free_of_races(void **state) { clean_under(*state, "thread"); }
static void clean_of_bad_addresses(void **state) { clean_under(*state, "address"); }
static void defined(void **state) { clean_under(*state, "undefined"); }

/* A rule's tile, which small problems would not pick, over the end of a tile of rows and of several tiles of keys. */
static void rule_is_right(void **state)
{
    const fa_rule *rule = *state;
    const fa_knobs *k = &rule->knobs;
    const fa_kernel_row *of = NULL;
    const int32_t largest = 512, most = rule->max_dim_v > 0 ? rule->max_dim_v : largest; /* of --dim-v */
    const int32_t dim_v = most < rule->max_dim ? most : rule->max_dim;
    fa_reason why;
    assert_int_equal(fa_registry_find(rule->name, &of, &why), FA_PASS);
    FREED char *arguments =
        fa_format("--batch 1 --heads 1 --seq %d --seq-kv %d --dim %d --dim-v %d --dist sharp --m %d --n %d --warps %d "
                  "--vec %d --stages %d --swizzle %d --splits %d%s%s%s%s",
                  k->m + 7, 3 * k->n + k->m, rule->max_dim, dim_v, k->m, k->n, k->warps, k->vec, k->stages, k->swizzle,
                  k->splits, rule->causal == 0 ? "" : " --causal", rule->features != 0 ? " --window 40,-1 --sinks" : "",
                  rule->asks == FA_FEATURE_FP8_KV  ? " --kv-dtype e4m3"
                  : rule->asks == FA_FEATURE_PAGED ? " --page-size 16"
                                                   : "",
                  rule->min_arch >= 90 || of->traits.min_arch >= 90 ? " --arch sm_90a"
                  : rule->max_arch == 80                            ? " --arch sm_80"
                                                                    : "");
    const point at = {"rule", arguments, "", false};
    const combination c = {rule->variant, &at};
    char *failure = run_bench(&c, "random", "none");
    judge(failure);
}

typedef struct tests {
    struct CMUnitTest all[256];
    size_t count;
} tests;

static void add(tests *t, char *name, CMUnitTestFunction run, const void *state, size_t state_size)
{
    if (t->count == sizeof t->all / sizeof t->all[0]) {
        fprintf(stderr, "test_emu_kernels: more than %zu tests\n", t->count);
        exit(2);
    }
    void *copy = fa_alloc(state_size);
    memcpy(copy, state, state_size);
    t->all[t->count++] = (struct CMUnitTest){.name = name, .test_func = run, .initial_state = copy};
}

static void add_tiles(tests *t, const char *kernel)
{
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++)
        if (strcmp(rule->variant, kernel) == 0)
            add(t,
                fa_format("%s_tile_%d_%d_dim_%d%s", kernel, rule->knobs.m, rule->knobs.n, rule->max_dim,
                          rule->features != 0 ? "_features" : ""),
                rule_is_right, rule, sizeof *rule);
}

/* A point that is not common: `make test` runs it with the first kernel, `make test-all` with the others. */
static void add_point(tests *t, const char *kernel, bool first, const point *at, bool test, bool rest)
{
    const combination c = {.kernel = kernel, .at = at};
    const char *const name = at->name;
    if (at->common || first ? test : rest)
        add(t, fa_format("%s_%s", kernel, name), right_in_one_order, &c, sizeof c);
    if (rest)
        add(t, fa_format("%s_%s_schedules", kernel, name), right_in_every_other_order, &c, sizeof c);
    for (const char *s = at->sanitizers; *s != '\0'; s++) {
        if (*s == 't' && (at == &points[0] ? test : rest)) /* one point under the race detector is in every run */
            add(t, fa_format("%s_%s_race", kernel, name), free_of_races, &c, sizeof c);
        if (*s == 'a' && rest)
            add(t, fa_format("%s_%s_address", kernel, name), clean_of_bad_addresses, &c, sizeof c);
        if (*s == 'u' && rest)
            add(t, fa_format("%s_%s_undefined", kernel, name), defined, &c, sizeof c);
    }
}

int main(int argc, char **argv)
{
    static tests t;
    const char *which = "--test", *only = NULL;
    bool known = false, seen = false;
    int skipped = 0;
    setenv("FA_HOME", ".", 0);
    for (int i = 1; i < argc; i++)
        *(argv[i][0] == '-' ? &which : &only) = argv[i];
    const bool check = strcmp(which, "--check") == 0, all = strcmp(which, "--all") == 0;
    const bool test = strcmp(which, "--test") == 0 || all, rest = strcmp(which, "--rest") == 0 || all;
    for (size_t k = 0; k < fa_registry_count(); k++) {
        const fa_kernel_row *row = fa_registry_at(k);
        if (row->kind != FA_KIND_HAND || row->traits.emu_not_run)
            continue;
        fa_headers headers;
        fa_reason why;
        if (strcmp(which, "--list") != 0 && fa_headers_find(row, &headers, &why) != FA_PASS) {
            const bool asked = only == NULL || strcmp(row->name, only) == 0;
            if (asked)
                printf("[  SKIPPED ] %s\nNOT-RUN: %s\n", row->name, why.text);
            skipped += asked;
            continue;
        }
        const bool first = !seen, slow_to_compile = row->traits.headers != NULL;
        seen = true;
        if (only != NULL && strcmp(row->name, only) != 0)
            continue;
        known = true;
        if (strcmp(which, "--list") == 0)
            puts(row->name);
        if (rest)
            add_tiles(&t, row->name);
        for (int i = 0; i < POINTS && (test || rest); i++)
            if (!row->traits.wgmma || strstr(points[i].arguments, "--misalign") == NULL) /* TMA cannot */
                add_point(&t, row->name, first, &points[i], slow_to_compile && i > 1 ? rest : test, rest);
        for (int i = 0; i < 2 && check; i++) {
            const combination c = {.kernel = row->name, .at = &points[i]};
            add(&t, fa_format("%s_%s", row->name, points[i].name), right_in_one_order, &c, sizeof c);
        }
    }
    if (skipped == 0 && (!known || (t.count == 0 && strcmp(which, "--list") != 0))) {
        fprintf(stderr, "usage: test_emu_kernels [--check|--test|--rest|--all|--list] [KERNEL]\n");
        return 2;
    }
    const int failed = t.count > 0 ? _cmocka_run_group_tests("kernels on the emulator", t.all, t.count, NULL, NULL) : 0;
    for (size_t i = 0; i < t.count; i++) {
        free(t.all[i].initial_state);
        free((char *)(uintptr_t)t.all[i].name);
    }
    return failed;
}
