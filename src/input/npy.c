#include "input/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* descr: NumPy's name of the type. shape: what stands between the parentheses. */
static fa_status write_array(const char *folder, const char *name, const char *descr, const char *shape,
                             const void *data, size_t bytes, fa_reason *why)
{
    FA_TRY(fa_make_dirs(folder, why));
    char *path = fa_format("%s/%s.npy", folder, name);
    char *dictionary = fa_format("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    /* magic, version, 2-byte length, header padded with spaces and ended by a newline: a multiple of 64 in all. */
    const size_t header = (10 + strlen(dictionary) + 1 + 63) / 64 * 64, size = header + bytes;
    char *file = fa_alloc(size);
    memset(file, ' ', header);
    memcpy(file, magic, sizeof magic);
    file[6] = 1;
    file[7] = 0;
    file[8] = (char)((header - 10) & 0xFF);
    file[9] = (char)((header - 10) >> 8);
    memcpy(file + 10, dictionary, strlen(dictionary));
    file[header - 1] = '\n';
    memcpy(file + header, data, bytes);
    const fa_status status = fa_write_file(path, file, size, why);
    free(file);
    free(dictionary);
    free(path);
    return status;
}

fa_status fa_npy_write(const char *folder, const char *name, fa_dtype dtype, const uint16_t *data,
                       const int32_t shape[4], fa_reason *why)
{
    const size_t count = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2] * (size_t)shape[3];
    char text[64];
    snprintf(text, sizeof text, "%d, %d, %d, %d", shape[0], shape[1], shape[2], shape[3]);
    if (dtype != FA_DTYPE_E4M3)
        return write_array(folder, name, dtype == FA_DTYPE_BF16 ? "<V2" : "<f2", text, data, count * sizeof *data, why);
    uint8_t *bytes = fa_alloc(count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = data[i] == FA_POISON ? FA_POISON_E4M3 : (uint8_t)data[i];
    const fa_status status = write_array(folder, name, "|u1", text, bytes, count, why);
    free(bytes);
    return status;
}

fa_status fa_npy_write_fp32(const char *folder, const char *name, const float *data, const int32_t shape[3],
                            fa_reason *why)
{
    const size_t count = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    char text[48];
    snprintf(text, sizeof text, "%d, %d, %d", shape[0], shape[1], shape[2]);
    return write_array(folder, name, "<f4", text, data, count * sizeof *data, why);
}

static const char *const descale_names[3] = {"q_descale", "k_descale", "v_descale"};

fa_status fa_npy_write_scores(const fa_problem *problem, const char *folder, const fa_score_tensors *tensors,
                              fa_reason *why)
{
    const struct {
        const char *name;
        const float *numbers;
        int32_t rows, heads;
    } all[] = {{descale_names[0], tensors->q_descale, problem->batch, problem->heads},
               {descale_names[1], tensors->k_descale, problem->batch, problem->kv_heads},
               {descale_names[2], tensors->v_descale, problem->batch, problem->kv_heads},
               {"sinks", tensors->sinks, 0, problem->heads},
               {"slopes", tensors->slopes, problem->batch, problem->heads}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int32_t rows = all[i].rows, heads = all[i].heads;
        char shape[32];
        snprintf(shape, sizeof shape, rows > 0 ? "%d, %d" : "%d,", rows > 0 ? rows : heads, heads);
        if (all[i].numbers != NULL)
            FA_TRY(write_array(folder, all[i].name, "<f4", shape, all[i].numbers,
                               (size_t)(rows > 0 ? rows : 1) * (size_t)heads * sizeof(float), why));
    }
    const int32_t planes[4] = {tensors->bias_batch, tensors->bias_heads, problem->seq_q, problem->seq_kv};
    return tensors->bias != NULL ? fa_npy_write(folder, "bias", fa_problem_dtype_o(problem), tensors->bias, planes, why)
                                 : FA_PASS;
}

fa_status fa_npy_write_pages(const fa_pages *pages, const char *folder, fa_reason *why)
{
    const int32_t starts = pages->batch + 1, entries = pages->start[pages->batch];
    char shape[2][16];
    snprintf(shape[0], sizeof shape[0], "%d,", entries);
    snprintf(shape[1], sizeof shape[1], "%d,", starts);
    FA_TRY(
        write_array(folder, "page_table", "<i4", shape[0], pages->table, (size_t)entries * sizeof *pages->table, why));
    return write_array(folder, "page_start", "<i4", shape[1], pages->start, (size_t)starts * sizeof *pages->start, why);
}

/* The value after 'key': in the header's dictionary, NULL when it is not there. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':')
        at++;
    return at;
}

typedef struct wanted {
    fa_dtype dtype;
    bool fp32; /* descales */
    bool gaps; /* between sequences there may be poison */
    int32_t rank, shape[4];
} wanted;

