#include "check/choose_rows.h"

#include <stdlib.h>

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

/* Sampled: the row space is cut into equal strata and each gives two rows, so that every head and part of the sequence
 * is seen: one row anywhere, one first or last row of a tile. The sequence's ends come on top. */
int64_t *fa_choose_rows(const fa_problem *problem, int32_t tile_m, uint64_t seed, int64_t *row_count)
{
    const int64_t all = (int64_t)problem->batch * problem->heads * problem->seq_q;
    const int64_t row_work = (int64_t)problem->seq_kv * problem->dim;
    const int64_t most = MAX_ELEMENTS / problem->dim;
    if (all <= MIN_SAMPLE_ROWS || (all <= FULL_WORK / row_work && all <= most)) {
        int64_t *every = fa_alloc((size_t)all * sizeof *every);
        for (int64_t i = 0; i < all; i++)
            every[i] = i;
        *row_count = all;
        return every;
    }
    int64_t budget = SAMPLE_WORK / row_work;
    budget = budget < MIN_SAMPLE_ROWS ? MIN_SAMPLE_ROWS : budget;
    budget = budget > most ? most : budget; /* fewer than all: they would be within one of the limits above */
    const int64_t strata = budget / 2 - 1;
    int64_t *rows = fa_alloc((size_t)budget * sizeof *rows), count = 0;
    uint64_t state = seed * 0x9E3779B97F4A7C15u | 1;
    rows[count++] = 0;
    rows[count++] = all - 1;
    for (int64_t i = 0; i < strata; i++) {
        const int64_t from = all * i / strata, size = all * (i + 1) / strata - from;
        rows[count++] = from + (int64_t)(next_random(&state) % (uint64_t)size);
        const int64_t flat = from + (int64_t)(next_random(&state) % (uint64_t)size);
        const int64_t row = flat % problem->seq_q, tile = row - row % tile_m;
        const int64_t last = tile + tile_m < problem->seq_q ? tile + tile_m - 1 : problem->seq_q - 1;
        rows[count++] = flat - row + (next_random(&state) & 1 << 20 ? tile : last);
    }
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    int64_t unique = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || rows[i] != rows[i - 1])
            rows[unique++] = rows[i];
    *row_count = unique;
    return rows;
}
