/* What several unit tests share: options out of a line of words, numbers that are nearly right. */
#ifndef FA_TEST_SHARED_H
#define FA_TEST_SHARED_H

#include "input/options.h"

#include <stddef.h>

/* The options point into a copy of the words, which the next call overwrites. */
fa_status parse_words(const char *line, fa_options *options, fa_reason *why);
/* Fails when value is further from wanted than the share `relative` of it. */
void near(double value, double wanted, double relative);

#endif
