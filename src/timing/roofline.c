#include "timing/roofline.h"

#include <math.h>
#include <string.h>

/* Peak dense FP16 rate per SM and clock, from NVIDIA's published peaks over SMs and boost clock (the arithmetic for
 * sm_70, sm_80 and sm_90 is in https://forums.developer.nvidia.com/t/244727):
 *   sm_70  V100 125 TFLOP/s, 80 SMs, 1.53 GHz (Volta whitepaper, table 1)
 *   sm_75  T4 65, 40, 1.59 (Turing whitepaper, appendix A)
 *   sm_80  A100 312, 108, 1.41 (A100 whitepaper, table 4)
 *   sm_86  A40 149.7, 84, 1.74 (A40 datasheet; GeForce parts reach half of it with FP32 accumulate: GA102 whitepaper,
 *          table 3)
 *   sm_89  L4 121, 58, 2.04 (L4 datasheet, half of the figure with sparsity; GeForce parts again half with FP32
 *          accumulate)
 *   sm_90  H100 SXM 989.4, 132, 1.83 (H100 whitepaper, table 2)
 *   sm_100 B200 2250, 148, 1.85 (Blackwell datasheet)
 *   sm_120 RTX PRO 6000 503.8, 188, 2.617 (RTX Blackwell PRO whitepaper, table 1)
 * A higher rate only lowers the roofline: with FP32 accumulate on GeForce it is a bound that is never reached. */
static const struct {
    const char *arch;
    int32_t flop;
} per_clock[] = {
    {"sm_70", 1024}, {"sm_72", 1024},  {"sm_75", 1024},  {"sm_80", 2048},  {"sm_86", 1024},  {"sm_89", 1024},
    {"sm_90", 4096}, {"sm_100", 8192}, {"sm_103", 8192}, {"sm_120", 1024}, {"sm_121", 1024},
};

int32_t fa_tensor_flop_per_clock(const char *arch)
{
    for (size_t i = 0; i < sizeof per_clock / sizeof *per_clock; i++)
        if (strcmp(per_clock[i].arch, arch) == 0)
            return per_clock[i].flop;
    return 0;
}

/* FP8 has twice the rate where the tensor cores know it, from sm_89 on. A problem whose K and V alone are FP8 does not:
 * its products are of 16 bits. */
static double peak_tflops(const fa_problem *problem, const fa_device_info *device, double clock_mhz)
{
    const double fp8 = problem->dtype == FA_DTYPE_E4M3 && fa_arch_cc(device->arch) >= 89 ? 2.0 : 1.0;
    return fp8 * fa_tensor_flop_per_clock(device->arch) * device->sm_count * clock_mhz * 1e6 / 1e12;
}

/* Query rows of a sequence that see a key, and its keys from the first that a row sees to the last. */
static void needed(const fa_problem *problem, int32_t batch, double *rows, double *keys)
{
    int32_t first = problem->seq_kv, end = 0;
    *rows = 0;
    for (int32_t row = 0; row < fa_problem_seq_q(problem, batch); row++) {
        const fa_keys seen = fa_problem_keys(problem, batch, row);
        if (seen.first == seen.end)
            continue;
        *rows += 1;
        first = seen.first < first ? seen.first : first;
        end = seen.end > end ? seen.end : end;
    }
    *keys = end > first ? end - first : 0;
}

double fa_input_bytes(const fa_problem *problem)
{
    const double dims = problem->dim + (problem->v_in_k ? 0 : fa_problem_dim_v(problem)); /* of a key */
    const int q_bytes = fa_dtype_bytes(problem->dtype), kv_bytes = fa_dtype_bytes(fa_problem_dtype_kv(problem));
    double bytes = 0, rows = 0, keys = 0;
    for (int32_t batch = 0; batch < problem->batch; batch++) {
        if (batch == 0 || problem->lengths != NULL)
            needed(problem, batch, &rows, &keys);
        bytes += q_bytes * problem->heads * rows * problem->dim + kv_bytes * problem->kv_heads * keys * dims;
    }
    return bytes;
}

double fa_roofline_us(const fa_problem *problem, const fa_device_info *device, fa_l2 l2)
{
    const double peak = peak_tflops(problem, device, device->clock_mhz_max);
    const double compute_us = peak > 0 ? fa_problem_flop(problem) / peak * 1e-6 : 0;
    const double dram_us = l2 == FA_L2_COLD && device->memory_gbytes_per_s > 0
                               ? fa_input_bytes(problem) / device->memory_gbytes_per_s * 1e-3
                               : 0;
    return fmax(compute_us, dram_us);
}

fa_status fa_roofline_judge(double p50_us, const fa_problem *problem, const fa_device_info *device,
                            const fa_sample_request *request, double *roofline_us, fa_reason *why)
{
    /* What persists need not come from memory, not even after a flush. */
    *roofline_us = fa_roofline_us(problem, device, request->persist_kv ? FA_L2_WARM : request->l2);
    if (p50_us < *roofline_us)
        return fa_refuse(why, FA_ERROR,
                         "impossible: a median of %.3f us is below the %.3f us that %s needs at its peak", p50_us,
                         *roofline_us, device->name);
    return FA_PASS;
}

fa_throughput fa_throughput_of(double us, double clock_mhz, const fa_problem *problem, const fa_device_info *device)
{
    if (!(us > 0))
        return (fa_throughput){0};
    fa_throughput throughput = {
        .tflops = fa_problem_flop(problem) / us * 1e-6,
        .peak_tflops = peak_tflops(problem, device, clock_mhz > 0 ? clock_mhz : device->clock_mhz_max),
        .peak_boost_tflops = peak_tflops(problem, device, device->clock_mhz_max),
        .gbytes_per_s = fa_problem_bytes(problem) / us * 1e-3,
    };
    if (throughput.peak_tflops > 0)
        throughput.fraction_of_peak = throughput.tflops / throughput.peak_tflops;
    return throughput;
}
