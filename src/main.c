/* fa_bench: options -> problem -> device -> spec -> compile -> check -> timing -> report. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "candidate.h"
#include "emu/emu_preload.h"
#include "report.h"
#include "series.h"

/* The other candidate of --vs, held to the same checks, then timed against the first. */
static fa_status compare(const fa_options *options, fa_result *result, const fa_candidate *first, const fa_buffers *first_buffers)
{
    fa_reason *why = &result->reason;
    fa_candidate other = {.kernel = NULL};
    fa_buffers buffers = {.base = {0}};
    fa_side *side = &result->other;
    fa_device *device = first->device;
    FA_TRY(fa_spec_make_vs(options, &result->problem, &result->main.spec, device->info.sm_count, &side->spec, why));
    side->spec_known = true;
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, device, side, why));
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->problem, device, side, &other, &buffers, why));
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(&other, &result->problem, options, &buffers, &side->check, why));
    fa_stage_enter(result, FA_AT_TIMING);
    FA_TRY(fa_compare(first, first_buffers, &other, &buffers, &result->problem, options, &result->comparison, why));
    fa_stage_enter(result, FA_AT_RECHECK);
    const uint64_t fresh = (uint64_t)options->seed + (uint64_t)options->seeds + 1;
    FA_TRY(fa_check_again(&other, &result->problem, options, &buffers, fresh, &side->check, why));
    FA_TRY(fa_check_again(first, &result->problem, options, first_buffers, fresh, &result->main.check, why));
    fa_candidate_unload(&other, &buffers);
    return FA_PASS;
}

static fa_status measure(const fa_options *options, fa_result *result, const fa_candidate *candidate, const fa_buffers *buffers)
{
    fa_reason *why = &result->reason;
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(candidate, &result->problem, options, buffers, &result->main.check, why));
    if (candidate->device->sample == NULL || options->timing == FA_TIMING_NONE)
        return options->vs == NULL ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "--vs needs times: a GPU, and no --timing none");
    fa_stage_enter(result, FA_AT_TIMING);
    FA_TRY(fa_time(candidate, &result->problem, options, buffers, &result->timing, why));
    result->throughput = fa_throughput_of(&result->timing, &result->problem, &result->device);
    fa_stage_enter(result, FA_AT_RECHECK);
    const uint64_t fresh = (uint64_t)options->seed + (uint64_t)options->seeds;
    FA_TRY(fa_check_again(candidate, &result->problem, options, buffers, fresh, &result->main.check, why));
    return options->vs == NULL ? FA_PASS : compare(options, result, candidate, buffers);
}

static fa_status run_on(const fa_options *options, fa_result *result, fa_device *device, fa_candidate *candidate, fa_buffers *buffers)
{
    fa_reason *why = &result->reason;
    FA_TRY(fa_problem_make(options, &result->problem, why));
    result->problem_known = true;
    FA_TRY(fa_spec_make(options, &result->problem, NULL, 0, &result->main.spec, why)); /* until the device is known */
    result->main.spec_known = true;
    if (!options->compile_only) {
        FA_TRY(fa_device_open(options, device, result->device_choice, why));
        result->device = device->info;
        result->device_known = true;
        FA_TRY(fa_spec_make(options, &result->problem, device->info.arch, device->info.sm_count, &result->main.spec, why));
    }
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, result->device_known ? device : NULL, &result->main, why));
    if (options->compile_only)
        return FA_PASS;
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->problem, device, &result->main, candidate, buffers, why));
    return measure(options, result, candidate, buffers);
}

static void work(const fa_options *options, fa_result *result)
{
    fa_device device = {.self = NULL};
    fa_candidate candidate = {.kernel = NULL};
    fa_buffers buffers = {.base = {0}};
    fa_stage_enter(result, FA_AT_START);
    fa_series_hold_gpu(options);
    result->status = run_on(options, result, &device, &candidate, &buffers);
    if (result->status == FA_ERROR && result->device.bus_id[0] != '\0')
        return; /* a fault took the context with it: the driver cleans up */
    if (candidate.device != NULL)
        fa_candidate_unload(&candidate, &buffers);
    if (device.close != NULL)
        device.close(&device);
}

/* Bad input is refused here, before any work and without a record. */
static fa_status validate(const fa_options *options, fa_reason *why)
{
    fa_problem problem;
    fa_spec spec, other;
    FA_TRY(fa_problem_make(options, &problem, why));
    FA_TRY(fa_spec_make(options, &problem, NULL, 0, &spec, why));
    FA_TRY(fa_check_references_parse(options->check, why));
    FA_TRY(fa_report_writable(options, why));
    return options->vs == NULL ? FA_PASS : fa_spec_make_vs(options, &problem, &spec, 0, &other, why);
}

int main(int argc, char *argv[])
{
    fa_options options;
    static fa_series series; /* as long as the process */
    fa_reason why;
    fa_status status = fa_options_parse(argc, argv, &options, &why);
    if (status == FA_PASS && (options.help || options.version || options.list_kernels))
        return fa_report_facts(&options);
    if (status == FA_PASS)
        status = fa_series_make(&options, argc, argv, &series, &why);
    for (int32_t i = 0; i < series.count && status == FA_PASS; i++)
        status = validate(&series.options[i], &why);
    if (status != FA_PASS)
        return fa_report_refusal(status, &why);
    fa_emu_preload((fa_sanitize)options.sanitize, argv);
    return fa_series_run(work, &series);
}
