#include "timing/machine_bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "timing/roofline.h"

/* The part that an architecture is best known by: A100 SXM (datasheet), A10 (datasheet), L4 (datasheet; 795 MHz base),
 * H200 SXM (datasheet; the highest clock is what the driver reports). DRAM bandwidth and L2 are upper limits. Under the
 * 72 W of an L4 cuBLAS reaches 53 to 71 TFLOP/s, for which 58 multiprocessors of 1024 FLOP a clock need 892 to 1195
 * MHz. */
static const struct {
    int32_t cc;
    double clock_mhz_min, clock_mhz_max, dram_gbytes_per_s, l2_mbytes, power_mhz_low, power_mhz_high;
} parts[] = {{80, 0, 1410, 2039, 40, 0, 0},
             {86, 885, 1695, 600, 6, 0, 0},
             {89, 795, 2040, 300, 48, 892, 1195},
             {90, 0, 1980, 4800, 50, 0, 0}};

static fa_machine_bound unknown(const char *reason)
{
    fa_machine_bound result = {.done = true};
    snprintf(result.bound.unknown_reason, sizeof result.bound.unknown_reason, "%.239s", reason);
    return result;
}

/* Where blocks are tiles and every tile is full, the busiest multiprocessor has a whole number of them. */
static double wave_factor(const fa_kernel_info *info, const fa_problem *problem, const fa_launch *launch,
                          int32_t sm_count)
{
    const bool equal = info->grid == FA_GRID_TILES && !problem->causal && problem->seq_q % info->m == 0 &&
                       info->splits <= 1 && info->pack_heads == 0;
    const double each = (double)launch->grid / sm_count;
    return equal && each > 0 ? ceil(each) / each : 1;
}

static fa_status read_code(const fa_candidate_record *record, fa_sass *sass, fa_reason *why)
{
    if (record->spec.kind != FA_KIND_HAND)
        return fa_refuse(why, FA_NOT_RUN, "a library's code is not read");
    if (!record->module_known || record->module.ptx_arch[0] != '\0' || strstr(record->module.path, ".cubin") == NULL)
        return fa_refuse(why, FA_NOT_RUN, "no machine code: the bound needs a cubin");
    return fa_sass_read(record->module.path, sass, why);
}

/* The multiprocessors, clocks and memory of the device; where there is none, those of the part. */
static void fill_part(fa_machine_bound *result, const fa_arch_limits *limits, size_t part, const fa_device_info *device,
                      double inputs, bool cold)
{
    const bool real = device != NULL && device->clock_mhz_max > 0;
    const double l2_bytes = real && device->l2_bytes > 0 ? (double)device->l2_bytes : parts[part].l2_mbytes * 1048576;
    const double dram =
        real && device->memory_gbytes_per_s > 0 ? device->memory_gbytes_per_s : parts[part].dram_gbytes_per_s;
    result->done = true;
    result->sm_count = real ? device->sm_count : limits->sm_count;
    result->clock_mhz_min = parts[part].clock_mhz_min;
    if (!real) {
        result->power_mhz_low = parts[part].power_mhz_low;
        result->power_mhz_high = parts[part].power_mhz_high;
    }
    result->clock_mhz_max = real ? device->clock_mhz_max : parts[part].clock_mhz_max;
    result->dram_us = fmax(0, cold ? inputs : inputs - l2_bytes) / dram * 1e-3;
}

static fa_estimate estimate(const fa_machine_bound *bound, const fa_candidate_record *record, const fa_problem *problem,
                            const fa_launch *launch, double wave_factor, int32_t tensor_flop)
{
    double mean_clocks[FA_PIPE_COUNT];
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        mean_clocks[pipe] = bound->bound.pipe_clocks[pipe] / wave_factor;
    const fa_estimate_input input = {.pipe_clocks = mean_clocks,
                                     .info = &record->module.info,
                                     .launch = launch,
                                     .problem = problem,
                                     .sm_count = bound->sm_count,
                                     .blocks_per_sm = record->module.occupancy.blocks_per_sm,
                                     .tensor_flop = tensor_flop,
                                     .clock_mhz = bound->clock_mhz_max,
                                     .dram_us = bound->dram_us,
                                     .bound_us = bound->us_at_max};
    return fa_estimate_of(&input, record->spec.row != NULL ? record->spec.row->name : "");
}

static double us_at(const fa_machine_bound *bound, double clock_mhz)
{
    return clock_mhz > 0 ? fmax(bound->bound.clocks / clock_mhz, bound->dram_us) : 0;
}

fa_machine_bound fa_machine_bound_of(const fa_options *options, const fa_candidate_record *record,
                                     const fa_problem *problem, const fa_device *device)
{
    fa_machine_bound result = {.done = false};
    fa_arch_limits limits;
    fa_sass sass;
    fa_reason why;
    char arch[16];
    size_t part = 0;
    const bool timed = device != NULL && device->sample != NULL && options->timing != FA_TIMING_NONE;
    if (!options->bound && (options->no_bound || record->spec.kind != FA_KIND_HAND || !timed))
        return result;
    snprintf(arch, sizeof arch, "%.*s", (int)strspn(record->spec.arch, "sm_0123456789"), record->spec.arch);
    if (fa_arch_limits_of(arch, &limits, &why) != FA_PASS)
        return unknown(why.text);
    while (part < sizeof parts / sizeof *parts && parts[part].cc != limits.cc)
        part++;
    if (part == sizeof parts / sizeof *parts)
        return unknown("no rates of this architecture are known");
    if (record->module.plan.count > 0)
        return unknown("the file launches by lines of its own (FA_LAUNCH)");
    if (read_code(record, &sass, &why) != FA_PASS)
        return unknown(why.text);
    const double inputs = fa_input_bytes(problem);
    fill_part(&result, &limits, part, device != NULL ? &device->info : NULL, inputs, options->l2 == FA_L2_COLD);
    const fa_launch launch = fa_launch_of(&record->module, problem, result.sm_count);
    result.grid = launch.grid;
    result.threads = launch.threads;
    const fa_work_need need = {.flop = fa_problem_flop(problem),
                               .warps = (double)launch.grid * launch.threads / 32,
                               .sm_count = result.sm_count,
                               .wave_factor = wave_factor(&record->module.info, problem, &launch, result.sm_count),
                               .l2_bytes = inputs,
                               .cc = limits.cc,
                               .tensor_flop = fa_tensor_flop_per_clock(arch)};
    result.bound = fa_bound_of(&sass, &need);
    fa_sass_free(&sass);
    result.us_at_max = us_at(&result, result.clock_mhz_max);
    if (result.bound.known && launch.grid > 0)
        result.estimate = estimate(&result, record, problem, &launch, need.wave_factor, need.tensor_flop);
    result.us_at_min = us_at(&result, result.clock_mhz_min);
    result.us_at_power_low = us_at(&result, result.power_mhz_low);
    result.us_at_power_high = us_at(&result, result.power_mhz_high);
    return result;
}

const char *fa_machine_bound_binds(const fa_machine_bound *bound)
{
    if (bound->dram_us * bound->clock_mhz_max > bound->bound.clocks)
        return "dram";
    return bound->bound.l2_binds ? "l2" : fa_pipe_name(bound->bound.binds);
}

void fa_machine_bound_judge(fa_machine_bound *bound, double p50_us, double clock_mhz)
{
    if (!bound->done || !bound->bound.known || !(p50_us > 0))
        return;
    const double mhz = clock_mhz > 0 ? clock_mhz : bound->clock_mhz_max;
    bound->percent = 100 * fmax(bound->bound.clocks / mhz, bound->dram_us) / p50_us;
}
