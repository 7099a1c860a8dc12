#include "input/published.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "input/safetensors.h"

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

const cJSON *fa_published_input(const fa_published *p, const char *name)
{
    return get(get(p->definition, "inputs"), name);
}

const cJSON *fa_published_source(const fa_published *p, const char *name)
{
    return get(get(p->workload, "inputs"), name);
}

bool fa_published_is(const cJSON *source, const char *type)
{
    const char *is = cJSON_GetStringValue(get(source, "type"));
    return is != NULL && strcmp(is, type) == 0;
}

const char *fa_published_q(const fa_published *p) { return p->kind == FA_PUBLISHED_MLA ? "q_nope" : "q"; }

static bool is_whole(double value) { return value >= 0 && value < 2147483648.0 && floor(value) == value; }

/* An axis that is computed from others: + - * / // % ** and parentheses, as Python has them. */
typedef struct expression {
    const fa_published *p;
    const char *at;
    int depth; /* of axes within axes, and of parentheses */
    bool bad;
} expression;

static double axis_value(const fa_published *p, const char *name, int depth);
static double sum(expression *e);

static bool take(expression *e, const char *token)
{
    e->at += strspn(e->at, " ");
    const size_t length = strlen(token);
    if (strncmp(e->at, token, length) != 0 || (length == 1 && *token == '*' && e->at[1] == '*'))
        return false;
    e->at += length;
    return true;
}

static double atom(expression *e)
{
    char name[128];
    if (e->depth > 16) {
        e->bad = true;
        return NAN;
    }
    if (take(e, "(")) {
        e->depth++;
        const double value = sum(e);
        e->depth--;
        e->bad |= !take(e, ")");
        return value;
    }
    e->at += strspn(e->at, " ");
    if (isdigit((unsigned char)*e->at)) {
        char *end;
        const double value = strtod(e->at, &end);
        e->at = end;
        return value;
    }
    int length = 0;
    while (isalnum((unsigned char)e->at[length]) || e->at[length] == '_')
        length++;
    e->bad |= length == 0;
    snprintf(name, sizeof name, "%.*s", length, e->at);
    e->at += length;
    return axis_value(e->p, name, e->depth + 1);
}

static double power(expression *e)
{
    if (take(e, "-")) {
        e->depth++;
        const double value = e->depth > 16 ? NAN : power(e);
        e->depth--;
        return -value;
    }
    const double base = atom(e);
    if (!take(e, "**"))
        return base;
    e->depth++;
    const double value = e->depth > 16 ? NAN : pow(base, power(e));
    e->depth--;
    return value;
}

static double product(expression *e)
{
    double value = power(e);
    for (;;) {
        if (take(e, "*")) {
            value *= power(e);
        } else if (take(e, "//")) {
            value = floor(value / power(e));
        } else if (take(e, "/")) {
            value /= power(e);
        } else if (take(e, "%")) {
            const double by = power(e);
            value -= by * floor(value / by);
        } else {
            return value;
        }
    }
}

static double sum(expression *e)
{
    double value = product(e);
    for (;;) {
        if (take(e, "+"))
            value += product(e);
        else if (take(e, "-"))
            value -= product(e);
        else
            return value;
    }
}

/* NAN: not fixed, and no workload says it. */
static double axis_value(const fa_published *p, const char *name, int depth)
{
    const cJSON *axis = get(get(p->definition, "axes"), name);
    const char *text = cJSON_GetStringValue(get(axis, "expression"));
    const cJSON *number = get(axis, "value") != NULL ? get(axis, "value") : get(get(p->workload, "axes"), name);
    if (text == NULL || depth > 16)
        return cJSON_GetNumberValue(number);
    expression e = {.p = p, .at = text, .depth = depth};
    const double value = sum(&e);
    return e.bad || e.at[strspn(e.at, " ")] != '\0' ? NAN : value;
}

int64_t fa_published_size(const fa_published *p, const char *tensor, int at)
{
    const char *axis = cJSON_GetStringValue(cJSON_GetArrayItem(get(fa_published_input(p, tensor), "shape"), at));
    const double value = axis != NULL ? axis_value(p, axis, 0) : NAN;
    return is_whole(value) ? (int64_t)value : -1;
}

