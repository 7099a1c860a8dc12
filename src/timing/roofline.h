/* What the hardware can do at most, and how much of it a time amounts to. Pure. */
#ifndef FA_ROOFLINE_H
#define FA_ROOFLINE_H

#include "device/device.h"

typedef struct fa_throughput {
    double tflops, peak_tflops, fraction_of_peak, gbytes_per_s;
    double peak_boost_tflops; /* at the maximum clock; peak_tflops is at the measured one */
} fa_throughput;

/* Microseconds: the arithmetic on the tensor cores at the highest clock or, with FA_L2_COLD, reading the inputs from
 * DRAM, whichever takes longer. 0: unknown architecture. */
double fa_roofline_us(const fa_problem *problem, const fa_device_info *device, fa_l2 l2);
/* Of a launch that takes `us` at `clock_mhz` (0: unknown, then the maximum clock counts). All 0 unless us > 0. */
fa_throughput fa_throughput_of(double us, double clock_mhz, const fa_problem *problem, const fa_device_info *device);

#endif