static size_t width_of(const wanted *want) { return want->fp32 ? sizeof(float) : (size_t)fa_dtype_bytes(want->dtype); }

static size_t count_of(const wanted *want)
{
    size_t count = 1;
    for (int32_t i = 0; i < want->rank; i++)
        count *= (size_t)want->shape[i];
    return count;
}

/* descr: the header from the opening quote of the type on, if it has one. */
static fa_status check_type(const char *path, const char *descr, const wanted *want, fa_reason *why)
{
    static const struct {
        const char *const names[4];
        const char *words;
    } all[] = {[FA_DTYPE_FP16] = {{"'<f2'"}, "<f2 for --dtype fp16"},
               [FA_DTYPE_BF16] = {{"'<V2'", "'|V2'", "'<u2'"}, "<V2, |V2 or <u2 for --dtype bf16"},
               [FA_DTYPE_E4M3] = {{"'|u1'", "'<u1'"}, "|u1 for e4m3"},
               {{"'<f4'"}, "<f4 for descales"}};
    const int row = want->fp32 ? FA_DTYPE_E4M3 + 1 : want->dtype;
    for (const char *const *name = all[row].names; *name != NULL; name++)
        if (strncmp(descr, *name, strlen(*name)) == 0)
            return FA_PASS;
    descr += *descr == '\'';
    return fa_refuse(why, FA_USAGE, "--load: %s holds %.*s, want %s", path, (int)strcspn(descr, "'"), descr,
                     all[row].words);
}

/* at: what follows 'shape' in a header. */
static bool has_shape(const char *at, const wanted *want)
{
    bool same = *at++ == '(';
    for (int32_t i = 0; i < want->rank && same; i++) {
        int used = 0;
        long long got = -1;
        same = sscanf(at, "%lld%n", &got, &used) == 1 && got == want->shape[i];
        at += used + (same ? (int)strspn(at + used, ", ") : 0);
    }
    return same && *at == ')';
}

static fa_status check_header(const char *path, const char *header, const wanted *want, fa_reason *why)
{
    const char *type = value_of(header, "'descr'"), *fortran = value_of(header, "'fortran_order'"),
               *at = value_of(header, "'shape'");
    if (!type || !fortran || !at)
        return fa_refuse(why, FA_USAGE, "--load: %s: header without descr, fortran_order or shape", path);
    FA_TRY(check_type(path, type, want, why));
    if (strncmp(fortran, "False", 5) != 0)
        return fa_refuse(why, FA_USAGE, "--load: %s is in Fortran order, want C order", path);
    if (has_shape(at, want))
        return FA_PASS;
    char shape[64];
    int used = snprintf(shape, sizeof shape, "%d", want->shape[0]);
    for (int32_t i = 1; i < want->rank; i++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, ", %d", want->shape[i]);
    return fa_refuse(why, FA_USAGE, "--load: %s has shape %.*s, want (%s)", path, (int)strcspn(at, ")") + 1, at, shape);
}

/* Where the numbers of a file begin; all of them are there. */
static fa_status find_contents(const char *path, const char *file, size_t size, const wanted *want,
                               const char **contents, fa_reason *why)
{
    if (size < 12 || memcmp(file, magic, sizeof magic) != 0)
        return fa_refuse(why, FA_USAGE, "--load: %s is no .npy file", path);
    const unsigned char *bytes = (const unsigned char *)file;
    if (bytes[6] < 1 || bytes[6] > 3)
        return fa_refuse(why, FA_USAGE, "--load: %s is of version %d of the format, want 1 to 3", path, bytes[6]);
    const size_t start = bytes[6] == 1 ? 10 : 12, all = count_of(want) * width_of(want);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return fa_refuse(why, FA_USAGE, "--load: %s is cut off in its header", path);
    char *header = fa_format("%.*s", (int)length, file + start);
    const fa_status status = check_header(path, header, want, why);
    free(header);
    FA_TRY(status);
    if (size - start - length != all)
        return fa_refuse(why, FA_USAGE, "--load: %s has %zu bytes of data, want %zu", path, size - start - length, all);
    *contents = file + start + length;
    return FA_PASS;
}

