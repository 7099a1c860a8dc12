#include "report/registry.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "compile/headers.h"
#include "input/space.h"
#include "input/spec.h"

/* The knobs that are numbers, in the order of --list-kernels; acc is a word of its own. */
static const struct knob {
    const char *name;
    size_t value, list; /* offsets in fa_knobs and fa_space */
} knobs[] = {
#define KNOB(field)                                                  \
    {                                                                \
#field, offsetof(fa_knobs, field), offsetof(fa_space, field) \
    }
    KNOB(m), KNOB(n), KNOB(warps), KNOB(vec), KNOB(stages), KNOB(swizzle), KNOB(splits), KNOB(maxreg),
#undef KNOB
};
enum { KNOBS = sizeof knobs / sizeof knobs[0] };

static int32_t value_of(const struct knob *knob, const fa_knobs *tile)
{
    return *(const int32_t *)((const char *)tile + knob->value);
}

static const char *list_of(const struct knob *knob, const fa_space *space)
{
    return *(const char *const *)((const char *)space + knob->list);
}

static void put_values(cJSON *values, const struct knob *knob, const fa_kernel_row *row)
{
    cJSON *array = cJSON_AddArrayToObject(values, knob->name);
    const char *list = list_of(knob, &row->space);
    if (list == NULL)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(value_of(knob, &row->knobs)));
    for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
        char *end = NULL;
        const long number = strtol(at, &end, 10);
        FA_ASSERT(end != at, "values of %s: %s", knob->name, list);
        cJSON_AddItemToArray(array, cJSON_CreateNumber((double)number));
        at = end;
    }
}

/* A tile as an object: knob -> value; acc is the word that --acc takes. */
static void put_tile(cJSON *object, const fa_knobs *tile)
{
    for (size_t i = 0; i < KNOBS; i++)
        cJSON_AddNumberToObject(object, knobs[i].name, value_of(&knobs[i], tile));
    cJSON_AddStringToObject(object, "acc", tile->acc ? "fp16" : "fp32");
}

/* defaults: the tile without tile options where no rule matches; values: what a sweep tries. */
static void put_space(cJSON *kernel, const fa_kernel_row *row)
{
    const char *acc_list = row->space.acc;
    put_tile(cJSON_AddObjectToObject(kernel, "defaults"), &row->knobs);
    cJSON *values = cJSON_AddObjectToObject(kernel, "values");
    for (size_t i = 0; i < KNOBS; i++)
        put_values(values, &knobs[i], row);
    cJSON *acc = cJSON_AddArrayToObject(values, "acc");
    cJSON_AddItemToArray(acc, cJSON_CreateString("fp32"));
    if (acc_list != NULL && strstr(acc_list, "fp16") != NULL)
        cJSON_AddItemToArray(acc, cJSON_CreateString("fp16"));
}

static void put_condition(cJSON *rule, const char *key, int32_t value)
{
    cJSON_AddItemToObject(rule, key, value == 0 ? cJSON_CreateNull() : cJSON_CreateNumber(value));
}

/* The kernel's rules in order; the first that matches a problem decides the tile. null: matches any. */
static void put_rules(cJSON *kernel, const fa_kernel_row *row)
{
    cJSON *all = cJSON_AddArrayToObject(kernel, "rules");
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++) {
        if (strcmp(rule->name, row->name) != 0)
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "serves", rule->variant);
        cJSON_AddNumberToObject(one, "max_dim", rule->max_dim);
        cJSON_AddItemToObject(one, "causal", rule->causal < 0 ? cJSON_CreateNull() : cJSON_CreateBool(rule->causal));
        cJSON_AddItemToObject(one, "max_fill_percent",
                              rule->max_fill_percent < 0 ? cJSON_CreateNull()
                                                         : cJSON_CreateNumber(rule->max_fill_percent));
        put_condition(one, "max_rows", rule->max_rows);
        put_condition(one, "min_keys", rule->min_keys);
        put_condition(one, "min_arch", rule->min_arch);
        put_condition(one, "max_arch", rule->max_arch);
        put_condition(one, "wave_cost", rule->wave_cost);
        put_tile(cJSON_AddObjectToObject(one, "config"), &rule->knobs);
        cJSON_AddItemToArray(all, one);
    }
}

