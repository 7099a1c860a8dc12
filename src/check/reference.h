/* The expected output: FP64 attention on the CPU, and plain attention in the tensors' type on the same input. An FP8
 * tensor is its elements times their descale. */
#pragma once

#include "input/tensors.h"

typedef struct fa_place {
    int32_t batch, head, row, col;
} fa_place;
/* Of a flat row: fa_problem_row. */
fa_place fa_place_of(const fa_problem *problem, int64_t flat, int32_t col);

/* Both from the rounded inputs, for `row_count` query rows out of fa_problem_rows.
 * baseline: FP32 dot, S and normalised P rounded to the type, FP32 accumulate, output in the type; with acc fp16 (the
 * lower class, of FP16 alone) the accumulations are FP16 too. A row with scores beyond the type's largest number has
 * FP32 scores. With E4M3: scores in FP32, P times 2^8 in E4M3, its sum in FP32, output in BF16 (scores.h). */
typedef struct fa_reference {
    double unit; /* what V is a multiple of: 1, or the factor of a draw. The absolute limits of the rules are too */
    int64_t row_count;
    int64_t *rows;      /* flat, ascending */
    double *exact;      /* [row_count, dim_v] */
    uint16_t *baseline; /* [row_count, dim_v], of the type of O */
    double *lse;        /* [row_count]: log-sum-exp, natural; a sink is part of it; -inf for a row with neither */
    double *baseline_lse;
    double *sway; /* [row_count]: the part of the weights that moves when the largest score and P are rounded otherwise;
                     infinite with acc fp16 */
    /* For a diagnosis, which recomputes wrong rows: what it was made from, and the keys of the kernel's tile. NULL:
     * rows are not recomputed. */
    const fa_tensors *tensors;
    int32_t tile_n;
} fa_reference;

/* All rows while the work is small; otherwise a seeded random sample that includes first and last
 * rows of tiles of tile_m rows. Threads: all cores. */
fa_reference fa_reference_make(const fa_problem *problem, const fa_tensors *tensors, int32_t tile_m, bool acc_fp16,
                               uint64_t seed);
/* Makes it for these rows: malloc'd, ascending; the reference owns them. */
fa_reference fa_reference_of_rows(const fa_problem *problem, const fa_tensors *tensors, int64_t *rows,
                                  int64_t row_count, bool acc_fp16);
void fa_reference_free(fa_reference *reference);

/* The expected output: rows in ascending order (NULL: all of them), values [row_count, dim_v] in one of two
 * types. */
typedef struct fa_expected {
    int64_t row_count;
    const int64_t *rows;
    const double *exact;
    const float *other;
    const fa_tensors *tensors; /* that it was made from; NULL: no row is recomputed */
    int32_t tile_n;            /* keys of the kernel's tile; 0: not known */
} fa_expected;

static inline int64_t fa_expected_row(const fa_expected *expected, int64_t i)
{
    return expected->rows ? expected->rows[i] : i;
}

static inline double fa_expected_value(const fa_expected *expected, int64_t at)
{
    return expected->exact ? expected->exact[at] : (double)expected->other[at];
}
