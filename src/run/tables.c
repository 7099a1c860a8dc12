#include "run/tables.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 4096, WHOLE_MASK_MOST = 1 << 26 /* bits of a sequence */ };

static const char *const names[FA_TABLES] = {"start_q",    "start_kv",  "used_q",    "used_kv",    "sinks",
                                             "slopes",     "bias",      "mask",      "mask_start", "pages",
                                             "page_start", "q_descale", "k_descale", "v_descale"};

static size_t bias_pitch(const fa_problem *problem, fa_strides strides)
{
    const size_t keys = (size_t)problem->seq_kv;
    return strides == FA_STRIDES_PADDED ? (keys + 7) / 8 * 8 + 8 : keys;
}

/* fa_params.mask_keys: the last keys, as many as queries; 0 with bshd strides, where the bits of all keys are few. */
static int32_t all_mask_keys(const fa_problem *problem, fa_strides strides)
{
    const bool whole =
        strides == FA_STRIDES_BSHD && (int64_t)problem->seq_q * (int64_t)problem->seq_kv <= WHOLE_MASK_MOST;
    return problem->tree && !whole ? problem->seq_q : 0;
}

static int32_t mask_keys(const fa_problem *problem, fa_strides strides, int32_t batch)
{
    const int32_t keys = fa_problem_seq_kv(problem, batch), most = all_mask_keys(problem, strides);
    return most > 0 && most < keys ? most : keys;
}

static size_t mask_bytes(const fa_problem *problem, fa_strides strides, int32_t batch)
{
    return ((size_t)fa_problem_seq_q(problem, batch) * (size_t)mask_keys(problem, strides, batch) + 7) / 8;
}

/* The most that a draw of the problem, whose sequences may be shorter, has where mask_keys is 0. */
static size_t whole_mask_bytes(const fa_problem *problem, int32_t batch)
{
    const int64_t bits = (int64_t)fa_problem_seq_q(problem, batch) * fa_problem_seq_kv(problem, batch);
    return (size_t)((bits < WHOLE_MASK_MOST ? bits : WHOLE_MASK_MOST) + 7) / 8;
}

static void descale_strides(const fa_problem *problem, fa_strides strides, int table, fa_i64 stride[2])
{
    const int32_t heads = table == FA_Q_DESCALE ? problem->heads : problem->kv_heads;
    const bool turned = strides == FA_STRIDES_BSHD;
    stride[0] = turned ? 1 : heads + (strides == FA_STRIDES_PADDED ? 3 : 0);
    stride[1] = turned ? problem->batch : 1;
}

static size_t room_of(const fa_problem *problem, int table)
{
    const size_t batch = (size_t)problem->batch, heads = (size_t)problem->heads;
    const size_t pitch = bias_pitch(problem, FA_STRIDES_PADDED),
                 plane = (size_t)problem->seq_q * (size_t)problem->seq_kv;
    const bool paged = problem->pages != NULL;
    size_t mask = 0;
    switch (table) {
    case FA_START_Q:
        return problem->lengths != NULL ? (batch + 1) * sizeof(fa_i32) : 0;
    case FA_START_KV:
        return problem->lengths != NULL && !paged ? (batch + 1) * sizeof(fa_i32) : 0;
    case FA_USED_Q:
        return problem->lengths != NULL ? batch * sizeof(fa_i32) : 0;
    case FA_USED_KV:
        return problem->lengths != NULL || paged ? batch * sizeof(fa_i32) : 0;
    case FA_PAGES: /* of other lengths as well: a row for each sequence holds the most */
        return paged ? ((size_t)problem->pages->row_entries + 1) * batch * sizeof(fa_i32) : 0;
    case FA_PAGE_START:
        return paged ? (batch + 1) * sizeof(fa_i32) : 0;
    case FA_SINKS:
        return problem->sinks ? heads * sizeof(fa_f32) : 0;
    case FA_SLOPES:
        return problem->alibi ? batch * heads * sizeof(fa_f32) : 0;
    case FA_Q_DESCALE:
        return problem->dtype == FA_DTYPE_E4M3 ? batch * (heads + 3) * sizeof(fa_f32) : 0;
    case FA_K_DESCALE:
    case FA_V_DESCALE:
        return fa_problem_has_descales(problem) ? batch * ((size_t)problem->kv_heads + 3) * sizeof(fa_f32) : 0;
    case FA_BIAS: /* at least one element, where there is not one key */
        return problem->bias ? (plane > 0 ? fa_score_tensors_bias_most(problem) / plane : 1) * (size_t)problem->seq_q *
                                   pitch * sizeof(uint16_t)
                             : 0;
    case FA_MASK:
        for (int32_t b = 0; problem->tree && b < problem->batch; b++)
            mask += mask_bytes(problem, FA_STRIDES_PACKED, b) + whole_mask_bytes(problem, b) + 1;
        return mask;
    default:
        return problem->tree ? batch * sizeof(fa_i64) : 0;
    }
}

