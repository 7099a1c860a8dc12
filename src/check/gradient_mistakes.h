/* The usual mistakes of a backward: a wrong row is computed with each of them, and the one that fits is named. */
#pragma once

#include "check/gradients.h"

/* bad: a flag for each row of `expected`. Appends to text[0..size): heads and rows that are wrong, and what they look
 * like. */
void fa_gradient_diagnose(const fa_problem *problem, int32_t tensor, const fa_gradient *expected, const uint8_t *bad,
                          const uint16_t *output, const fa_tensors *tensors, const double *forward, char *text,
                          size_t size);
