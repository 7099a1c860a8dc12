#include "check/compare_bits.h"

#include <stdio.h>
#include <string.h>

static fa_status differs(int32_t number, const char *schedule, const char *what, size_t differing, size_t count,
                         const char *first, fa_reason *why)
{
    return fa_refuse(why, FA_WRONG,
                     "not deterministic: launch %d on the same inputs%s%s differs from the first in %zu of %zu "
                     "elements%s, first at %s",
                     number + 1, schedule[0] != '\0' ? ", schedule " : "", schedule, differing, count, what, first);
}

fa_status fa_compare_bits(const fa_outputs *first, const fa_outputs *again, int32_t number, const char *schedule,
                          fa_reason *why)
{
    char place[64];
    size_t differing = 0, at = 0;
    if (memcmp(again->output, first->output, first->count * sizeof *again->output) != 0)
        for (size_t k = 0; k < first->count; k++)
            if (again->output[k] != first->output[k] && differing++ == 0)
                at = k;
    snprintf(place, sizeof place, "element %zu (0x%04x, then 0x%04x)", at, first->output[at], again->output[at]);
    if (differing > 0)
        return differs(number, schedule, "", differing, first->count, place, why);
    for (size_t k = 0; k < first->lse_count; k++)
        if (memcmp(&again->lse[k], &first->lse[k], sizeof *again->lse) != 0 && differing++ == 0)
            at = k;
    if (differing == 0)
        return FA_PASS;
    snprintf(place, sizeof place, "element %zu (%.9g, then %.9g)", at, (double)first->lse[at], (double)again->lse[at]);
    return differs(number, schedule, " of the log-sum-exp", differing, first->lse_count, place, why);
}