int64_t fa_tables_bytes(const fa_problem *problem)
{
    size_t bytes = 0;
    for (int table = 0; table < FA_TABLES; table++)
        bytes += room_of(problem, table);
    return (int64_t)bytes;
}

fa_status fa_tables_make(fa_device *device, const fa_problem *problem, fa_tables *tables, fa_reason *why)
{
    *tables = (fa_tables){.base = {0}};
    for (int table = 0; table < FA_TABLES; table++) {
        const size_t room = tables->room[table] = (room_of(problem, table) + 1) / 2 * 2;
        if (room > 0)
            FA_TRY(device->alloc(device, room + 2 * GUARD_BYTES, &tables->base[table], why));
    }
    return FA_PASS;
}

void fa_tables_free(fa_device *device, fa_tables *tables)
{
    for (int table = 0; table < FA_TABLES; table++)
        if (tables->base[table])
            device->free(device, tables->base[table]);
    *tables = (fa_tables){.base = {0}};
}

static void put_bias(const fa_problem *problem, const fa_score_tensors *tensors, fa_strides strides, uint16_t *to)
{
    const size_t pitch = bias_pitch(problem, strides), keys = (size_t)problem->seq_kv;
    const size_t rows = (size_t)tensors->bias_batch * (size_t)tensors->bias_heads * (size_t)problem->seq_q;
    for (size_t row = 0; row < rows; row++)
        memcpy(to + row * pitch, tensors->bias + row * keys, keys * sizeof *to);
}

static void put_mask(const fa_problem *problem, fa_strides strides, int table, uint8_t *to)
{
    fa_i64 at = 0;
    for (int32_t b = 0; b < problem->batch; b++) {
        const int32_t rows = fa_problem_seq_q(problem, b), keys = mask_keys(problem, strides, b);
        const int32_t first = fa_problem_seq_kv(problem, b) - keys;
        uint8_t *bits = to + at;
        if (table == FA_MASK_START)
            memcpy(to + (size_t)b * sizeof at, &at, sizeof at);
        else
            memset(bits, 0, mask_bytes(problem, strides, b));
        for (int32_t row = 0; table == FA_MASK && row < rows; row++)
            for (int32_t j = 0; j < keys; j++) {
                const int64_t bit = (int64_t)row * keys + j;
                bits[bit / 8] |= (uint8_t)(fa_problem_sees(problem, b, row, first + j) << bit % 8);
            }
        at += (fa_i64)mask_bytes(problem, strides, b) + 1; /* so that they begin at any byte */
    }
}

/* Entries that no sequence uses name a page that is not there. */
static void put_pages(const fa_tables *tables, const fa_problem *problem, int32_t *to)
{
    const fa_pages *pages = problem->pages;
    for (size_t i = 0; i < tables->room[FA_PAGES] / sizeof *to; i++)
        to[i] = FA_PAGE_UNUSED;
    for (int32_t b = 0; b < problem->batch; b++) {
        const int32_t first = pages->start[b], entries = pages->start[b + 1] - first;
        memcpy(to + (pages->compressed ? first : b * pages->row_entries), pages->table + first,
               (size_t)entries * sizeof *to);
    }
}

