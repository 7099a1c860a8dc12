#include "input/definition.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* The bytes of a tensor in a safetensors file's data, and how long a number is; false where header and file
 * disagree. */
static bool find_tensor(const cJSON *header, const char *key, size_t data_size, size_t *begin, size_t *end,
                        size_t *width)
{
    const cJSON *tensor = cJSON_GetObjectItemCaseSensitive(header, key);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "dtype"));
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets");
    const double from = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 0));
    const double to = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 1));
    if (type == NULL || (strcmp(type, "I32") != 0 && strcmp(type, "I64") != 0) || !(from >= 0 && from <= to) ||
        !(to <= (double)data_size))
        return false;
    *begin = (size_t)from;
    *end = (size_t)to;
    *width = strcmp(type, "I32") == 0 ? sizeof(int32_t) : sizeof(int64_t);
    return (*end - *begin) % *width == 0;
}

static fa_status read_tensor(const char *path, const char *data, size_t size, const char *key, int64_t most,
                             int64_t *values, int64_t *count, fa_reason *why)
{
    uint64_t header_size = 0;
    size_t begin = 0, end = 0, width = 0;
    if (size >= sizeof header_size)
        memcpy(&header_size, data, sizeof header_size);
    if (size < sizeof header_size || header_size > size - sizeof header_size)
        return fa_refuse(why, FA_USAGE, "%s is no safetensors file: its header is cut off", path);
    const size_t start = sizeof header_size + (size_t)header_size;
    cJSON *header = cJSON_ParseWithLength(data + sizeof header_size, (size_t)header_size);
    const bool found = find_tensor(header, key, size - start, &begin, &end, &width);
    cJSON_Delete(header);
    if (!found)
        return fa_refuse(why, FA_USAGE, "%s has no whole tensor '%s' of int32 or int64", path, key);
    *count = (int64_t)((end - begin) / width);
    if (*count > most)
        return fa_refuse(why, FA_USAGE, "%s: '%s' has more than %lld numbers", path, key, (long long)most);
    for (int64_t i = 0; i < *count; i++) {
        int32_t narrow;
        memcpy(&narrow, data + start + begin + (size_t)i * width, sizeof narrow);
        values[i] = narrow;
        if (width == sizeof(int64_t))
            memcpy(&values[i], data + start + begin + (size_t)i * width, sizeof values[i]);
    }
    return FA_PASS;
}

/* Reads at most `most` numbers (int32 or int64) of the tensor `key` of a safetensors file: a JSON header and raw
 * little-endian data. FA_USAGE says what is wrong with the file. */
static fa_status read_safetensors(const char *path, const char *key, int64_t most, int64_t *values, int64_t *count,
                                  fa_reason *why)
{
    char *data;
    size_t size;
    FA_TRY(fa_read_file(path, &data, &size, why));
    const fa_status status = read_tensor(path, data, size, key, most, values, count, why);
    free(data);
    return status;
}

/* The two files, parsed. */
typedef struct published {
    const char *file; /* of the workload, without :N */
    cJSON *definition, *line;
    const cJSON *workload; /* in the line; NULL without one */
    const char *name;
    bool paged, mla;
    int32_t heads, kv_heads, dim, dim_v, page_size;
} published;

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static const cJSON *input(const published *p, const char *name) { return get(get(p->definition, "inputs"), name); }

/* A whole number from 0, or -1. */
static int64_t whole(const cJSON *item)
{
    const double value = cJSON_GetNumberValue(item);
    return cJSON_IsNumber(item) && value >= 0 && value < 2147483648.0 && floor(value) == value ? (int64_t)value : -1;
}

/* The size of a tensor along a dimension; -1: not fixed, and no workload says it. */
static int64_t size_of(const published *p, const char *tensor, int at)
{
    const char *axis = cJSON_GetStringValue(cJSON_GetArrayItem(get(input(p, tensor), "shape"), at));
    if (axis == NULL)
        return -1;
    const int64_t fixed = whole(get(get(get(p->definition, "axes"), axis), "value"));
    return fixed >= 0 ? fixed : whole(get(get(p->workload, "axes"), axis));
}

