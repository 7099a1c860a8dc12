/* Where an output is wrong, and the likely mistake. */
#ifndef FA_DIAGNOSE_H
#define FA_DIAGNOSE_H

#include "check/reference.h"

/* The expected output: rows in ascending order (NULL: all of them), values [row_count, dim_v] in one of two
 * types. */
typedef struct fa_expected {
    int64_t row_count;
    const int64_t *rows;
    const double *exact;
    const float *other;
} fa_expected;

static inline int64_t fa_expected_row(const fa_expected *expected, int64_t i)
{
    return expected->rows ? expected->rows[i] : i;
}

static inline double fa_expected_value(const fa_expected *expected, int64_t at)
{
    return expected->exact ? expected->exact[at] : (double)expected->other[at];
}

/* bad: one flag per row of `expected`. Appends to text[0..size): which rows, row tiles and heads are wrong, and the
 * likely mistake. */
void fa_diagnose(const fa_problem *problem, const fa_expected *expected, const uint8_t *bad, const uint16_t *output,
                 int32_t tile_m, char *text, size_t size);

#endif
