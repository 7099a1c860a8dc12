#include "timing/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double fa_quantile(const double *sorted, size_t count, double q)
{
    FA_ASSERT(count >= 1, "no samples");
    FA_ASSERT(q >= 0.0 && q <= 1.0, "quantile %g", q);
    const double position = q * (double)(count - 1);
    const size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Largest r (1-based) with P(Binomial(count, 1/2) < r) <= 0.025: [x(r), x(count+1-r)] then covers the median with at
 * least 95 % whatever the distribution. 0 when even the range of the samples does not (count < 6). Conover, Practical
 * Nonparametric Statistics, 3.2. */
static size_t median_rank(size_t count)
{
    /* log P(k) keeps count = 10,000 away from underflow. */
    double cumulative = 0.0;
    size_t rank = 0;
    for (size_t k = 0; k < count / 2; k++) {
        const double log_p = lgamma((double)count + 1.0) - lgamma((double)k + 1.0) - lgamma((double)(count - k) + 1.0) -
                             (double)count * log(2.0);
        cumulative += exp(log_p);
        if (!(cumulative <= 0.025))
            break;
        rank = k + 1;
    }
    return rank;
}

fa_stats fa_stats_of(const double *samples, size_t count)
{
    FA_ASSERT(count >= 1, "no samples");
    double *sorted = fa_alloc(count * sizeof *sorted);
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);

    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        FA_ASSERT(isfinite(sorted[i]), "a sample that is no number has no order");
        sum += sorted[i];
    }
    const size_t rank = median_rank(count);
    const fa_stats stats = {
        .count = count,
        .min = sorted[0],
        .p10 = fa_quantile(sorted, count, 0.10),
        .p50 = fa_quantile(sorted, count, 0.50),
        .p90 = fa_quantile(sorted, count, 0.90),
        .mean = sum / (double)count,
        /* Too few samples for 95 %: nothing bounds the median, and the interval says so. */
        .ci95 = {rank ? sorted[rank - 1] : -INFINITY, rank ? sorted[count - rank] : INFINITY},
    };
    free(sorted);
    return stats;
}

bool fa_stats_settled(const fa_stats *stats, double relative)
{
    const double half_width = 0.5 * (stats->ci95[1] - stats->ci95[0]);
    return half_width < relative * stats->p50;
}

size_t fa_stats_next_look(size_t count)
{
    const size_t more = count / 20;
    return count + (more > 10 ? more : 10);
}

bool fa_stats_beyond(double sample, double us) { return sample > FA_BEATEN_MARGIN * us; }