static fa_status parse_file(const char *path, const char *what, cJSON **json, int32_t number, fa_reason *why)
{
    char *text;
    size_t size;
    FA_TRY(fa_read_file(path, &text, &size, why));
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

static fa_status read_workload(const char *workload, char file[1024], published *p, fa_reason *why)
{
    const int32_t number = line_number(workload, file, 1024);
    p->file = file;
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

/* Every input is one that the bench has, of a type that it has. */
static fa_status know_inputs(const published *p, const char *const known[], fa_reason *why)
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
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(known[i], "sm_scale") != 0 && !cJSON_IsArray(get(input(p, known[i]), "shape")))
            return fa_refuse(why, FA_INFEASIBLE, "%s: no input %s with a shape", p->name, known[i]);
    return FA_PASS;
}

/* Which of the operators it is, by its tensors; their sizes. */
static fa_status recognise(published *p, fa_reason *why)
{
    static const char *const paged[] = {"q", "k_cache", "v_cache", "kv_indptr", "kv_indices", "sm_scale", NULL};
    static const char *const prefill[] = {"q",         "k_cache",    "v_cache",  "qo_indptr",
                                          "kv_indptr", "kv_indices", "sm_scale", NULL};
    static const char *const ragged[] = {"q", "k", "v", "qo_indptr", "kv_indptr", "sm_scale", NULL};
    static const char *const mla[] = {"q_nope",    "q_pe",       "ckv_cache", "kpe_cache",
                                      "kv_indptr", "kv_indices", "sm_scale",  NULL};
    static const char *const mla_prefill[] = {"q_nope",    "q_pe",       "ckv_cache", "kpe_cache", "qo_indptr",
                                              "kv_indptr", "kv_indices", "sm_scale",  NULL};
    const bool queries = input(p, "qo_indptr") != NULL;
    p->mla = input(p, "ckv_cache") != NULL;
    p->paged = p->mla || input(p, "k_cache") != NULL;
    if (!p->paged && (input(p, "k") == NULL || !queries))
        return fa_refuse(why, FA_INFEASIBLE,
                         "%s: an operator that the bench does not have: it knows gqa_paged, "
                         "gqa_ragged and mla_paged",
                         p->name);
    FA_TRY(know_inputs(p,
                       p->mla      ? (queries ? mla_prefill : mla)
                       : !p->paged ? ragged
                       : queries   ? prefill
                                   : paged,
                       why));
    const char *const k = p->paged ? "k_cache" : "k", *const v = p->paged ? "v_cache" : "v";
    const int64_t rope = p->mla ? size_of(p, "q_pe", 2) : 0, nope = size_of(p, p->mla ? "q_nope" : "q", 2);
    const int64_t heads = size_of(p, p->mla ? "q_nope" : "q", 1),
                  kv_heads = p->mla ? 1 : size_of(p, k, p->paged ? 2 : 1);
    const int64_t dim_v = p->mla ? nope : size_of(p, v, p->paged ? 3 : 2);
    const int64_t page_size = p->paged ? size_of(p, p->mla ? "ckv_cache" : k, 1) : 0;
    if (heads < 1 || kv_heads < 1 || nope < 1 || rope < 0 || dim_v < 1 || page_size < 0 || rope + nope > 1 << 20)
        return fa_refuse(why, FA_INFEASIBLE, "%s: heads, dimensions and page size must be fixed axes", p->name);
    p->heads = (int32_t)heads;
    p->kv_heads = (int32_t)kv_heads;
    p->dim = (int32_t)(nope + rope);
    p->dim_v = (int32_t)dim_v;
    p->page_size = (int32_t)page_size;
    return FA_PASS;
}

