#include "input/registry.h"

#include <stdio.h>
#include <string.h>

#define FA_DEFAULTS(...)                                                     \
    {                                                                        \
        .n = 64, .warps = 4, .vec = 8, .stages = 1, .splits = 1, __VA_ARGS__ \
    }
#define FA_TILE(rows, keys, count, depth, permuted, parts) \
    FA_DEFAULTS(.m = rows, .n = keys, .warps = count, .stages = depth, .swizzle = permuted, .splits = parts)
#define FA_SPACE(...) \
    {                 \
        __VA_ARGS__   \
    }
#define FA_TRAITS(...) \
    {                  \
        __VA_ARGS__    \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init" /* a row overrides the defaults above */
static const fa_kernel_row rows[] = {
#define FA_KERNEL(kernel, sort, about, defaults, values, marks) \
    {.name = #kernel, .idea = about, .kind = FA_KIND_##sort, .knobs = defaults, .space = values, .traits = marks},
#define FA_RULE(...)
#include "kernels/kernels.def"
#undef FA_KERNEL
#undef FA_RULE
};
#define FA_KERNEL(...)
#define FA_RULE(kernel, picked, dim, mask, fill, defaults, ...) \
    {.name = #kernel,                                           \
     .variant = #picked,                                        \
     .max_dim = dim,                                            \
     .causal = mask,                                            \
     .max_fill_percent = fill,                                  \
     .knobs = defaults,                                         \
     __VA_ARGS__},
static const fa_rule rules[] = {
#include "kernels/kernels.def"
    {.name = NULL},
};
#pragma GCC diagnostic pop

size_t fa_registry_count(void) { return sizeof rows / sizeof rows[0]; }

const fa_kernel_row *fa_registry_at(size_t index) { return &rows[index]; }

static const fa_kernel_row *row_of(const char *name)
{
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    FA_ASSERT(false, "no kernel %s", name);
}

const fa_kernel_row *fa_registry_default(bool backward, int32_t rank)
{
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (rows[i].traits.is_default == rank && rows[i].traits.backward == backward)
            return rows[i].traits.variant_of == NULL ? &rows[i] : row_of(rows[i].traits.variant_of);
    return NULL;
}

const fa_rule *fa_registry_rules(void) { return rules; }

const fa_kernel_row *fa_registry_serves(const fa_rule *rule) { return row_of(rule->variant); }

bool fa_registry_takes(const fa_rule *rule, bool fp8)
{
    bool has_variant = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const fa_traits *t = &rows[i].traits;
        has_variant |= t->fp8 && t->variant_of != NULL && strcmp(t->variant_of, rule->name) == 0;
    }
    const bool for_fp8 = fa_registry_serves(rule)->traits.fp8;
    return fp8 ? for_fp8 || !has_variant : !for_fp8;
}

/* Levenshtein distance; names are short. */
static int distance(const char *a, const char *b)
{
    int previous[64], current[64];
    const int length = (int)strnlen(b, 63);
    for (int j = 0; j <= length; j++)
        previous[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        current[0] = i;
        for (int j = 1; j <= length; j++) {
            const int change = previous[j - 1] + (a[i - 1] != b[j - 1]);
            const int grow = (previous[j] < current[j - 1] ? previous[j] : current[j - 1]) + 1;
            current[j] = change < grow ? change : grow;
        }
        memcpy(previous, current, sizeof previous);
    }
    return previous[length];
}

fa_status fa_registry_find(const char *name, const fa_kernel_row **row, fa_reason *why)
{
    int nearest = 1 << 20;
    for (size_t i = 0; i < fa_registry_count(); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *row = &rows[i];
            return FA_PASS;
        }
        const int far = distance(name, rows[i].name);
        nearest = far < nearest ? far : nearest;
    }
    char near[256] = "";
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (distance(name, rows[i].name) <= nearest + 1 && strlen(near) + strlen(rows[i].name) + 3 < sizeof near)
            snprintf(near + strlen(near), sizeof near - strlen(near), "%s%s", near[0] != '\0' ? ", " : "",
                     rows[i].name);
    return fa_refuse(why, FA_USAGE, "no kernel '%.60s'; near: %s (see --list-kernels)", name, near);
}
