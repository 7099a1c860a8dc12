#include "input/definition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/published.h"

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static fa_status read_lengths(const fa_published *p, int32_t *q, int32_t *kv, int32_t *count, fa_reason *why)
{
    fa_starts *s = fa_alloc(sizeof *s);
    fa_status status = fa_published_starts(p, s, why);
    *count = s->count;
    for (int32_t b = 0; status == FA_PASS && b < s->count; b++) {
        const int64_t keys = (s->kv[b + 1] - s->kv[b]) * (p->page_size > 0 ? p->page_size : 1);
        if (s->q[b + 1] - s->q[b] > 1048576 || keys > 1048576)
            status = fa_refuse(why, FA_USAGE, "--workload: sequence %d is longer than 1048576", b);
        q[b] = (int32_t)(s->q[b + 1] - s->q[b]);
        kv[b] = (int32_t)keys;
    }
    free(s);
    return status;
}

/* A literal, or a number of `words`. */
static void add(fa_definition_words *words, const char *option)
{
    words->at[words->count++] = (char *)(uintptr_t)option;
}

static void add_value(fa_definition_words *words, const char *option, double value)
{
    char *text = words->text[words->numbers++];
    add(words, option);
    snprintf(text, sizeof words->text[0], "%.9g", value);
    add(words, text);
}

/* Whether one of the definition's texts has the word, other than to say no: non-causal, is_causal=False. */
static bool is_causal(const fa_published *p)
{
    const char *const texts[] = {p->name, cJSON_GetStringValue(get(p->definition, "description")),
                                 cJSON_GetStringValue(get(p->definition, "reference"))};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (const char *at = texts[i]; at != NULL && (at = strstr(at, "causal")) != NULL; at += 6) {
            const char *value = at + 6 + strspn(at + 6, " =:");
            const bool no = at - texts[i] >= 4 && (strncmp(at - 4, "non-", 4) == 0 || strncmp(at - 4, "non_", 4) == 0 ||
                                                   strncmp(at - 4, "not ", 4) == 0);
            if (!no && strncmp(value, "False", 5) != 0)
                return true;
        }
    return false;
}

enum { FLOAT16, BFLOAT16, E4M3, TYPES };

/* The type of the tensors among these that there are: one for all. */
static fa_status type_of(const fa_published *p, const char *const *names, int *type, fa_reason *why)
{
    static const char *const types[] = {"float16", "bfloat16", "float8_e4m3fn"};
    *type = -1;
    for (; *names != NULL; names++) {
        const cJSON *tensor = fa_published_input(p, *names);
        const char *text = cJSON_GetStringValue(get(tensor, "dtype"));
        int is = 0;
        while (is < TYPES && (text == NULL || strcmp(text, types[is]) != 0))
            is++;
        if (tensor != NULL && (is == TYPES || (*type >= 0 && is != *type)))
            return fa_refuse(why, FA_INFEASIBLE, "%s: %s of %s, the bench has float16, bfloat16 and float8_e4m3fn%s",
                             p->name, *names, text != NULL ? text : "no type",
                             is < TYPES ? ", Q of one type, K and V of one" : "");
        *type = tensor != NULL ? is : *type;
    }
    return FA_PASS;
}

/* FP8: all tensors, or the cache alone. Descales are the bench's own. */
static fa_status add_types(const fa_published *p, fa_definition_words *words, fa_reason *why)
{
    static const char *const of_q[] = {"q", "q_nope", "q_pe", NULL};
    static const char *const of_kv[] = {"k", "v", "k_cache", "v_cache", "ckv_cache", "kpe_cache", NULL};
    int q, kv;
    FA_TRY(type_of(p, of_q, &q, why));
    FA_TRY(type_of(p, of_kv, &kv, why));
    if (kv != q && kv != E4M3)
        return fa_refuse(why, FA_INFEASIBLE, "%s: Q is of another type than K and V, which only FP8 may be", p->name);
    if ((q != E4M3 && fa_published_input(p, "q_scale") != NULL) ||
        (kv != E4M3 && (fa_published_input(p, "k_scale") != NULL || fa_published_input(p, "v_scale") != NULL)))
        return fa_refuse(why, FA_INFEASIBLE, "%s: q_scale, k_scale and v_scale are for float8_e4m3fn", p->name);
    if (kv == E4M3 && fa_published_has_values(p))
        return fa_refuse(why, FA_INFEASIBLE,
                         "%s: values of float8_e4m3fn from a file, which the bench does not read: random ones it has",
                         p->name);
    add(words, "--dtype");
    add(words, q == E4M3 ? "e4m3" : q == BFLOAT16 ? "bf16" : "fp16");
    add(words, "--kv-dtype");
    add(words, kv != q ? "e4m3" : "same");
    return FA_PASS;
}