static void put_descales(const fa_problem *problem, const fa_score_tensors *tensors, fa_strides strides, int table,
                         float *to)
{
    const int32_t heads = table == FA_Q_DESCALE ? problem->heads : problem->kv_heads;
    const float *from = table == FA_Q_DESCALE   ? tensors->q_descale
                        : table == FA_K_DESCALE ? tensors->k_descale
                                                : tensors->v_descale;
    fa_i64 stride[2];
    descale_strides(problem, strides, table, stride);
    for (int32_t b = 0; b < problem->batch; b++)
        for (int32_t h = 0; h < heads; h++)
            to[b * stride[0] + h * stride[1]] = from[(fa_i64)b * heads + h];
}

/* A table whose values are there already, and how many of 4 bytes they are. */
static const void *values_of(const fa_problem *problem, const fa_score_tensors *tensors, int table, size_t *count)
{
    const fa_lengths *lengths = problem->lengths;
    const size_t batch = (size_t)problem->batch;
    const size_t heads = (size_t)problem->heads;
    *count = table == FA_SINKS                           ? heads
             : table == FA_SLOPES                        ? heads * (tensors->one_row_of_slopes ? 1 : batch)
             : table == FA_USED_Q || table == FA_USED_KV ? batch
                                                         : batch + 1;
    return table == FA_START_Q    ? lengths->q_start
           : table == FA_START_KV ? lengths->kv_start
           : table == FA_USED_Q   ? lengths->q
           : table == FA_USED_KV  ? (lengths != NULL ? lengths->kv : NULL)
           : table == FA_SINKS    ? (const void *)tensors->sinks
           : table == FA_SLOPES   ? (const void *)tensors->slopes
                                  : (const void *)problem->pages->start;
}

/* Guard, table, guard as they lie in memory; malloc'd. What a draw leaves over is poison. */
static uint8_t *image_of(const fa_tables *tables, const fa_problem *problem, const fa_score_tensors *tensors,
                         fa_strides strides, int table)
{
    uint8_t *image = fa_alloc(tables->room[table] + 2 * GUARD_BYTES), *to = image + GUARD_BYTES;
    const size_t halves = tables->room[table] / 2 + GUARD_BYTES;
    uint16_t *half = (uint16_t *)(void *)image;
    memset(image, 0xFF, tables->room[table] + 2 * GUARD_BYTES);
    if (table == FA_BIAS) {
        put_bias(problem, tensors, strides, (uint16_t *)(void *)to);
    } else if (table == FA_MASK || table == FA_MASK_START) {
        put_mask(problem, strides, table, to);
    } else if (table == FA_PAGES) {
        put_pages(tables, problem, (int32_t *)(void *)to);
    } else if (table >= FA_Q_DESCALE) {
        put_descales(problem, tensors, strides, table, (float *)(void *)to);
    } else {
        size_t count;
        const void *values = values_of(problem, tensors, table, &count);
        int32_t *words = (int32_t *)(void *)to;
        for (size_t b = 0; values == NULL && b < count; b++) /* pages of sequences that are alike */
            words[b] = problem->seq_kv;
        if (values != NULL)
            memcpy(to, values, count * 4);
    }
    const bool real = table == FA_SINKS || table == FA_SLOPES || table == FA_BIAS || table >= FA_Q_DESCALE;
    for (size_t i = 0; tables->clean && real && i < halves; i++)
        half[i] = half[i] == FA_POISON ? 0 : half[i];
    return image;
}

fa_status fa_tables_fill(fa_device *device, const fa_problem *problem, const fa_score_tensors *tensors,
                         fa_strides strides, fa_tables *tables, fa_reason *why)
{
    for (int table = 0; table < FA_TABLES; table++) {
        if (!tables->base[table])
            continue;
        uint8_t *image = image_of(tables, problem, tensors, strides, table);
        const fa_status status =
            device->copy_in(device, tables->base[table], image, tables->room[table] + 2 * GUARD_BYTES, why);
        free(image);
        FA_TRY(status);
    }
    const fa_i64 row = (fa_i64)bias_pitch(problem, strides), head = row * problem->seq_q;
    tables->bias_stride[0] = tensors->bias_batch > 1 ? head * tensors->bias_heads : 0;
    tables->bias_stride[1] = tensors->bias_heads > 1 ? head : 0;
    tables->bias_stride[2] = row;
    tables->slopes_stride = tensors->one_row_of_slopes ? 0 : problem->heads;
    tables->mask_keys = all_mask_keys(problem, strides);
    if (tables->base[FA_Q_DESCALE])
        descale_strides(problem, strides, FA_Q_DESCALE, tables->descale_stride[0]);
    if (tables->base[FA_K_DESCALE])
        descale_strides(problem, strides, FA_K_DESCALE, tables->descale_stride[1]);
    return FA_PASS;
}

