/* What the hardware can do at most, and how much of it a time amounts to. Pure. */
#pragma once

#include "device/device.h"

typedef struct fa_throughput {
    double tflops, peak_tflops, fraction_of_peak, gbytes_per_s;
    double peak_boost_tflops; /* at the maximum clock; peak_tflops is at the measured one */
} fa_throughput;

/* FP16 tensor-core operations (an FMA is two) of one SM in one clock, without sparsity; 0 when unknown. */
int32_t fa_tensor_flop_per_clock(const char *arch);
/* Bytes of Q, K and V that some visible pair needs. The output is not counted: it may stay in the L2. */
double fa_input_bytes(const fa_problem *problem);
/* Microseconds: the arithmetic on the tensor cores at the highest clock or, with FA_L2_COLD, reading the inputs from
 * DRAM, whichever takes longer. 0: unknown architecture. */
double fa_roofline_us(const fa_problem *problem, const fa_device_info *device, fa_l2 l2);
/* FA_ERROR, "impossible", when a median is below that; *roofline_us: what it was held against. */
fa_status fa_roofline_judge(double p50_us, const fa_problem *problem, const fa_device_info *device,
                            const fa_sample_request *request, double *roofline_us, fa_reason *why);
/* For a launch that takes `us` at `clock_mhz` (0: unknown, then the maximum clock counts). All 0 unless us > 0. */
fa_throughput fa_throughput_of(double us, double clock_mhz, const fa_problem *problem, const fa_device_info *device);