static fa_status parse_file(const char *path, const char *what, cJSON **json, int32_t number, fa_reason *why)
{
    char *text;
    size_t size;
    fa_reason bare;
    if (fa_read_file(path, &text, &size, &bare) != FA_PASS)
        return fa_refuse(why, FA_USAGE, "%s: %.3000s", what, bare.text);
    const char *at = text, *end = text + size;
    *json = number == 0 ? cJSON_ParseWithLength(text, size) : NULL;
    for (int32_t line = 1; number > 0 && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        if (line == number)
            *json = cJSON_ParseWithLength(at, (size_t)(stop - at));
        at = stop + 1;
    }
    if (number == 1 && *json == NULL) /* one value over several lines */
        *json = cJSON_ParseWithLength(text, size);
    free(text);
    if (cJSON_IsObject(*json))
        return FA_PASS;
    return number > 0 ? fa_refuse(why, FA_USAGE, "%s: '%s' has no JSON object in line %d", what, path, number)
                      : fa_refuse(why, FA_USAGE, "%s: '%s' is no JSON object", what, path);
}

/* FILE or FILE:N; a file of that whole name comes first. */
static int32_t line_number(const char *workload, char *file, size_t size)
{
    const char *colon = strrchr(workload, ':');
    const size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    const bool numbered = digits > 0 && digits < 9 && colon[1 + digits] == '\0' && access(workload, F_OK) != 0;
    snprintf(file, size, "%.*s", numbered ? (int)(colon - workload) : (int)strlen(workload), workload);
    return numbered ? atoi(colon + 1) : 1;
}

static fa_status read_workload(const char *workload, fa_published *p, fa_reason *why)
{
    const int32_t number = line_number(workload, p->file, sizeof p->file);
    const char *file = p->file;
    if (number < 1)
        return fa_refuse(why, FA_USAGE, "--workload takes FILE or FILE:N, N from 1, not '%s'", workload);
    FA_TRY(parse_file(file, "--workload", &p->line, number, why));
    p->workload = get(p->line, "workload");
    p->workload = p->workload != NULL ? p->workload : p->line;
    const char *of = cJSON_GetStringValue(get(p->line, "definition"));
    if (!cJSON_IsObject(get(p->workload, "axes")) || !cJSON_IsObject(get(p->workload, "inputs")))
        return fa_refuse(why, FA_USAGE, "--workload: line %d of '%s' has no axes and inputs", number, file);
    if (of != NULL && strcmp(of, p->name) != 0)
        return fa_refuse(why, FA_USAGE, "--workload: line %d of '%s' is of %s, the definition is %s", number, file, of,
                         p->name);
    return FA_PASS;
}

/* Every input is one that the bench has; those before the scale must be there. */
static fa_status know_inputs(const fa_published *p, const char *const known[], fa_reason *why)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, get(p->definition, "inputs"))
    {
        int i = 0;
        while (known[i] != NULL && strcmp(known[i], each->string) != 0)
            i++;
        if (known[i] == NULL)
            return fa_refuse(why, FA_INFEASIBLE, "%s: the bench cannot say its input %s", p->name, each->string);
    }
    for (int i = 0; strcmp(known[i], "sm_scale") != 0; i++)
        if (!cJSON_IsArray(get(fa_published_input(p, known[i]), "shape")))
            return fa_refuse(why, FA_INFEASIBLE, "%s: no input %s with a shape", p->name, known[i]);
    return FA_PASS;
}

/* Whether Q's heads come before its rows: their axis has such a name, or is fixed where the other is not. */
static bool is_head_major(const fa_published *p)
{
    const cJSON *shape = get(fa_published_input(p, "q"), "shape"), *axes = get(p->definition, "axes");
    bool named[2], fixed[2];
    for (int i = 0; i < 2; i++) {
        const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(shape, i + 1));
        named[i] = name != NULL && (tolower((unsigned char)*name) == 'h' || strstr(name, "head") != NULL);
        fixed[i] = name != NULL && get(get(axes, name), "value") != NULL;
    }
    return named[0] != named[1] ? named[0] : fixed[0] && !fixed[1];
}

