/* What a kernel cannot do without (FA_NEEDS_* of include/fa_params.h): read from a file, checked against a problem. */
#pragma once

#include "input/problem.h"

/* Words such as "packed mha", separated by blanks or commas, up to the end of the line, comment or parenthesis; added
 * to *needs. FA_USAGE: an unknown word. */
fa_status fa_needs_read(const char *text, int32_t *needs, fa_reason *why);
/* FA_INFEASIBLE when the problem, or how its tensors lie, offers less than `needs`: the reason says what, and what the
 * problem has. */
fa_status fa_needs_check(int32_t needs, const char *name, const fa_options *options, const fa_problem *problem,
                         const fa_knobs *knobs, fa_reason *why);
