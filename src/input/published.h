/* The files of --definition and --workload, parsed: which operator they are of, sizes of axes, files of tensors.
 * For definition.c and workload.c. */
#pragma once

#include <cjson/cJSON.h>

#include "base/status.h"

typedef enum { FA_PUBLISHED_DENSE, FA_PUBLISHED_RAGGED, FA_PUBLISHED_PAGED, FA_PUBLISHED_MLA } fa_published_kind;

typedef struct fa_published {
    char file[1024]; /* of the workload, without :N */
    cJSON *definition, *line;
    const cJSON *workload; /* in the line; NULL without one */
    const char *name;
    fa_published_kind kind;
    bool prefill;    /* its queries have starts of their own */
    bool head_major; /* dense tensors are [batch, heads, seq, dim], not [batch, seq, heads, dim] */
    int32_t heads, kv_heads, dim, dim_v, page_size;
} fa_published;

/* Reads both (workload: FILE[:N], NULL: none) and tells the operator. Close it whatever this returns. */
fa_status fa_published_open(const char *definition, const char *workload, fa_published *p, fa_reason *why);
void fa_published_close(fa_published *p);

/* What the definition says of an input, and what the workload says of it; NULL: nothing. */
const cJSON *fa_published_input(const fa_published *p, const char *name);
const cJSON *fa_published_source(const fa_published *p, const char *name);
/* Whether the source is of this type: "random", "scalar", "safetensors", "custom". */
bool fa_published_is(const cJSON *source, const char *type);
/* The name of Q, which the operator decides. */
const char *fa_published_q(const fa_published *p);
/* The size of a tensor along a dimension: a fixed axis, one of the workload, or an expression of these; -1: none. */
int64_t fa_published_size(const fa_published *p, const char *tensor, int at);
/* The file of a safetensors source. It is named from the root of its data set, which may be any folder above the
 * workload's file, and may itself be the first part of the name. */
fa_status fa_published_file(const fa_published *p, const cJSON *source, char *found, size_t size, fa_reason *why);

#define FA_PUBLISHED_SEQUENCES 4096
/* Where the sequences' rows begin: of Q and of K in rows, in a cache of pages in pages. */
typedef struct fa_starts {
    int32_t count;
    int64_t q[FA_PUBLISHED_SEQUENCES + 1], kv[FA_PUBLISHED_SEQUENCES + 1];
} fa_starts;
/* starts: zeroed. FA_INFEASIBLE: the definition's own Python makes them, or there are too many. */
fa_status fa_published_starts(const fa_published *p, fa_starts *starts, fa_reason *why);
/* Whether the workload brings values of Q, K or V. */
bool fa_published_has_values(const fa_published *p);