/* Which of the operators it is, by its tensors. */
static fa_status recognise(fa_published *p, fa_reason *why)
{
    static const char *const dense[] = {"q", "k", "v", "sm_scale", "q_scale", "k_scale", "v_scale", NULL};
    static const char *const ragged[] = {"q",        "k",       "v",       "qo_indptr", "kv_indptr",
                                         "sm_scale", "q_scale", "k_scale", "v_scale",   NULL};
    static const char *const paged[] = {"q",         "k_cache", "v_cache", "kv_indptr", "kv_indices", "sm_scale",
                                        "qo_indptr", "q_scale", "k_scale", "v_scale",   NULL};
    static const char *const mla[] = {"q_nope",     "q_pe",     "ckv_cache", "kpe_cache", "kv_indptr",
                                      "kv_indices", "sm_scale", "qo_indptr", "k_scale",   NULL};
    const bool k = fa_published_input(p, "k") != NULL;
    const int rank = cJSON_GetArraySize(get(fa_published_input(p, "q"), "shape"));
    p->prefill = fa_published_input(p, "qo_indptr") != NULL;
    p->kind = fa_published_input(p, "ckv_cache") != NULL ? FA_PUBLISHED_MLA
              : fa_published_input(p, "k_cache") != NULL ? FA_PUBLISHED_PAGED
              : k && !p->prefill && rank == 4            ? FA_PUBLISHED_DENSE
                                                         : FA_PUBLISHED_RAGGED;
    p->head_major = p->kind == FA_PUBLISHED_DENSE && is_head_major(p);
    if (p->kind == FA_PUBLISHED_RAGGED && (!k || !p->prefill))
        return fa_refuse(why, FA_INFEASIBLE,
                         "%s: an operator that the bench does not have: it knows gqa_paged, gqa_ragged, mla_paged, and "
                         "q, k, v of four dimensions",
                         p->name);
    const char *const *const known[] = {dense, ragged, paged, mla};
    return know_inputs(p, known[p->kind], why);
}

static fa_status read_sizes(fa_published *p, fa_reason *why)
{
    const bool mla = p->kind == FA_PUBLISHED_MLA, paged = p->kind >= FA_PUBLISHED_PAGED;
    const char *const q = fa_published_q(p), *const k = paged ? "k_cache" : "k", *const v = paged ? "v_cache" : "v";
    const int last = p->kind == FA_PUBLISHED_DENSE ? 3 : 2, at = last - 1 - p->head_major; /* of Q's dim and heads */
    const int64_t rope = mla ? fa_published_size(p, "q_pe", 2) : 0, nope = fa_published_size(p, q, last);
    const int64_t heads = fa_published_size(p, q, at);
    const int64_t kv_heads = mla ? 1 : fa_published_size(p, k, paged ? 2 : at);
    const int64_t dim_v = mla ? nope : fa_published_size(p, v, paged ? 3 : last);
    const int64_t page_size = paged ? fa_published_size(p, mla ? "ckv_cache" : k, 1) : 0;
    if (heads < 1 || kv_heads < 1 || nope < 1 || rope < 0 || dim_v < 1 || page_size < 0 || rope + nope > 1 << 20)
        return fa_refuse(why, FA_INFEASIBLE, "%s: heads, dimensions and page size must be fixed axes", p->name);
    p->heads = (int32_t)heads;
    p->kv_heads = (int32_t)kv_heads;
    p->dim = (int32_t)(nope + rope);
    p->dim_v = (int32_t)dim_v;
    p->page_size = (int32_t)page_size;
    return FA_PASS;
}

fa_status fa_published_file(const fa_published *p, const cJSON *source, char *found, size_t size, fa_reason *why)
{
    const char *path = cJSON_GetStringValue(get(source, "path")), *slash = strrchr(p->file, '/');
    if (path == NULL)
        return fa_refuse(why, FA_USAGE, "--workload: a safetensors input of '%s' has no path", p->file);
    const bool whole = path[0] == '/';
    const int folder = slash == NULL || whole ? 0 : (int)(slash - p->file) + 1;
    for (int above = 0; above <= (whole ? 0 : 6); above++)
        for (const char *rest = path; rest != NULL; rest = whole ? NULL : strchr(rest, '/')) {
            rest += !whole && *rest == '/';
            snprintf(found, size, "%.*s%.*s%s", folder, p->file, 3 * above, "../../../../../../", rest);
            if (access(found, R_OK) == 0)
                return FA_PASS;
        }
    return fa_refuse(why, FA_USAGE, "--workload: no file '%s' beside '%s' or in the six folders above", path, p->file);
}

