/* Mistakes with the descales of FP8, as changes of a row's recipe: ways of the functions in the table of mistakes.c. */
#pragma once

#include "check/recompute.h"

enum { FA_DESCALE_PLACES = 8 }; /* that a descale may be taken from */
/* Ways: of K, of V, of both; then of Q, of Q and K, of all. */
enum {
    FA_MISSING_DESCALES = 5,
    FA_SWAPPED_DESCALES = 3,
    FA_OTHER_DESCALES = 3 * FA_DESCALE_PLACES,
    FA_OTHER_DESCALES_OF_Q = 3 * FA_DESCALE_PLACES
};

void fa_mistake_no_descale(fa_recipe *recipe, int32_t way);
void fa_mistake_swapped_descales(fa_recipe *recipe, int32_t way);
void fa_mistake_other_descale(fa_recipe *recipe, int32_t way);
