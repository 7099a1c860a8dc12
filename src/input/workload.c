#include "input/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/published.h"
#include "input/safetensors.h"

static const cJSON *get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

/* A tensor of values, and where its columns lie in Q, K or V. */
typedef struct tensor {
    const char *name;
    bool query;
    int32_t heads, columns, width; /* of the row that the columns from `first` on are a part of */
    int32_t first;
    uint16_t *to;
} tensor;

/* Tensors of values: at most four, the rest without a name. */
static void value_tensors(const fa_published *p, const fa_tensors *t, tensor tensors[4])
{
    const bool mla = p->kind == FA_PUBLISHED_MLA, paged = p->kind == FA_PUBLISHED_PAGED;
    const int32_t rope = p->dim - p->dim_v;
    memset(tensors, 0, 4 * sizeof *tensors);
    tensors[0] = (tensor){fa_published_q(p), true, p->heads, mla ? p->dim_v : p->dim, p->dim, 0, t->q};
    tensors[1] = (tensor){
        mla ? "ckv_cache" : paged ? "k_cache" : "k", false, p->kv_heads, mla ? p->dim_v : p->dim, p->dim, 0, t->k};
    if (mla) {
        tensors[2] = (tensor){"q_pe", true, p->heads, rope, p->dim, p->dim_v, t->q};
        tensors[3] = (tensor){"kpe_cache", false, 1, rope, p->dim, p->dim_v, t->k};
    } else {
        tensors[2] = (tensor){paged ? "v_cache" : "v", false, p->kv_heads, p->dim_v, p->dim_v, 0, t->v};
    }
}

/* The file's tensor has the type and the shape that the definition states. */
static fa_status check_tensor(const fa_published *p, const char *name, const fa_safetensor *file, fa_reason *why)
{
    const cJSON *input = fa_published_input(p, name);
    const char *dtype = cJSON_GetStringValue(get(input, "dtype"));
    const char *want = dtype != NULL && strcmp(dtype, "bfloat16") == 0 ? "BF16" : "F16";
    if (strcmp(file->dtype, want) != 0)
        return fa_refuse(why, FA_USAGE, "--workload: %s is %s in its file, %s in the definition", name, file->dtype,
                         dtype != NULL ? dtype : "nothing");
    bool same = file->rank == cJSON_GetArraySize(get(input, "shape"));
    for (int i = 0; same && i < file->rank; i++)
        same = fa_published_size(p, name, i) == file->shape[i];
    return same ? FA_PASS
                : fa_refuse(why, FA_USAGE, "--workload: %s has another shape in its file than the axes say", name);
}

/* The row of the file that holds row `row` of sequence b; -1: none. pages: kv_indices, NULL where they are in order. */
static int64_t file_row(const fa_published *p, const tensor *t, const fa_starts *s, const int64_t *pages, int32_t b,
                        int32_t row)
{
    if (t->query || p->page_size == 0)
        return (t->query ? s->q[b] : s->kv[b]) + row;
    const int64_t entry = s->kv[b] + row / p->page_size;
    return (pages != NULL ? pages[entry] : entry) * p->page_size + row % p->page_size;
}

static fa_status copy_rows(const fa_published *p, const fa_problem *problem, const tensor *t, const fa_starts *s,
                           const int64_t *pages, const fa_safetensor *file, fa_reason *why)
{
    const size_t row_bytes = (size_t)t->columns * sizeof *t->to;
    const int64_t rows = (int64_t)(file->bytes / row_bytes) / t->heads;
    for (int32_t b = 0; b < s->count; b++)
        for (int32_t row = 0; row < (t->query ? fa_problem_seq_q(problem, b) : fa_problem_seq_kv(problem, b)); row++) {
            const int64_t from = file_row(p, t, s, pages, b, row);
            if (from < 0 || from >= rows)
                return fa_refuse(why, FA_USAGE, "--workload: row %d of sequence %d is row %lld of %s, which has %lld",
                                 row, b, (long long)from, t->name, (long long)rows);
            for (int32_t h = 0; h < t->heads; h++) {
                const int64_t flat =
                    t->query ? fa_problem_flat(problem, b, h, row) : fa_problem_key_row(problem, b, h, row);
                uint16_t *to = t->to + flat * t->width + t->first;
                const int64_t at = p->head_major ? (from - row) * t->heads + h * (t->query ? s->q[1] : s->kv[1]) + row
                                                 : from * t->heads + h;
                memcpy(to, file->data + (size_t)at * row_bytes, row_bytes);
                for (int32_t d = 0; d < t->columns; d++)
                    if (!fa_element_is_finite(problem->dtype, to[d]))
                        return fa_refuse(why, FA_USAGE, "--workload: %s is not finite in sequence %d, row %d", t->name,
                                         b, row);
            }
        }
    return FA_PASS;
}

