/* A linear program with few rows: minimise cost . x with rows . x = right, x >= 0. Dense simplex in a tableau. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FA_LINEAR_ROWS 8
#define FA_LINEAR_COLUMNS 512

typedef struct fa_linear {
    int32_t rows, columns;
    double right[FA_LINEAR_ROWS]; /* >= 0 */
    double cost[FA_LINEAR_COLUMNS];
    double row[FA_LINEAR_ROWS][FA_LINEAR_COLUMNS];
} fa_linear;

/* x: a value per column; price: a dual value per row, so that cost - price . rows >= 0 for every column. False when no
 * x satisfies the rows, or the search does not end. Bland's rule: no cycling. */
bool fa_linear_solve(const fa_linear *program, double x[FA_LINEAR_COLUMNS], double price[FA_LINEAR_ROWS]);
