#include "timing/linear.h"

#include <math.h>
#include <string.h>

#define STEPS_MAX 2000
#define TINY 1e-11
#define ARTIFICIAL 1e6 /* cost of breaking a row, far above any real one (callers scale to about 1) */

/* Columns of the program, then one artificial column per row, then the right side. */
typedef struct tableau {
    int32_t rows, columns;
    double at[FA_LINEAR_ROWS + 1][FA_LINEAR_COLUMNS + FA_LINEAR_ROWS + 1]; /* last row: reduced costs */
    int32_t basis[FA_LINEAR_ROWS];
} tableau;

static void pivot(tableau *t, int32_t row, int32_t column)
{
    const double by = t->at[row][column];
    for (int32_t j = 0; j <= t->columns; j++)
        t->at[row][j] /= by;
    for (int32_t i = 0; i <= t->rows; i++) {
        const double times = t->at[i][column];
        if (i == row || fabs(times) < TINY)
            continue;
        for (int32_t j = 0; j <= t->columns; j++)
            t->at[i][j] -= times * t->at[row][j];
    }
    t->basis[row] = column;
}

/* The row whose basic variable reaches zero first when `column` grows, or -1. */
static int32_t leaving(const tableau *t, int32_t column)
{
    int32_t best = -1;
    for (int32_t i = 0; i < t->rows; i++) {
        if (t->at[i][column] <= 1e-9)
            continue;
        const double ratio = t->at[i][t->columns] / t->at[i][column];
        const double least = best < 0 ? INFINITY : t->at[best][t->columns] / t->at[best][column];
        if (ratio < least - TINY || (ratio <= least + TINY && best >= 0 && t->basis[i] < t->basis[best]))
            best = i;
    }
    return best;
}

static void fill(tableau *t, const fa_linear *program)
{
    memset(t, 0, sizeof *t);
    t->rows = program->rows;
    t->columns = program->columns + program->rows;
    for (int32_t j = 0; j < program->columns; j++)
        t->at[t->rows][j] = program->cost[j];
    for (int32_t i = 0; i < t->rows; i++) {
        for (int32_t j = 0; j < program->columns; j++) {
            t->at[i][j] = program->row[i][j];
            t->at[t->rows][j] -= ARTIFICIAL * program->row[i][j];
        }
        t->at[i][program->columns + i] = 1;
        t->at[i][t->columns] = program->right[i];
        t->at[t->rows][t->columns] -= ARTIFICIAL * program->right[i];
        t->basis[i] = program->columns + i;
    }
}

bool fa_linear_solve(const fa_linear *program, double x[FA_LINEAR_COLUMNS], double price[FA_LINEAR_ROWS])
{
    static _Thread_local tableau t;
    fill(&t, program);
    for (int step = 0;; step++) {
        int32_t column = 0;
        while (column < program->columns && t.at[t.rows][column] >= -1e-9)
            column++;
        if (column == program->columns)
            break;
        const int32_t row = leaving(&t, column);
        if (row < 0 || step == STEPS_MAX)
            return false;
        pivot(&t, row, column);
    }
    memset(x, 0, FA_LINEAR_COLUMNS * sizeof *x);
    for (int32_t i = 0; i < t.rows; i++) {
        price[i] = ARTIFICIAL - t.at[t.rows][program->columns + i];
        if (t.basis[i] < program->columns)
            x[t.basis[i]] = t.at[i][t.columns];
        else if (t.at[i][t.columns] > 1e-7)
            return false;
    }
    return true;
}
