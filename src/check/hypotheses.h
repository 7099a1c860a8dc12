/* The usual mistakes: a wrong row is recomputed as a kernel with each of them would, and the one that fits is named. */
#pragma once

#include "check/reference.h"

typedef struct fa_suspect {
    const char *mistake;         /* NULL: none explains most of the rows */
    int32_t explained, examined; /* rows */
} fa_suspect;

/* rows: `count` wrong ones, as indices into `expected`, which has the tensors. Some of them are examined: the more, the
 * less work a row is. bad: a flag for each row of `expected`. Where mistakes explain as many, right rows decide. */
fa_suspect fa_suspect_of(const fa_problem *problem, const fa_expected *expected, const uint8_t *bad,
                         const uint16_t *output, int32_t tile_m, const int64_t *rows, int32_t count);

/* The same of a log-sum-exp [rows of the problem], natural; atol and rtol: how far a fitting one may be off. NULL: none
 * explains most of the wrong rows. */
const char *fa_suspect_of_lse(const fa_problem *problem, const fa_reference *reference, const float *lse, double atol,
                              double rtol);
