/* fa_bench: options -> runs -> device -> compile -> load -> check -> timing -> report. */
#include "base/process.h"
#include "emu/core/preload.h"
#include "pool.h"
#include "report/records.h"
#include "report/text.h"
#include "run/devices.h"

/* The other candidate of --vs passes the same checks; then it is timed against the first. */
static fa_status compare(const fa_options *options, fa_result *result, fa_candidate *first, fa_candidate *other)
{
    fa_reason *why = &result->reason;
    const uint64_t seed = (uint64_t)options->seed + (uint64_t)options->seeds; /* of the check after timing */
    result->other_begun = true;
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, &result->vs_problem, first->device, &result->other, why));
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->vs_problem, first->device, &result->other, other, why));
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(other, options, &result->other_check, why));
    fa_stage_enter(result, FA_AT_TIMING);
    FA_TRY(fa_time_paired(first, other, options, &result->paired, why));
    fa_stage_enter(result, FA_AT_RECHECK);
    FA_TRY(fa_check_again(other, options, seed + 1, &result->other_check, why));
    return fa_check_again(first, options, seed + 1, &result->check, why);
}

static fa_status measure(const fa_options *options, fa_result *result, fa_candidate *first, fa_candidate *other)
{
    fa_reason *why = &result->reason;
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(first, options, &result->check, why));
    if (first->device->sample == NULL || options->timing == FA_TIMING_NONE)
        return FA_PASS;
    fa_stage_enter(result, FA_AT_TIMING);
    fa_timing *timing = &result->timing;
    FA_TRY(fa_time(first, options, timing, why));
    if (!timing->done)
        return FA_PASS;
    first->about_us = timing->us.p50;
    result->throughput = fa_throughput_of(timing->us.p50, timing->sm_clock_mhz_p50, &result->problem, &result->device);
    fa_machine_bound_judge(&result->bound, timing->us.p50, timing->sm_clock_mhz_p50);
    fa_stage_enter(result, FA_AT_RECHECK);
    FA_TRY(fa_check_again(first, options, (uint64_t)options->seed + (uint64_t)options->seeds, &result->check, why));
    return options->vs.name[0] != '\0' ? compare(options, result, first, other) : FA_PASS;
}

static fa_status open_device(const fa_options *options, fa_result *result, fa_device *device)
{
    fa_reason *why = &result->reason;
    FA_TRY(fa_device_open(options, device, why));
    FA_TRY(fa_result_on(result, device));
    if (options->vs.name[0] != '\0' && (device->sample == NULL || options->timing == FA_TIMING_NONE))
        return fa_refuse(why, FA_NOT_RUN, "--vs needs times: a GPU, and no --timing none");
    return FA_PASS;
}

static fa_status run_on(const fa_options *options, fa_result *result, fa_device *device, fa_candidate on[2])
{
    fa_reason *why = &result->reason;
    if (options->select ? options->device != FA_DEVICE_AUTO : !options->compile_only)
        FA_TRY(open_device(options, result, device));
    if (options->select)
        return FA_PASS;
    const fa_device *target = options->compile_only ? NULL : device;
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, &result->problem, target, &result->main, why));
    FA_TRY(fa_candidate_keep(options, target, &result->main, why));
    result->bound = fa_machine_bound_of(options, &result->main, &result->problem, target);
    if (options->compile_only)
        return FA_PASS;
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->problem, device, &result->main, &on[0], why));
    return measure(options, result, &on[0], &on[1]);
}

static void work(const fa_command *run, fa_result *result, fa_device *device)
{
    fa_candidate on[2] = {{.device = NULL}};
    fa_stage_enter(result, FA_AT_START);
    result->status = run_on(&run->options, result, device, on);
    const bool broken = result->status == FA_ERROR && result->device.bus_id[0] != '\0';
    if (broken)
        *device = (fa_device){.self = NULL}; /* a fault broke the context: the driver cleans up after the process */
    for (int i = 1; i >= 0 && !broken; i--)
        fa_candidate_unload(&on[i]);
}

int main(int argc, char *argv[])
{
    fa_options options;
    fa_runs runs = {.count = 0};
    fa_records records = {.file = -1};
    fa_pool pool = {.runs = NULL};
    fa_reason why;
    int code = 0;
    fa_process_begin();
    fa_status status = fa_options_parse(argc, argv, &options, &why);
    if (status == FA_PASS && (options.help || options.version || options.list_kernels || options.doctor))
        return fa_report_facts(&options);
    if (status == FA_PASS)
        fa_emu_preload((fa_sanitize)options.sanitize, argv);
    FA_THEN(status, fa_runs_make(argc, argv, &options, &runs, &why));
    FA_THEN(status, fa_records_begin(&options, &runs, &records, &why));
    if (status == FA_PASS)
        fa_pool_begin(&pool, work, &runs);
    const fa_result *result;
    for (size_t i = 0; !records.lost && (result = fa_pool_next(&pool, i, &status, &why)) != NULL; i++) {
        int ended = fa_report_run(result, &runs.at[i]->options, pool.dump);
        if (fa_records_write(result, runs.at[i], &records, &why) != FA_PASS)
            ended = fa_report_refusal(FA_ERROR, &why);
        code = code != 0 ? code : ended;
        fa_runs_done(&runs, i);
    }
    if (status != FA_PASS)
        code = fa_report_refusal(status, &why);
    fa_pool_end(&pool);
    fa_runs_free(&runs);
    return code;
}
