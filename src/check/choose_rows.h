/* Which query rows a reference on the CPU is computed for. */
#pragma once

#include "input/problem.h"

/* Flat rows (fa_problem_row), ascending, none in a gap between sequences: all of them, or a
 * seeded sample where that is too much work.
 * The caller frees them. */
int64_t *fa_choose_rows(const fa_problem *problem, int32_t tile_m, uint64_t seed, int64_t *row_count);
#define FA_SUSPECTS_MOST 256
/* The rows of a sample and the worst suspects: of `all` rows those with the largest numbers above 0. */
int64_t *fa_choose_suspects(const int64_t *sample, int64_t sample_count, const double *suspects, int64_t all,
                            int64_t *row_count);
bool fa_chooses_all_rows(const fa_problem *problem); /* all that are used: tile_m and seed do not matter */