static fa_status read_values(const fa_published *p, const fa_problem *problem, const tensor *t, const fa_starts *s,
                             const int64_t *pages, fa_reason *why)
{
    const cJSON *source = t->name != NULL ? fa_published_source(p, t->name) : NULL;
    const char *key = cJSON_GetStringValue(get(source, "tensor_key"));
    char path[2048];
    fa_safetensor file;
    if (!fa_published_is(source, "safetensors"))
        return FA_PASS;
    FA_TRY(fa_published_file(p, source, path, sizeof path, why));
    FA_TRY(fa_safetensors_read(path, key != NULL ? key : "", &file, why));
    fa_status status = check_tensor(p, t->name, &file, why);
    FA_THEN(status, copy_rows(p, problem, t, s, pages, &file, why));
    free(file.file);
    return status;
}

/* kv_indices; NULL: the workload has none of a file. */
static fa_status read_pages(const fa_published *p, const fa_starts *s, int64_t **pages, fa_reason *why)
{
    const cJSON *source = fa_published_source(p, "kv_indices");
    const char *key = cJSON_GetStringValue(get(source, "tensor_key"));
    char path[2048];
    int64_t found = 0;
    *pages = NULL;
    if (p->page_size == 0 || !fa_published_is(source, "safetensors"))
        return FA_PASS;
    FA_TRY(fa_published_file(p, source, path, sizeof path, why));
    const int64_t most = fa_published_size(p, "kv_indices", 0);
    *pages = fa_alloc((size_t)(most > 0 ? most : 1) * sizeof **pages);
    FA_TRY(fa_safetensors_whole(path, key != NULL ? key : "", most, *pages, &found, why));
    return found >= s->kv[s->count] ? FA_PASS
                                    : fa_refuse(why, FA_USAGE, "--workload: kv_indices has %lld pages, kv_indptr %lld",
                                                (long long)found, (long long)s->kv[s->count]);
}

/* Options beside a workload win, but then its values are of another problem. */
static bool is_of(const fa_published *p, const fa_problem *problem, const fa_starts *s)
{
    bool same = problem->heads == p->heads && problem->kv_heads == p->kv_heads && problem->dim == p->dim &&
                fa_problem_dim_v(problem) == p->dim_v && problem->batch == s->count;
    const int64_t rows = p->page_size > 0 ? p->page_size : 1;
    const char *dtype = cJSON_GetStringValue(get(fa_published_input(p, fa_published_q(p)), "dtype"));
    const bool bf16 = dtype != NULL && strcmp(dtype, "bfloat16") == 0;
    same = same && problem->dtype == (bf16 ? FA_DTYPE_BF16 : FA_DTYPE_FP16) &&
           fa_problem_dtype_kv(problem) == problem->dtype;
    for (int32_t b = 0; same && b < s->count; b++)
        same = fa_problem_seq_q(problem, b) == s->q[b + 1] - s->q[b] &&
               fa_problem_seq_kv(problem, b) == (s->kv[b + 1] - s->kv[b]) * rows;
    return same;
}

fa_status fa_workload_values(const char *definition, const char *workload, const fa_problem *problem,
                             fa_tensors *tensors, fa_reason *why)
{
    fa_published p;
    tensor t[4];
    int64_t *pages = NULL;
    fa_starts *s = fa_alloc(sizeof *s);
    fa_status status = fa_published_open(definition, workload, &p, why);
    FA_THEN(status, fa_published_starts(&p, s, why));
    if (status == FA_PASS && !is_of(&p, problem, s))
        status = fa_refuse(why, FA_USAGE,
                           "--workload has values, which an option beside it that changes the size or type of "
                           "the problem leaves without a place");
    FA_THEN(status, read_pages(&p, s, &pages, why));
    value_tensors(&p, tensors, t);
    for (int i = 0; status == FA_PASS && i < 4; i++)
        status = read_values(&p, problem, &t[i], s, pages, why);
    fa_published_close(&p);
    free(pages);
    free(s);
    if (status == FA_PASS)
        fa_tensors_take_v(problem, tensors);
    return status;
}

static double number_or(const cJSON *object, const char *key, double otherwise)
{
    return cJSON_IsNumber(get(object, key)) ? cJSON_GetNumberValue(get(object, key)) : otherwise;
}

fa_status fa_workload_tolerance(const char *definition, const char *workload, fa_tolerance *tolerance, fa_reason *why)
{
    fa_published p;
    const fa_status status = fa_published_open(definition, workload, &p, why);
    const cJSON *given = get(p.workload, "tolerance");
    const bool sol = given != NULL || (p.line != NULL && get(p.line, "workload") == NULL);
    *tolerance = (fa_tolerance){.rule = sol ? FA_TOLERANCE_SOL : FA_TOLERANCE_FLASHINFER,
                                .atol = number_or(given, "max_atol", 1e-2),
                                .rtol = number_or(given, "max_rtol", 1e-2),
                                .matched_ratio = number_or(given, "required_matched_ratio", sol ? 0.99 : 1.0),
                                .error_cap = number_or(given, "max_error_cap", INFINITY),
                                .allow_negative_inf = cJSON_IsTrue(get(given, "allow_negative_inf"))};
    fa_published_close(&p);
    return status;
}

const char *fa_tolerance_name(const fa_tolerance *tolerance)
{
    return tolerance->rule == FA_TOLERANCE_SOL ? "sol-execbench" : "flashinfer-bench";
}
