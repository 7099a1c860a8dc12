/* Order statistics of timing samples. Pure. */
#pragma once

#include "base/status.h"

/* Everything in the unit of the samples. ci95: distribution-free interval of the median from order statistics. */
typedef struct fa_stats {
    size_t count;
    double min, p10, p50, p90, mean;
    double ci95[2];
} fa_stats;

/* Quantile 0..1 of `count` ascending samples, linear interpolation between order statistics (type 7). */
double fa_quantile(const double *sorted, size_t count, double q);
fa_stats fa_stats_of(const double *samples, size_t count); /* any order; count >= 1 */
/* True when half the width of ci95 is below `relative` * p50. */
bool fa_stats_settled(const fa_stats *stats, double relative);
/* Samples that tell a loser. Each is longer than the median with a probability of a half, so that all are longer than a
 * limit that is no less than the median with one of 2^-20, whatever the distribution: the sign test. The margin is for
 * what is no chance, the clock above all. */
#define FA_BEATEN_SAMPLES 20
#define FA_BEATEN_MARGIN 1.05
/* Whether this sample is longer than `us` by the margin. */
bool fa_stats_beyond(double sample, double us);
/* Statistics cost a sort: how many samples to have for the next ones. Ten more, later five per cent more. */
size_t fa_stats_next_look(size_t count);