/* The starts of an indptr: count + 1 of them. A random one is `total` rows, as evenly as can be. */
static fa_status read_indptr(const fa_published *p, const char *name, int64_t total, int32_t count, int64_t *starts,
                             fa_reason *why)
{
    const cJSON *source = fa_published_source(p, name);
    if (fa_published_is(source, "custom"))
        return fa_refuse(why, FA_INFEASIBLE, "%s: the definition's own Python makes %s, which the bench cannot run",
                         p->name, name);
    if (fa_published_is(source, "random") && total >= 0) {
        for (int32_t b = 0; b < count; b++)
            starts[b + 1] = starts[b] + total / count + (b < total % count);
        return FA_PASS;
    }
    const char *key = cJSON_GetStringValue(get(source, "tensor_key"));
    if (!fa_published_is(source, "safetensors") || key == NULL)
        return fa_refuse(why, FA_USAGE, "--workload: %s is neither random nor of a safetensors file", name);
    char file[2048];
    int64_t found = 0;
    FA_TRY(fa_published_file(p, source, file, sizeof file, why));
    FA_TRY(fa_safetensors_whole(file, key, (int64_t)count + 1, starts, &found, why));
    if (found != (int64_t)count + 1)
        return fa_refuse(why, FA_USAGE, "%s: '%s' has %lld numbers, not %d", file, key, (long long)found, count + 1);
    for (int32_t b = 0; b < count; b++)
        if (starts[b] < 0 || starts[b + 1] < starts[b])
            return fa_refuse(why, FA_USAGE, "%s: '%s' does not rise from 0", file, key);
    return FA_PASS;
}

static fa_status read_dense(const fa_published *p, fa_starts *s, fa_reason *why)
{
    const int64_t batch = fa_published_size(p, "q", 0), q = fa_published_size(p, "q", 1 + p->head_major),
                  kv = fa_published_size(p, "k", 1 + p->head_major);
    if (batch < 1 || batch > FA_PUBLISHED_SEQUENCES || q < 1 || kv < 1)
        return fa_refuse(why, FA_USAGE, "--workload: the axes of %s do not say 1 to %d batches, and lengths", p->name,
                         FA_PUBLISHED_SEQUENCES);
    s->count = (int32_t)batch;
    for (int32_t b = 0; b < s->count; b++) {
        s->q[b + 1] = s->q[b] + q;
        s->kv[b + 1] = s->kv[b] + kv;
    }
    return FA_PASS;
}

fa_status fa_published_starts(const fa_published *p, fa_starts *s, fa_reason *why)
{
    if (p->kind == FA_PUBLISHED_DENSE)
        return read_dense(p, s, why);
    const int64_t count = fa_published_size(p, "kv_indptr", 0), queries = fa_published_size(p, fa_published_q(p), 0);
    if (count < 2 || count - 1 > FA_PUBLISHED_SEQUENCES)
        return fa_refuse(why, FA_INFEASIBLE, "%s: a workload of 1 to %d sequences, not %lld", p->name,
                         FA_PUBLISHED_SEQUENCES, (long long)count - 1);
    s->count = (int32_t)count - 1;
    for (int32_t b = 0; b < s->count; b++)
        s->q[b + 1] = b + 1;
    if (p->prefill)
        FA_TRY(read_indptr(p, "qo_indptr", queries, s->count, s->q, why));
    else if (queries != s->count)
        return fa_refuse(why, FA_USAGE, "--workload: as many starts as queries, and one, not %lld", (long long)count);
    return read_indptr(p, "kv_indptr", fa_published_size(p, p->kind == FA_PUBLISHED_RAGGED ? "k" : "kv_indices", 0),
                       s->count, s->kv, why);
}

bool fa_published_has_values(const fa_published *p)
{
    static const char *const names[] = {"q",         "q_nope",    "q_pe", "k",      "k_cache",
                                        "ckv_cache", "kpe_cache", "v",    "v_cache"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        any |= fa_published_is(fa_published_source(p, names[i]), "safetensors");
    return any;
}

fa_status fa_published_open(const char *definition, const char *workload, fa_published *p, fa_reason *why)
{
    *p = (fa_published){.definition = NULL};
    FA_TRY(parse_file(definition, "--definition", &p->definition, 0, why));
    p->name = cJSON_GetStringValue(get(p->definition, "name"));
    if (p->name == NULL || !cJSON_IsObject(get(p->definition, "axes")) || !cJSON_IsObject(get(p->definition, "inputs")))
        return fa_refuse(why, FA_USAGE, "--definition: '%s' has no name, axes and inputs", definition);
    FA_TRY(recognise(p, why));
    if (workload != NULL)
        FA_TRY(read_workload(workload, p, why));
    return read_sizes(p, why);
}

void fa_published_close(fa_published *p)
{
    cJSON_Delete(p->definition);
    cJSON_Delete(p->line);
}
