/* --lengths: sequences of unlike lengths, one behind the other in memory. */
#pragma once

#include "input/options.h"

#define FA_SEQUENCES_MOST 4096

/* Row r of sequence b is stored at start[b] + r. Rows from q[b] to the next start are a gap: nothing may read them. */
typedef struct fa_lengths {
    int32_t count;
    int32_t q[FA_SEQUENCES_MOST], kv[FA_SEQUENCES_MOST]; /* rows that count: queries, keys */
    int32_t q_start[FA_SEQUENCES_MOST + 1], kv_start[FA_SEQUENCES_MOST + 1];
} fa_lengths;

/* Reads "17,512" (queries and keys alike), "1:4096,8:300" (queries:keys), "@FILE" (one a line; blank lines and lines
 * that start with # are skipped) or "draw" (options->batch of them up to --seq and --seq-kv, from --seed). With padded
 * strides there are gaps. FA_USAGE says what is wrong. */
fa_status fa_lengths_make(const fa_options *options, fa_lengths *lengths, fa_reason *why);
/* Other lengths in the same memory: shorter sequences at the same starts, or, every second `variant`, the lengths in
 * reverse order. */
void fa_lengths_vary(const fa_lengths *asked, int32_t variant, fa_lengths *varied);

int32_t fa_lengths_largest(const int32_t *lengths, int32_t count);
/* The sequence whose room holds stored row `row`: start[result] <= row < start[result + 1]. */
int32_t fa_lengths_sequence(const int32_t *start, int32_t count, int32_t row);
