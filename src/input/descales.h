/* Descales of FP8 tensors (--dtype e4m3, --kv-dtype e4m3), and the elements that belong to them. */
#pragma once

#include "input/score_tensors.h"

enum { FA_DESCALE_Q, FA_DESCALE_K, FA_DESCALE_V };

/* A tensor of `count` stored elements in BF16 becomes E4M3. Each head of each batch has a descale of its own: the
 * largest number of the tensor over 448, times 1 to 100. Those of neighbours, and of K and V, are far apart; sequences
 * that share pages have the same. Returns the descales, [batch, heads], malloc'd. */
float *fa_descales_quantise(const fa_problem *problem, uint64_t seed, int tensor, size_t count, uint16_t *data);
