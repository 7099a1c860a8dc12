/* How long a launch takes: MEASURE.md section 2. The protocol; the device takes the samples. */
#ifndef FA_TIMING_H
#define FA_TIMING_H

#include "check/check.h"
#include "timing/stats.h"

typedef struct fa_timing {
    bool done;
    fa_stats us; /* per launch */
    fa_timing_method method;
    fa_l2 l2;
    int32_t launches_per_sample, discarded;
    double sm_clock_mhz_p50;
    bool throttled;  /* more than 20 % of the samples were */
    bool settled;    /* stopped because the interval was narrow enough, not because time ran out */
    bool impossible; /* faster than the roofline floor */
    double floor_us; /* an empty kernel by the same method; never subtracted */
    double roofline_us;
    double warmup_ms;
    double power_capped; /* share of samples taken while the power limit was at work: normal under load */
    bool gated;          /* every sample was queued before it began; else (profiler, sanitizer) launch cost is in */
    int32_t poisoned;    /* timed samples whose output was NaN before, and right after */
    double
        fresh_ratio; /* single launches on new inputs, seen inputs, a done output: slowest over fastest; NaN: not tried */
    bool noisy;      /* something else used the GPU, or the samples look like it */
    char noisy_reason[160];
    int32_t other_processes; /* on this GPU, with a context; -1: unknown */
} fa_timing;

typedef struct fa_throughput {
    double tflops, peak_tflops, fraction_of_peak, gbytes_per_s;
    double peak_boost_tflops; /* at the maximum clock; peak_tflops is at the measured one */
} fa_throughput;

/* FA_NOT_RUN on a device without `sample`; FA_WRONG when a timed launch did not write its output; FA_ERROR, and
 * .impossible, when the median is below the roofline floor. .done only with FA_PASS. */
fa_status fa_time(const fa_candidate *candidate, const fa_problem *problem, const fa_options *options,
                  const fa_buffers *buffers, fa_timing *timing, fa_reason *why);
/* The least time the arithmetic can take at the highest clock on the tensor cores and, with cold, the reading of the
 * inputs from DRAM. 0: unknown architecture. */
double fa_roofline_us(const fa_problem *problem, const fa_device_info *device, fa_l2 l2);
/* Dense FP16 tensor-core operations (an FMA is two) of one SM in one clock, 0 when unknown. */
int32_t fa_tensor_flop_per_clock(const char *arch);
fa_throughput fa_throughput_of(const fa_timing *timing, const fa_problem *problem, const fa_device_info *device);

/* --vs: ratio = time of `other` / time of `candidate` (above 1: candidate is faster), from ABBA blocks. */
typedef struct fa_comparison {
    bool done;
    double ratio, ratio_ci95[2]; /* median of the blocks' paired ratios */
    double aa_noise;             /* candidate against itself, same session: larger of |median - 1| and half interval */
    int32_t blocks;
    double p50_us, other_p50_us;
    bool accepted;           /* gain > max(3 %, 2 aa_noise), interval excludes 1 */
    fa_timing_method method; /* one method for both candidates */
    int32_t discarded;       /* blocks in which the hardware throttled */
    bool throttled;          /* more than 20 % of the blocks: then nothing is accepted */
    bool settled;            /* both intervals became narrow enough before --max-time */
} fa_comparison;
fa_status fa_compare(const fa_candidate *candidate, const fa_buffers *buffers, const fa_candidate *other,
                     const fa_buffers *other_buffers, const fa_problem *problem, const fa_options *options,
                     fa_comparison *comparison, fa_reason *why);

#endif
