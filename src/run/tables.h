/* What a launch reads beside Q, K and V: starts and lengths of sequences, page tables, sinks, slopes, a bias, a
 * tree's bits, descales. Each lies in device memory between guards. */
#pragma once

#include "device/device.h"
#include "input/layout.h"
#include "input/score_tensors.h"

enum {
    FA_START_Q,
    FA_START_KV,
    FA_USED_Q,
    FA_USED_KV,
    FA_SINKS,
    FA_SLOPES,
    FA_BIAS,
    FA_MASK,
    FA_MASK_START,
    FA_PAGES,
    FA_PAGE_START,
    FA_Q_DESCALE,
    FA_K_DESCALE,
    FA_V_DESCALE,
    FA_TABLES
};

typedef struct fa_tables {
    fa_ptr base[FA_TABLES];      /* guard, table, guard; 0: the problem does not ask for it */
    size_t room[FA_TABLES];      /* bytes between the guards */
    fa_i64 slopes_stride;        /* of batches; set by fa_tables_fill, as what follows */
    fa_i64 bias_stride[3];       /* of batches, heads and query rows, in elements; set by fa_tables_fill */
    fa_i64 descale_stride[2][2]; /* of batches and heads: of q, of k and v; set likewise */
    fa_i32 mask_keys;            /* of fa_params; set likewise */
    bool clean;                  /* 0 in place of NaN around and between what is used */
} fa_tables;

/* Room for every draw of the problem. */
fa_status fa_tables_make(fa_device *device, const fa_problem *problem, fa_tables *tables, fa_reason *why);
void fa_tables_free(fa_device *device, fa_tables *tables);
int64_t fa_tables_bytes(const fa_problem *problem); /* that fa_tables_make takes, without guards */
/* Copies the tables in. With padded strides the rows of the bias and the batches of descales have gaps; with bshd the
 * descales of a head lie together, and a mask has the bits of all keys. */
fa_status fa_tables_fill(fa_device *device, const fa_problem *problem, const fa_score_tensors *tensors,
                         fa_strides strides, fa_tables *tables, fa_reason *why);
/* FA_WRONG when a table or the memory around it has changed since. */
fa_status fa_tables_check(fa_device *device, const fa_problem *problem, const fa_score_tensors *tensors,
                          fa_strides strides, const fa_tables *tables, fa_reason *why);
/* Everything of a launch's parameters from dim_v on. */
void fa_tables_params(const fa_tables *tables, const fa_problem *problem, fa_params *params);
