/* Launches that are repeated on the same inputs: the same bits every time, or judged like the first. */
#pragma once

#include "base/status.h"
#include "check/session.h"

/* Ten; on the emulator five, or fewer for large problems: one from 2^24 multiply-adds on, none beyond 2^32. */
int32_t fa_check_repeats(const fa_problem *problem, bool emulated);
/* Chooses the emulator's schedule of the next launches. Returns its name; "" on a GPU. */
const char *fa_repeats_vary(fa_session *s, int32_t variation, char word[32]);
/* More launches on the same inputs give the same bits; on the emulator in other orders of the threads. Other bits of a
 * kernel that declares itself nondeterministic, and of gradients without --deterministic, must pass the rules. */
fa_status fa_repeats_check(fa_session *s, fa_reason *why);

/* FA_WRONG: launch `number` (`again`, `lse_again`) differs from the first, in s; how much, and where first.
 * schedule: of the emulator, or "". */
fa_status fa_compare_bits(const fa_session *s, const uint16_t *again, const float *lse_again, int32_t number,
                          const char *schedule, fa_reason *why);