static fa_status take_elements(const char *path, const char *contents, const wanted *want, uint16_t **data,
                               fa_reason *why)
{
    const size_t count = count_of(want);
    const bool fp8 = want->dtype == FA_DTYPE_E4M3;
    *data = fa_alloc(count * sizeof **data);
    if (!fp8)
        memcpy(*data, contents, count * sizeof **data);
    for (size_t i = 0; i < count; i++) {
        uint16_t *element = &(*data)[i];
        if (fp8)
            *element = (unsigned char)contents[i] == FA_POISON_E4M3 ? FA_POISON : (unsigned char)contents[i];
        if (!fa_element_is_finite(want->dtype, *element) && !(want->gaps && *element == FA_POISON))
            return fa_refuse(why, FA_USAGE, "--load: %s: element %zu is not finite", path, i);
    }
    return FA_PASS;
}

static fa_status take_descales(const char *path, const char *contents, const wanted *want, float **data, fa_reason *why)
{
    const size_t count = count_of(want);
    *data = fa_alloc(count * sizeof **data);
    memcpy(*data, contents, count * sizeof **data);
    for (size_t i = 0; i < count; i++)
        if (!((*data)[i] > 0.0f && isfinite((*data)[i])))
            return fa_refuse(why, FA_USAGE, "--load: %s: descale %zu is not a number above 0", path, i);
    return FA_PASS;
}

static fa_status read_shape(const char *folder, const char *name, int32_t shape[4], fa_reason *why)
{
    char *path = fa_format("%s/%s.npy", folder, name), header[1024] = "";
    FILE *file = NULL;
    fa_reason inner;
    int used = 0;
    fa_status status = fa_open_file(path, &file, &inner);
    const size_t size = status == FA_PASS ? fread(header, 1, sizeof header - 1, file) : 0;
    const char *at = size > 12 && memcmp(header, magic, sizeof magic) == 0 ? value_of(header + 12, "'shape'") : NULL;
    if (status != FA_PASS)
        status = fa_refuse(why, FA_USAGE, "--load: %s", inner.text);
    else if (at == NULL)
        status = fa_refuse(why, FA_USAGE, "--load: %s is no .npy file", path);
    else if (sscanf(at, "(%9d, %9d, %9d, %9d%n", &shape[0], &shape[1], &shape[2], &shape[3], &used) != 4 ||
             at[used + (int)strspn(at + used, ", ")] != ')')
        status = fa_refuse(why, FA_USAGE, "--load: %s has shape %.*s, want (batch, heads, seq, dim)", path,
                           (int)strcspn(at, ")") + 1, at);
    if (file != NULL)
        fclose(file);
    free(path);
    return status;
}

fa_status fa_npy_size(const char *folder, fa_options *options, fa_reason *why)
{
    int32_t q[4], k[4];
    FA_TRY(read_shape(folder, "q", q, why));
    FA_TRY(read_shape(folder, "k", k, why));
    bool fits = q[3] >= 16 && q[3] <= 256 && q[1] <= 1 << 16 && k[1] <= 1 << 16;
    for (int i = 0; i < 4; i++)
        fits &= q[i] >= 1 && k[i] >= 1 && q[i] <= 1 << 20 && k[i] <= 1 << 20;
    if (!fits)
        return fa_refuse(why, FA_USAGE,
                         "--load: q.npy has shape (%d, %d, %d, %d) and k.npy (%d, %d, %d, %d): beyond "
                         "what --batch, --heads, --seq and --dim take",
                         q[0], q[1], q[2], q[3], k[0], k[1], k[2], k[3]);
    options->batch = q[0];
    options->heads = q[1];
    options->seq = q[2];
    options->dim = q[3];
    options->kv_heads = k[1];
    options->seq_kv = k[2];
    return FA_PASS;
}

/* The numbers of a file's bytes into *elements or *descales. */
static fa_status take(const char *path, const char *file, size_t size, const wanted *want, uint16_t **elements,
                      float **descales, fa_reason *why)
{
    const char *contents = NULL;
    FA_TRY(find_contents(path, file, size, want, &contents, why));
    return want->fp32 ? take_descales(path, contents, want, descales, why)
                      : take_elements(path, contents, want, elements, why);
}

