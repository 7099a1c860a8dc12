/* Every kernel of the registry that can be emulated, over tails, causal masks, grouped heads, odd dims and misaligned
 * tensors: right under every schedule, and clean under the sanitizers. Through fa_bench itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "input/registry.h"

#define ARGUMENTS_MAX 48

typedef struct point {
    const char *name, *arguments;
    const char *sanitizers; /* besides none: a address, u undefined, t thread */
} point;

static const point points[] = {
    {"tail", "--batch 1 --heads 2 --seq 65 --seq-kv 200 --dim 64 --dist needle", "at"},
    {"causal_gqa", "--batch 2 --heads 4 --kv-heads 2 --seq 33 --seq-kv 70 --dim 40 --causal --dist sharp", "aut"},
    {"rows_without_keys", "--batch 1 --heads 1 --seq 40 --seq-kv 17 --dim 24 --causal", "a"},
    {"one_row", "--batch 1 --heads 3 --seq 1 --seq-kv 130 --dim 128", "a"},
    {"misaligned", "--batch 1 --heads 2 --seq 35 --seq-kv 66 --dim 72 --misalign 3", "au"},
};
enum { POINTS = sizeof points / sizeof points[0] };

typedef struct combination {
    const char *kernel;
    const point *at;
} combination;

/* NULL on success. */
static char *run_bench(const combination *c, const char *schedule, const char *sanitize)
{
    const char *argv[ARGUMENTS_MAX] = {"./fa_bench", "--device", "emu",        "--check", "cpu",        "--seeds", "1",
                                       "--kernel",   c->kernel,  "--schedule", schedule,  "--sanitize", sanitize};
    size_t count = 13;
    char *words = fa_format("%s", c->at->arguments), *output = NULL;
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[count++] = word;
    const int code = fa_run(argv, &output);
    free(words);
    if (code == 0 && strstr(output, "PASS") != NULL) {
        free(output);
        return NULL;
    }
    char *text =
        fa_format("%s %s, %s, %s: exit code %d\n%s", c->kernel, c->at->arguments, schedule, sanitize, code, output);
    free(output);
    return text;
}

static void right_and_clean(void **state)
{
    static const char *const schedules[] = {"ascending", "greedy", "descending", "random"};
    const combination *c = *state;
    /* ascending and greedy hide most; one point each is enough of them */
    for (size_t i = c->at == &points[0] ? 0 : 2; i < sizeof schedules / sizeof schedules[0]; i++) {
        char *failure = run_bench(c, schedules[i], "none");
        if (failure != NULL)
            fail_msg("%s", failure);
    }
    for (const char *s = c->at->sanitizers; *s != '\0'; s++) {
#if defined(__SANITIZE_ADDRESS__)
        if (*s != 'a') /* fa_bench is under AddressSanitizer, too: no other one beside it */
            continue;
#endif
        char *failure = run_bench(c, "random", *s == 'a' ? "address" : *s == 'u' ? "undefined" : "thread");
        if (failure != NULL)
            fail_msg("%s", failure);
    }
}

/* The tile of a rule, which small problems would not pick, over the end of a tile of rows and of several tiles of keys. */
static void rule_is_right(void **state)
{
    const fa_rule *rule = *state;
    const fa_knobs *k = &rule->knobs;
    char *arguments = fa_format(
        "--batch 1 --heads 1 --seq %d --seq-kv %d --dim %d --dist sharp --m %d --n %d --warps %d --vec %d --stages %d "
        "--swizzle %d --splits %d%s",
        k->m + 7, 3 * k->n + k->m, rule->max_dim, k->m, k->n, k->warps, k->vec, k->stages, k->swizzle, k->splits,
        rule->causal == 0 ? "" : " --causal");
    const point at = {"rule", arguments, ""};
    const combination c = {rule->variant, &at};
    char *failure = run_bench(&c, "random", "none");
    if (failure != NULL)
        fail_msg("%s", failure);
    free(arguments);
}

int main(void)
{
    struct CMUnitTest tests[256];
    fa_reason why;
    size_t count = 0;
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++) {
        const fa_kernel_row *row = NULL;
        if (fa_registry_find(rule->variant, &row, &why) != FA_PASS || row->kind != FA_KIND_HAND ||
            row->traits.emu_not_run)
            continue;
        fa_rule *copy = fa_alloc(sizeof *copy);
        *copy = *rule;
        tests[count++] = (struct CMUnitTest){
            .name = fa_format("%s_tile_%d_%d_dim_%d", rule->variant, rule->knobs.m, rule->knobs.n, rule->max_dim),
            .test_func = rule_is_right,
            .initial_state = copy};
    }
    for (size_t k = 0; k < fa_registry_count(); k++) {
        const fa_kernel_row *row = fa_registry_at(k);
        if (row->kind != FA_KIND_HAND || row->traits.emu_not_run)
            continue;
        for (int i = 0; i < POINTS && count < sizeof tests / sizeof tests[0]; i++) {
            combination *c = fa_alloc(sizeof *c);
            *c = (combination){.kernel = row->name, .at = &points[i]};
            tests[count++] = (struct CMUnitTest){.name = fa_format("%s_%s", row->name, points[i].name),
                                                 .test_func = right_and_clean,
                                                 .initial_state = c};
        }
    }
    const int failed = _cmocka_run_group_tests("kernels on the emulator", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free(tests[i].initial_state);
        free((char *)(uintptr_t)tests[i].name);
    }
    return failed;
}
