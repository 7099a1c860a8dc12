/* Launches on the same inputs: whether they gave the same bits. */
#ifndef FA_COMPARE_BITS_H
#define FA_COMPARE_BITS_H

#include "base/status.h"

/* Of a launch: the output, and the log-sum-exp if there is one. */
typedef struct fa_outputs {
    const uint16_t *output;
    size_t count;
    const float *lse;
    size_t lse_count;
} fa_outputs;

/* FA_WRONG: launch `number` (`again`) differs from the first; how much, and where first. schedule: of the emulator, or
 * "". */
fa_status fa_compare_bits(const fa_outputs *first, const fa_outputs *again, int32_t number, const char *schedule,
                          fa_reason *why);

#endif