/* A file of a workload is named from the root of its data set: beside the workload's file, or some folders above. */
static fa_status find_file(const published *p, const char *path, char *found, size_t size, fa_reason *why)
{
    const char *slash = strrchr(p->file, '/');
    const int folder = slash == NULL || path[0] == '/' ? 0 : (int)(slash - p->file) + 1;
    static const char *const above[] = {"", "../", "../../", "../../../"};
    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) {
        snprintf(found, size, "%.*s%s%s", folder, p->file, path[0] == '/' ? "" : above[i], path);
        if (access(found, R_OK) == 0)
            return FA_PASS;
    }
    return fa_refuse(why, FA_USAGE, "--workload: no file '%s' beside '%s' or in the three folders above", path,
                     p->file);
}

/* The lengths between the starts of an indptr. A random one is `total` rows, as evenly as can be. */
static fa_status read_indptr(const published *p, const char *name, int64_t total, int32_t count, int32_t scale,
                             int32_t *lengths, fa_reason *why)
{
    const cJSON *source = get(get(p->workload, "inputs"), name);
    const char *type = cJSON_GetStringValue(get(source, "type"));
    if (type != NULL && strcmp(type, "random") == 0 && total >= 0) {
        for (int32_t b = 0; b < count; b++)
            lengths[b] = (int32_t)(total / count + (b < total % count)) * scale;
        return FA_PASS;
    }
    const char *path = cJSON_GetStringValue(get(source, "path")),
               *key = cJSON_GetStringValue(get(source, "tensor_key"));
    if (type == NULL || strcmp(type, "safetensors") != 0 || path == NULL || key == NULL)
        return fa_refuse(why, FA_USAGE, "--workload: %s is neither random nor of a safetensors file", name);
    char file[2048];
    FA_TRY(find_file(p, path, file, sizeof file, why));
    int64_t *starts = fa_alloc(((size_t)count + 1) * sizeof *starts), found = 0;
    fa_status status = read_safetensors(file, key, (int64_t)count + 1, starts, &found, why);
    if (status == FA_PASS && found != (int64_t)count + 1)
        status = fa_refuse(why, FA_USAGE, "%s: '%s' has %lld numbers, not %d", file, key, (long long)found, count + 1);
    for (int32_t b = 0; status == FA_PASS && b < count; b++) {
        const int64_t rows = starts[b + 1] - starts[b];
        if (starts[b] < 0 || rows < 0 || rows * scale > 1048576)
            status = fa_refuse(why, FA_USAGE, "%s: '%s' does not rise from 0, or a sequence is too long", file, key);
        else
            lengths[b] = (int32_t)rows * scale;
    }
    free(starts);
    return status;
}