fa_status fa_tables_check(fa_device *device, const fa_problem *problem, const fa_score_tensors *tensors,
                          fa_strides strides, const fa_tables *tables, fa_reason *why)
{
    for (int table = 0; table < FA_TABLES; table++) {
        if (!tables->base[table])
            continue;
        const size_t bytes = tables->room[table] + 2 * GUARD_BYTES;
        uint8_t *want = image_of(tables, problem, tensors, strides, table), *got = fa_alloc(bytes);
        fa_status status = device->copy_out(device, got, tables->base[table], bytes, why);
        size_t i = 0;
        while (status == FA_PASS && i < bytes && got[i] == want[i])
            i++;
        if (status == FA_PASS && i < bytes)
            status = fa_refuse(why, FA_WRONG, "input %s was overwritten: byte %lld of %zu was 0x%02x and is 0x%02x",
                               names[table], (long long)i - GUARD_BYTES, tables->room[table], want[i], got[i]);
        free(want);
        free(got);
        FA_TRY(status);
    }
    return FA_PASS;
}

static const void *at(const fa_tables *tables, int table)
{
    return tables->base[table] ? (const void *)(uintptr_t)(tables->base[table] + GUARD_BYTES) : NULL;
}

void fa_tables_params(const fa_tables *tables, const fa_problem *problem, fa_params *params)
{
    const fa_pages *pages = problem->pages;
    params->dim_v = fa_problem_dim_v(problem);
    params->dtype_kv = fa_problem_dtype_kv(problem);
    params->dtype_o = fa_problem_dtype_o(problem);
    params->window_left = problem->windowed ? problem->window_left : -1;
    params->window_right = problem->causal ? 0 : problem->windowed ? problem->window_right : -1;
    params->chunk = problem->chunk;
    params->start_q = at(tables, FA_START_Q);
    params->start_kv = at(tables, FA_START_KV);
    params->used_q = at(tables, FA_USED_Q);
    params->used_kv = at(tables, FA_USED_KV);
    params->total_q = fa_problem_stored_q(problem);
    params->total_kv = (fa_i64)fa_problem_stored_kv(problem) * (pages != NULL ? pages->count : 1);
    if (pages != NULL) {
        params->page_size = pages->size;
        params->pages = at(tables, FA_PAGES);
        params->page_start = pages->compressed ? at(tables, FA_PAGE_START) : NULL;
        params->pages_stride = pages->compressed ? 0 : pages->row_entries;
        params->num_pages = pages->count;
    }
    params->softcap = problem->softcap;
    params->sinks = at(tables, FA_SINKS);
    params->slopes = at(tables, FA_SLOPES);
    params->slopes_stride_b = tables->slopes_stride;
    params->bias = at(tables, FA_BIAS);
    params->bias_stride_b = tables->bias_stride[0];
    params->bias_stride_h = tables->bias_stride[1];
    params->bias_stride_q = tables->bias_stride[2];
    params->mask = at(tables, FA_MASK);
    params->mask_start = at(tables, FA_MASK_START);
    params->mask_keys = tables->mask_keys;
    params->q_descale = at(tables, FA_Q_DESCALE);
    params->k_descale = at(tables, FA_K_DESCALE);
    params->v_descale = at(tables, FA_V_DESCALE);
    params->q_descale_stride_b = tables->descale_stride[0][0];
    params->q_descale_stride_h = tables->descale_stride[0][1];
    params->kv_descale_stride_b = tables->descale_stride[1][0];
    params->kv_descale_stride_h = tables->descale_stride[1][1];
}
