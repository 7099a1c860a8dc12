/* --vs: two candidates timed in one process, in ABBA order, so that drift (clock, temperature) affects both alike. */
#pragma once

#include "run/candidate.h"

/* ratio = time of `other` / time of `candidate`: above 1 the candidate is faster. */
typedef struct fa_paired {
    bool done;
    double ratio, ratio_ci95[2]; /* median of the blocks' ratios */
    double aa_noise;             /* candidate against itself, same session: larger of |median - 1| and half interval */
    int32_t blocks;
    double p50_us, other_p50_us;
    bool accepted;           /* gain > max(3 %, 2 aa_noise), and the interval excludes 1 */
    fa_timing_method method; /* one method for both candidates */
    int32_t discarded;       /* blocks in which the hardware throttled */
    bool throttled;          /* more than 20 % of the blocks: then nothing is accepted */
    bool settled;            /* both intervals became narrow enough before --max-time */
} fa_paired;

/* Statuses as of fa_time. Both candidates lie on the same device and serve the same problem. */
fa_status fa_time_paired(const fa_candidate *candidate, const fa_candidate *other, const fa_options *options,
                         fa_paired *paired, fa_reason *why);