static fa_status read_lengths(const published *p, int32_t most, int32_t *q, int32_t *kv, int32_t *count, fa_reason *why)
{
    const bool queries = input(p, "qo_indptr") != NULL;
    const int64_t starts = size_of(p, "kv_indptr", 0);
    if (starts < 2 || starts - 1 > most)
        return fa_refuse(why, FA_INFEASIBLE, "%s: a workload of 1 to %d sequences, not %lld", p->name, most,
                         (long long)starts - 1);
    *count = (int32_t)starts - 1;
    for (int32_t b = 0; b < *count; b++)
        q[b] = 1;
    if (queries)
        FA_TRY(read_indptr(p, "qo_indptr", size_of(p, p->mla ? "q_nope" : "q", 0), *count, 1, q, why));
    else if (size_of(p, p->mla ? "q_nope" : "q", 0) != *count)
        return fa_refuse(why, FA_USAGE, "--workload: as many starts as queries, and one, not %lld", (long long)starts);
    return read_indptr(p, "kv_indptr", size_of(p, p->paged ? "kv_indices" : "k", 0), *count,
                       p->paged ? p->page_size : 1, kv, why);
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

static fa_status add_fixed(const published *p, fa_definition_words *words, fa_reason *why)
{
    const char *type = cJSON_GetStringValue(get(input(p, p->mla ? "q_nope" : "q"), "dtype"));
    const char *about = cJSON_GetStringValue(get(p->definition, "description"));
    const char *reference = cJSON_GetStringValue(get(p->definition, "reference"));
    const bool bf16 = type != NULL && strcmp(type, "bfloat16") == 0;
    if (!bf16 && (type == NULL || strcmp(type, "float16") != 0))
        return fa_refuse(why, FA_INFEASIBLE, "%s: tensors of %s, the bench has float16 and bfloat16", p->name,
                         type != NULL ? type : "no type");
    add_value(words, "--heads", p->heads);
    add_value(words, "--kv-heads", p->kv_heads);
    add_value(words, "--dim", p->dim);
    add_value(words, "--dim-v", p->dim_v);
    if (p->paged)
        add_value(words, "--page-size", p->page_size);
    add(words, "--dtype");
    add(words, bf16 ? "bf16" : "fp16");
    add(words, "--strides");
    add(words, "bshd");
    if (input(p, "qo_indptr") != NULL) {
        if (strstr(p->name, "causal") == NULL && (about == NULL || strstr(about, "causal") == NULL) &&
            (reference == NULL || strstr(reference, "causal") == NULL))
            return fa_refuse(why, FA_INFEASIBLE, "%s: it does not say that it is causal, as published ones do",
                             p->name);
        add(words, "--causal");
    }
    if (p->mla)
        add(words, "--v-in-k");
    if (get(get(p->definition, "outputs"), "lse") != NULL)
        add(words, "--lse");
    return FA_PASS;
}

enum { SEQUENCES_MOST = 4096 };

static fa_status add_sizes(const published *p, fa_definition_words *words, fa_reason *why)
{
    int32_t count = 0, *q = fa_alloc(2 * SEQUENCES_MOST * sizeof *q), *kv = q + SEQUENCES_MOST;
    const fa_status status = read_lengths(p, SEQUENCES_MOST, q, kv, &count, why);
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
    const cJSON *scale = get(get(get(p->workload, "inputs"), "sm_scale"), "value");
    if (cJSON_IsNumber(scale))
        add_value(words, "--scale", cJSON_GetNumberValue(scale));
    return status;
}

static fa_status open_files(const char *definition, const char *workload, char file[1024], published *p, fa_reason *why)
{
    FA_TRY(parse_file(definition, "--definition", &p->definition, 0, why));
    p->name = cJSON_GetStringValue(get(p->definition, "name"));
    if (p->name == NULL || !cJSON_IsObject(get(p->definition, "axes")) || !cJSON_IsObject(get(p->definition, "inputs")))
        return fa_refuse(why, FA_USAGE, "--definition: '%s' has no name, axes and inputs", definition);
    FA_TRY(recognise(p, why));
    return workload != NULL ? read_workload(workload, file, p, why) : FA_PASS;
}

static void close_files(published *p)
{
    cJSON_Delete(p->definition);
    cJSON_Delete(p->line);
}

fa_status fa_definition_read(const char *definition, const char *workload, fa_definition_words *words, fa_reason *why)
{
    char file[1024];
    published p = {.definition = NULL};
    *words = (fa_definition_words){.count = 0};
    fa_status status = open_files(definition, workload, file, &p, why);
    if (status == FA_PASS && workload != NULL)
        status = add_sizes(&p, words, why);
    if (status == FA_PASS)
        status = add_fixed(&p, words, why);
    close_files(&p);
    return status;
}

fa_status fa_definition_lengths(const char *definition, const char *workload, int32_t most, int32_t *q, int32_t *kv,
                                int32_t *count, fa_reason *why)
{
    char file[1024];
    published p = {.definition = NULL};
    fa_status status = open_files(definition, workload, file, &p, why);
    if (status == FA_PASS)
        status = read_lengths(&p, most, q, kv, count, why);
    close_files(&p);
    return status;
}
