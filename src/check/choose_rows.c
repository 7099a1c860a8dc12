#include "check/choose_rows.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_SAMPLE_ROWS = 16 };
/* Multiply-adds of Q K^T. The canonical shape is 2^28 and takes about 0.15 s on two cores; all rows up to four times
 * that (five seeds stay within 3 s), beyond it as many rows as make twice the canonical shape's work. */
#define FULL_WORK (1ll << 30)
#define SAMPLE_WORK (1ll << 29)
/* Elements of R at most, so that many short rows do not take gigabytes. */
#define MAX_ELEMENTS (1ll << 25)

static uint64_t next_random(uint64_t *state)
{
    /* xorshift64* (Vigna 2016) */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static int compare_rows(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Keys that a row of the problem has to do with, on average where not all sequences and rows are alike. */
static int64_t keys_of_a_row(const fa_problem *problem, int64_t rows)
{
    if (fa_problem_features(problem) == 0)
        return problem->seq_kv;
    const int64_t keys = fa_problem_pairs(problem) / rows;
    return keys > 1 ? keys : 1;
}

/* Drops rows in gaps between sequences and repeated ones. */
static int64_t tidy(const fa_problem *problem, int64_t *rows, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if ((kept == 0 || rows[i] != rows[kept - 1]) && fa_problem_row(problem, rows[i]).used)
            rows[kept++] = rows[i];
    return kept;
}

static int64_t dim_of(const fa_problem *problem)
{
    const int32_t dim_v = fa_problem_dim_v(problem);
    return problem->dim > dim_v ? problem->dim : dim_v;
}

bool fa_chooses_all_rows(const fa_problem *problem)
{
    const int64_t all = fa_problem_rows(problem), row_work = keys_of_a_row(problem, all) * dim_of(problem);
    return all <= MIN_SAMPLE_ROWS || (all <= FULL_WORK / row_work && all <= MAX_ELEMENTS / dim_of(problem));
}

/* Sampled: the row space is cut into equal strata and each gives two rows, so that every head and part of the sequence
 * is seen: one row anywhere, one first or last row of a tile. The sequence's ends come on top; with lengths those of
 * every sequence, of one head each. */
int64_t *fa_choose_rows(const fa_problem *problem, int32_t tile_m, uint64_t seed, int64_t *row_count)
{
    const int64_t all = fa_problem_rows(problem), row_work = keys_of_a_row(problem, all) * dim_of(problem);
    const int64_t most = MAX_ELEMENTS / dim_of(problem);
    if (fa_chooses_all_rows(problem)) {
        int64_t *every = fa_alloc((size_t)all * sizeof *every);
        for (int64_t i = 0; i < all; i++)
            every[i] = i;
        *row_count = tidy(problem, every, all);
        return every;
    }
    int64_t budget = SAMPLE_WORK / row_work;
    budget = budget < MIN_SAMPLE_ROWS ? MIN_SAMPLE_ROWS : budget;
    budget = budget > most ? most : budget; /* fewer than all: they would be within one of the limits above */
    const int64_t strata = budget / 2 - 1, sequences = problem->lengths != NULL ? problem->batch : 0;
    int64_t *rows = fa_alloc((size_t)(budget + 2 * sequences) * sizeof *rows), count = 0;
    uint64_t state = seed * 0x9E3779B97F4A7C15u | 1;
    rows[count++] = 0;
    rows[count++] = all - 1;
    for (int64_t i = 0; i < strata; i++) {
        const int64_t from = all * i / strata, size = all * (i + 1) / strata - from;
        rows[count++] = from + (int64_t)(next_random(&state) % (uint64_t)size);
        const int64_t flat = from + (int64_t)(next_random(&state) % (uint64_t)size);
        const fa_row at = fa_problem_row(problem, flat);
        const int64_t row = at.row, tile = row - row % tile_m;
        const int64_t last = tile + tile_m < at.seq_q ? tile + tile_m - 1 : at.seq_q - 1;
        rows[count++] = flat - row + (next_random(&state) & 1 << 20 || !at.used ? tile : last);
    }
    for (int32_t b = 0; b < sequences; b++)
        for (int32_t end = 0; end < 2; end++)
            if (problem->lengths->q[b] > 0)
                rows[count++] =
                    fa_problem_flat(problem, b, b % problem->heads, end == 0 ? 0 : problem->lengths->q[b] - 1);
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    *row_count = tidy(problem, rows, count);
    return rows;
}

static int by_suspicion(const void *left, const void *right)
{
    const double a = **(const double *const *)left, b = **(const double *const *)right;
    return (a < b) - (a > b);
}

int64_t *fa_choose_suspects(const int64_t *sample, int64_t sample_count, const double *suspects, int64_t all,
                            int64_t *row_count)
{
    int64_t worst = 0, kept = 0;
    const double **at = fa_alloc((size_t)(all + 1) * sizeof *at);
    for (int64_t row = 0; row < all; row++)
        if (suspects[row] > 0.0)
            at[worst++] = &suspects[row];
    qsort(at, (size_t)worst, sizeof *at, by_suspicion);
    worst = worst < FA_SUSPECTS_MOST ? worst : FA_SUSPECTS_MOST;
    int64_t *rows = fa_alloc((size_t)(sample_count + worst + 1) * sizeof *rows);
    memcpy(rows, sample, (size_t)sample_count * sizeof *rows);
    for (int64_t i = 0; i < worst; i++)
        rows[sample_count + i] = at[i] - suspects;
    free(at);
    qsort(rows, (size_t)(sample_count + worst), sizeof *rows, compare_rows);
    for (int64_t i = 0; i < sample_count + worst; i++)
        if (i == 0 || rows[i] != rows[kept - 1])
            rows[kept++] = rows[i];
    *row_count = kept;
    return rows;
}
