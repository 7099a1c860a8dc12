/* The usual mistakes, as changes of a row's recipe. */
#pragma once

#include "check/recompute.h"

/* Makes the right recipe that of a mistake, which can be made in several ways, from `first` on. */
typedef struct fa_mistake {
    const char *text;
    int32_t needs; /* of the problem: FA_MISTAKE_*, all of them */
    void (*make)(fa_recipe *recipe, int32_t way);
    int32_t first, ways;
} fa_mistake;

/* Of a problem: what mistakes can be made with it. */
int32_t fa_mistakes_possible(const fa_problem *problem);
/* Where two explain the same, the earlier is the likelier. */
const fa_mistake *fa_mistakes(int32_t *count);
