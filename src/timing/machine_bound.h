/* The static bound of a compiled kernel on a problem: its machine code, the launch, and the bytes that memory must
 * give. Work that cannot be read (the emulator's object, PTX, no nvdisasm) has no bound, with the reason. */
#pragma once

#include "device/device.h"
#include "run/candidate.h"
#include "timing/estimate.h"

typedef struct fa_machine_bound {
    bool done; /* --bound, or a timed kernel of ours: .bound is known, or says why not */
    fa_bound bound;
    int32_t sm_count, grid, threads;     /* multiprocessors; blocks of the launch; threads of a block */
    double clock_mhz_min, clock_mhz_max; /* the part's band; min 0: not known */
    double us_at_max, us_at_min;         /* the least time of a launch at these clocks */
    /* The clocks that the power limit leaves busy tensor cores, and the least times at these; 0: not known. */
    double power_mhz_low, power_mhz_high, us_at_power_low, us_at_power_high;
    double dram_us;       /* bytes that do not fit the L2, or with FA_L2_COLD all inputs */
    fa_estimate estimate; /* at the highest clock */
    double percent;       /* the bound at the measured clock over the measured p50; 0: not timed */
} fa_machine_bound;

/* .done with --bound, and for a kernel of ours that will be timed. device: NULL without one; then the best-known part
 * of the architecture counts. */
fa_machine_bound fa_machine_bound_of(const fa_options *options, const fa_candidate_record *record,
                                     const fa_problem *problem, const fa_device *device);
/* What the bound comes from: a pipe, "l2" or "dram". */
const char *fa_machine_bound_binds(const fa_machine_bound *bound);
/* Fills in .percent from a time. clock_mhz 0: unknown, then the highest one counts. */
void fa_machine_bound_judge(fa_machine_bound *bound, double p50_us, double clock_mhz);