/* Of the workload, or of a tag of the definition: scripts/export.sh writes one. */
static void add_scale(const fa_published *p, fa_definition_words *words)
{
    const cJSON *scale = get(fa_published_source(p, "sm_scale"), "value"), *tag;
    double value = cJSON_IsNumber(scale) ? cJSON_GetNumberValue(scale) : 0.0;
    cJSON_ArrayForEach(tag, get(p->definition, "tags")) if (value == 0.0 && cJSON_IsString(tag) &&
                                                            strncmp(tag->valuestring, "scale:", 6) == 0) value =
        strtod(tag->valuestring + 6, NULL);
    if (value != 0.0)
        add_value(words, "--scale", value);
}

static fa_status add_fixed(const fa_published *p, fa_definition_words *words, fa_reason *why)
{
    FA_TRY(add_types(p, words, why));
    add_value(words, "--heads", p->heads);
    add_value(words, "--kv-heads", p->kv_heads);
    add_value(words, "--dim", p->dim);
    add_value(words, "--dim-v", p->dim_v);
    if (p->page_size > 0)
        add_value(words, "--page-size", p->page_size);
    add(words, "--strides");
    add(words, p->head_major ? "packed" : "bshd");
    const bool causal = is_causal(p);
    if (p->prefill && !causal)
        return fa_refuse(why, FA_INFEASIBLE, "%s: it does not say that it is causal, as published ones do", p->name);
    if (causal && (p->prefill || p->kind == FA_PUBLISHED_DENSE))
        add(words, "--causal");
    if (p->kind == FA_PUBLISHED_MLA)
        add(words, "--v-in-k");
    if (get(get(p->definition, "outputs"), "lse") != NULL)
        add(words, "--lse");
    add_scale(p, words);
    return FA_PASS;
}

static fa_status add_sizes(const fa_published *p, fa_definition_words *words, fa_reason *why)
{
    int32_t count = 0, *q = fa_alloc(2 * FA_PUBLISHED_SEQUENCES * sizeof *q), *kv = q + FA_PUBLISHED_SEQUENCES;
    const fa_status status = read_lengths(p, q, kv, &count, why);
    bool alike = status == FA_PASS && q[0] > 0 && kv[0] > 0;
    for (int32_t b = 1; alike && b < count; b++)
        alike = q[b] == q[0] && kv[b] == kv[0];
    if (alike) {
        add_value(words, "--batch", count);
        add_value(words, "--seq", q[0]);
        add_value(words, "--seq-kv", kv[0]);
    } else {
        add(words, "--lengths");
        add(words, "workload");
    }
    free(q);
    return status;
}

fa_status fa_definition_read(const char *definition, const char *workload, fa_definition_words *words, fa_reason *why)
{
    fa_published p;
    *words = (fa_definition_words){.count = 0};
    fa_status status = fa_published_open(definition, workload, &p, why);
    if (status == FA_PASS && workload != NULL)
        status = add_sizes(&p, words, why);
    FA_THEN(status, add_fixed(&p, words, why));
    words->values = status == FA_PASS && fa_published_has_values(&p);
    fa_published_close(&p);
    return status;
}

fa_status fa_definition_lengths(const char *definition, const char *workload, int32_t *q, int32_t *kv, int32_t *count,
                                fa_reason *why)
{
    fa_published p;
    fa_status status = fa_published_open(definition, workload, &p, why);
    FA_THEN(status, read_lengths(&p, q, kv, count, why));
    fa_published_close(&p);
    return status;
}
