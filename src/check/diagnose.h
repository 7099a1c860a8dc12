/* Where an output is wrong, and the likely mistake. */
#pragma once

#include "check/reference.h"

/* bad: one flag per row of `expected`. Appends to text[0..size): which rows, row tiles and heads are wrong, and the
 * likely mistake. */
void fa_diagnose(const fa_problem *problem, const fa_expected *expected, const uint8_t *bad, const uint16_t *output,
                 int32_t tile_m, char *text, size_t size);