/* One kernel; `source`: of a user's file, else NULL. */
static cJSON *kernel_json(const fa_kernel_row *row, const char *source)
{
    static const char *const kinds[] = {[FA_KIND_HAND] = "hand", [FA_KIND_LIBRARY] = "library"};
    const fa_traits *t = &row->traits;
    cJSON *kernel = cJSON_CreateObject();
    cJSON_AddStringToObject(kernel, "name", row->name);
    cJSON_AddStringToObject(kernel, "idea", row->idea);
    cJSON_AddStringToObject(kernel, "kind", kinds[row->kind]);
    cJSON_AddBoolToObject(kernel, "default", row == fa_registry_default());
    cJSON_AddNumberToObject(kernel, "min_arch", t->min_arch);
    cJSON_AddBoolToObject(kernel, "arch_specific", t->arch_specific);
    cJSON_AddBoolToObject(kernel, "emulated", row->kind == FA_KIND_HAND && !t->emu_not_run);
    cJSON_AddStringToObject(kernel, "tensor_cores", t->wgmma ? "wgmma" : t->mma ? "mma" : t->wmma ? "wmma" : "none");
    fa_headers headers;
    fa_reason why = {.text = ""};
    const bool missing = fa_headers_find(row, &headers, &why) != FA_PASS;
    cJSON_AddItemToObject(kernel, "missing", missing ? cJSON_CreateString(why.text) : cJSON_CreateNull());
    cJSON_AddItemToObject(kernel, "headers", t->headers != NULL ? cJSON_CreateString(t->headers) : cJSON_CreateNull());
    cJSON_AddItemToObject(kernel, "variant_of",
                          t->variant_of != NULL ? cJSON_CreateString(t->variant_of) : cJSON_CreateNull());
    if (source != NULL)
        cJSON_AddStringToObject(kernel, "source", source);
    if (row->kind == FA_KIND_HAND)
        put_space(kernel, row);
    put_rules(kernel, row);
    return kernel;
}

static char *print_all(cJSON *all)
{
    char *text = cJSON_Print(all);
    FA_ASSERT(text != NULL);
    cJSON_Delete(all);
    return text;
}

static char *kernels_json(void)
{
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < fa_registry_count(); i++)
        cJSON_AddItemToArray(all, kernel_json(fa_registry_at(i), NULL));
    return print_all(all);
}

/* The architectures that a row compiles for. */
static void print_arch(const fa_kernel_row *row)
{
    const char *suffix = row->traits.arch_specific ? "a" : " and later";
    if (row->kind == FA_KIND_HAND)
        printf("%12s for sm_%d%s; %s\n", "", row->traits.min_arch, suffix,
               row->traits.emu_not_run ? "not emulated" : "emulated");
}

/* Each knob with its default, and the values a sweep tries. */
static void print_values(const fa_kernel_row *row)
{
    if (row->kind != FA_KIND_HAND)
        return;
    printf("%12s", "");
    for (size_t i = 0; i < KNOBS - 1; i++) { /* all but maxreg */
        const char *list = list_of(&knobs[i], &row->space);
        printf(" %s=%d", knobs[i].name, value_of(&knobs[i], &row->knobs));
        if (list != NULL)
            printf(" (%s)", list);
    }
    printf("%s\n", row->space.acc != NULL ? " acc=fp32 (fp32,fp16)" : "");
}

static void print_kernels(void)
{
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        printf("%-12s %s%s\n", row->name, row->idea, row == fa_registry_default() ? " (default)" : "");
        print_values(row);
        print_arch(row);
    }
    printf("\nEach knob has its default and the values that a sweep tries. Where a rule of kernels/kernels.def matches "
           "the problem,\nthe rule's tile is the default instead (--list-kernels --json - prints the rules).\n"
           "--arch takes %s.\n",
           fa_arch_words());
}

static fa_status put(const fa_options *options, char *json, fa_reason *why)
{
    char *line = fa_format("%s\n", json);
    fa_status status = FA_PASS;
    if (strcmp(options->json, "-") == 0)
        fputs(line, stdout);
    else
        status = fa_write_file(options->json, line, strlen(line), why);
    free(line);
    free(json);
    return status;
}

/* A user's file, as a row of the registry: what its FA_SPACE states. */
static fa_status report_source(const fa_options *options, fa_reason *why)
{
    fa_problem problem;
    fa_spec spec;
    fa_source_space space;
    FA_TRY(fa_problem_make(options, &problem, why));
    FA_TRY(fa_spec_make(options, &problem, &spec, why));
    FA_TRY(fa_source_space_read(spec.source, &space, why));
    const fa_kernel_row row = {.name = spec.name,
                               .idea = "a file of your own",
                               .kind = FA_KIND_HAND,
                               .knobs = spec.knobs,
                               .space = space.values,
                               .traits = {.min_arch = 70}};
    if (options->json != NULL) {
        cJSON *all = cJSON_CreateArray();
        cJSON_AddItemToArray(all, kernel_json(&row, spec.source));
        return put(options, print_all(all), why);
    }
    printf("%-12s %s: %s\n", row.name, row.idea, spec.source);
    print_values(&row);
    return FA_PASS;
}

fa_status fa_report_registry(const fa_options *options, fa_reason *why)
{
    if (options->source != NULL)
        return report_source(options, why);
    if (options->json != NULL)
        return put(options, kernels_json(), why);
    print_kernels();
    return FA_PASS;
}
