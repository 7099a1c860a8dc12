#include "report/registry.h"

#include <stdio.h>
#include <string.h>

#include "compile/paths.h"
#include "input/space.h"
#include "input/spec.h"
#include "report/fields.h"

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

/* What a kernel is for: its operator, and the type of the tensors where it takes one alone. */
static void put_purpose(cJSON *to, const fa_traits *t)
{
    cJSON_AddStringToObject(to, "op", t->backward ? "backward" : "forward");
    cJSON_AddItemToObject(to, "dtype", t->fp8 ? cJSON_CreateString("e4m3") : cJSON_CreateNull());
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
        put_purpose(one, &fa_registry_serves(rule)->traits);
        cJSON_AddNumberToObject(one, "max_dim", rule->max_dim);
        cJSON_AddItemToObject(one, "causal", rule->causal < 0 ? cJSON_CreateNull() : cJSON_CreateBool(rule->causal));
        cJSON_AddItemToObject(one, "max_fill_percent",
                              rule->max_fill_percent < 0 ? cJSON_CreateNull()
                                                         : cJSON_CreateNumber(rule->max_fill_percent));
        put_condition(one, "max_rows", rule->max_rows);
        put_condition(one, "max_seq", rule->max_seq);
        put_condition(one, "min_group", rule->min_group);
        put_condition(one, "min_keys", rule->min_keys);
        put_condition(one, "min_arch", rule->min_arch);
        put_condition(one, "max_arch", rule->max_arch);
        put_condition(one, "max_dim_v", rule->max_dim_v);
        put_condition(one, "max_seen", rule->max_seen);
        put_condition(one, "features", rule->features);
        put_condition(one, "asks", rule->asks);
        put_condition(one, "key_cost", rule->key_cost);
        put_tile(cJSON_AddObjectToObject(one, "config"), &rule->knobs);
        cJSON_AddItemToArray(all, one);
    }
}

/* A user's file: its path, and the knobs that it states, with one value or more. */
static void put_stated(cJSON *kernel, const fa_kernel_row *row, const char *source)
{
    cJSON_AddStringToObject(kernel, "source", source);
    cJSON *stated = cJSON_AddArrayToObject(kernel, "stated");
    for (size_t i = 0; i < KNOBS; i++)
        if (list_of(&knobs[i], &row->space) != NULL)
            cJSON_AddItemToArray(stated, cJSON_CreateString(knobs[i].name));
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
    cJSON_AddBoolToObject(kernel, "default", t->is_default == 1 && !t->backward);
    cJSON_AddBoolToObject(kernel, "default_backward", t->is_default == 1 && t->backward);
    put_purpose(kernel, t);
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
        put_stated(kernel, row, source);
    if (row->kind == FA_KIND_HAND)
        put_space(kernel, row);
    put_rules(kernel, row);
    return kernel;
}

/* The architectures that a row compiles for. */
static void print_arch(FILE *out, const fa_kernel_row *row)
{
    const char *suffix = row->traits.arch_specific ? "a" : " and later";
    if (row->kind == FA_KIND_HAND)
        fprintf(out, "%12s for sm_%d%s; %s\n", "", row->traits.min_arch, suffix,
                row->traits.emu_not_run ? "not emulated" : "emulated");
}

/* Each knob with its default, and the values a sweep tries. */
static void print_values(FILE *out, const fa_kernel_row *row)
{
    if (row->kind != FA_KIND_HAND)
        return;
    fprintf(out, "%12s", "");
    for (size_t i = 0; i < KNOBS - 1; i++) { /* all but maxreg */
        const char *list = list_of(&knobs[i], &row->space);
        fprintf(out, " %s=%d", knobs[i].name, value_of(&knobs[i], &row->knobs));
        if (list != NULL)
            fprintf(out, " (%s)", list);
    }
    fprintf(out, "%s\n", row->space.acc != NULL ? " acc=fp32 (fp32,fp16)" : "");
}

static void print_kernels(FILE *out)
{
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        static const char *const ranks[] = {"", " (default", " (second default", " (third default"};
        const bool marked = row->traits.is_default > 0;
        fprintf(out, "%-12s %s%s%s%s\n", row->name, row->idea, ranks[row->traits.is_default],
                marked && row->traits.backward ? " of --op backward" : "", marked ? ")" : "");
        print_values(out, row);
        print_arch(out, row);
    }
    fprintf(
        out,
        "\nEach knob has its default and the values that a sweep tries. Where a rule of kernels/kernels.def matches "
        "the problem,\nthe rule's tile is the default instead (--list-kernels --json - prints the rules). "
        "Without --kernel the first default\nwith a rule for the problem runs, or the next, if it does not serve it.\n"
        "--arch takes %s.\n",
        fa_arch_words());
}

/* A user's file, as a row of the registry: what its FA_SPACE states. */
static fa_status source_row(const fa_options *options, fa_spec *spec, fa_source_space *space, fa_kernel_row *row,
                            fa_reason *why)
{
    fa_problem problem;
    FA_TRY(fa_problem_make(options, &problem, why));
    FA_TRY(fa_spec_make(options, &problem, spec, why));
    FA_TRY(fa_source_space_read(spec->source, space, why));
    *row = (fa_kernel_row){.name = spec->name,
                           .idea = "a file of your own",
                           .kind = FA_KIND_HAND,
                           .knobs = spec->knobs,
                           .space = space->values,
                           .traits = {.min_arch = 70}};
    return FA_PASS;
}

static char *registry_json(const fa_kernel_row *own, const char *source)
{
    cJSON *all = cJSON_CreateArray();
    if (own != NULL)
        cJSON_AddItemToArray(all, kernel_json(own, source));
    for (size_t i = 0; own == NULL && i < fa_registry_count(); i++)
        cJSON_AddItemToArray(all, kernel_json(fa_registry_at(i), NULL));
    return print_array(all);
}

fa_status fa_report_registry(const fa_options *options, char **text, fa_reason *why)
{
    fa_spec spec;
    fa_source_space space;
    fa_kernel_row row, *own = options->source != NULL ? &row : NULL;
    if (own != NULL)
        FA_TRY(source_row(options, &spec, &space, &row, why));
    if (options->json != NULL) {
        *text = registry_json(own, own != NULL ? spec.source : NULL);
        return FA_PASS;
    }
    FILE *out = fa_open_text(text, NULL);
    if (own != NULL) {
        fprintf(out, "%-12s %s: %s\n", row.name, row.idea, spec.source);
        print_values(out, &row);
    } else {
        print_kernels(out);
    }
    fclose(out);
    return FA_PASS;
}