static fa_status load_one(const char *folder, const char *name, const wanted *want, uint16_t **elements,
                          float **descales, fa_reason *why)
{
    char *path = fa_format("%s/%s.npy", folder, name), *file = NULL;
    size_t size = 0;
    fa_status status = FA_USAGE;
    fa_reason inner;
    if (fa_read_file(path, &file, &size, &inner) == FA_PASS)
        status = take(path, file, size, want, elements, descales, why);
    else
        fa_refuse(why, FA_USAGE, "--load: %s", inner.text);
    free(file);
    free(path);
    return status;
}

/* Those of a tensor that has no file are 1. */
static fa_status load_descales(const fa_problem *problem, const char *folder, fa_score_tensors *tensors, fa_reason *why)
{
    float **const all[3] = {&tensors->q_descale, &tensors->k_descale, &tensors->v_descale};
    for (int i = problem->dtype == FA_DTYPE_E4M3 ? 0 : 1; i < 3 && fa_problem_has_descales(problem); i++) {
        const int32_t heads = i == 0 ? problem->heads : problem->kv_heads;
        const wanted want = {.fp32 = true, .rank = 2, .shape = {problem->batch, heads}};
        char *path = fa_format("%s/%s.npy", folder, descale_names[i]);
        const bool there = access(path, F_OK) == 0;
        free(path);
        if (there) {
            FA_TRY(load_one(folder, descale_names[i], &want, NULL, all[i], why));
            continue;
        }
        *all[i] = fa_alloc((size_t)problem->batch * (size_t)heads * sizeof **all[i]);
        for (int32_t at = 0; at < problem->batch * heads; at++)
            (*all[i])[at] = 1.0f;
    }
    return FA_PASS;
}

/* Equal tensors would hide a kernel that takes one for the other. */
static fa_status check_distinct(const fa_tensors *t, fa_reason *why)
{
    const size_t bytes = t->k_count * sizeof *t->k;
    const bool kv = t->k_count == t->v_count, qk = t->q_count == t->k_count, qv = t->q_count == t->v_count;
    const char *pair = kv && memcmp(t->k, t->v, bytes) == 0   ? "k.npy and v.npy"
                       : qk && memcmp(t->q, t->k, bytes) == 0 ? "q.npy and k.npy"
                       : qv && memcmp(t->q, t->v, bytes) == 0 ? "q.npy and v.npy"
                                                              : NULL;
    if (pair == NULL)
        return FA_PASS;
    return fa_refuse(why, FA_USAGE, "--load: %s hold the same values: a kernel that confuses them would pass", pair);
}

fa_status fa_npy_load(const fa_problem *problem, const char *folder, fa_tensors *tensors, fa_reason *why)
{
    if (problem->pages != NULL || problem->v_in_k)
        return fa_refuse(why, FA_USAGE, "--load reads dense K and V: not with --page-size or --v-in-k");
    const int32_t batch = fa_problem_stored_batch(problem), rows_kv = fa_problem_stored_kv(problem);
    const bool gaps = problem->lengths != NULL;
    const fa_dtype kv = fa_problem_dtype_kv(problem);
    const wanted q = {
        problem->dtype, false, gaps, 4, {batch, problem->heads, fa_problem_stored_q(problem), problem->dim}};
    const wanted k = {kv, false, gaps, 4, {batch, problem->kv_heads, rows_kv, problem->dim}};
    const wanted v = {kv, false, gaps, 4, {batch, problem->kv_heads, rows_kv, fa_problem_dim_v(problem)}};
    const wanted o = {problem->dtype,
                      false,
                      gaps,
                      4,
                      {batch, problem->heads, fa_problem_stored_q(problem), fa_problem_dim_v(problem)}};
    fa_tensors loaded = {.q_count = fa_problem_q_count(problem),
                         .k_count = fa_problem_k_count(problem),
                         .v_count = fa_problem_v_count(problem)};
    fa_status status = load_one(folder, "q", &q, &loaded.q, NULL, why);
    FA_THEN(status, load_one(folder, "k", &k, &loaded.k, NULL, why));
    FA_THEN(status, load_one(folder, "v", &v, &loaded.v, NULL, why));
    if (status == FA_PASS && problem->backward)
        status = load_one(folder, "dout", &o, &loaded.dout, NULL, why);
    FA_THEN(status, check_distinct(&loaded, why));
    if (status == FA_PASS) {
        fa_tensors_complete(problem, 42, &loaded);
        status = load_descales(problem, folder, &loaded.scores, why);
    }
    if (status == FA_PASS)
        *tensors = loaded;
    else
        fa_tensors_free(&loaded);
    return status;
}
