/* fa_bench: options -> runs -> problem -> device -> spec -> compile -> check -> timing -> report. */
#include <string.h>

#include "run/candidate.h"
#include "child.h"
#include "emu/preload.h"
#include "report/text.h"

/* The other candidate of --vs, held to the same checks, then timed against the first. */
static fa_status compare(const fa_options *options, fa_result *result, fa_loaded on[2])
{
    fa_reason *why = &result->reason;
    fa_side *side = &result->other;
    fa_loaded *first = &on[0], *other = &on[1];
    fa_device *device = first->candidate.device;
    FA_TRY(fa_spec_make_vs(options, &result->problem, &result->main.spec, device->info.sm_count, &side->spec, why));
    side->spec_known = true;
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, device, side, why));
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->problem, device, side, other, why));
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(&other->candidate, &result->problem, options, &other->buffers, &side->check, why));
    fa_stage_enter(result, FA_AT_TIMING);
    FA_TRY(fa_compare(&first->candidate, &first->buffers, &other->candidate, &other->buffers, &result->problem, options,
                      &result->comparison, why));
    fa_stage_enter(result, FA_AT_RECHECK);
    const uint64_t fresh = (uint64_t)options->seed + (uint64_t)options->seeds + 1;
    FA_TRY(fa_check_again(&other->candidate, &result->problem, options, &other->buffers, fresh, &side->check, why));
    return fa_check_again(&first->candidate, &result->problem, options, &first->buffers, fresh, &result->main.check,
                          why);
}

static fa_status measure(const fa_options *options, fa_result *result, fa_loaded on[2])
{
    fa_reason *why = &result->reason;
    const fa_candidate *candidate = &on[0].candidate;
    const fa_buffers *buffers = &on[0].buffers;
    fa_stage_enter(result, FA_AT_CHECK);
    FA_TRY(fa_check(candidate, &result->problem, options, buffers, &result->main.check, why));
    if (candidate->device->sample == NULL || options->timing == FA_TIMING_NONE)
        return options->vs == NULL ? FA_PASS
                                   : fa_refuse(why, FA_NOT_RUN, "--vs needs times: a GPU, and no --timing none");
    fa_stage_enter(result, FA_AT_TIMING);
    FA_TRY(fa_time(candidate, &result->problem, options, buffers, &result->timing, why));
    result->throughput = fa_throughput_of(&result->timing, &result->problem, &result->device);
    fa_stage_enter(result, FA_AT_RECHECK);
    const uint64_t fresh = (uint64_t)options->seed + (uint64_t)options->seeds;
    FA_TRY(fa_check_again(candidate, &result->problem, options, buffers, fresh, &result->main.check, why));
    return options->vs == NULL ? FA_PASS : compare(options, result, on);
}

static fa_status run_on(const fa_options *options, fa_result *result, fa_device *device, fa_loaded on[2])
{
    fa_reason *why = &result->reason;
    FA_TRY(fa_problem_make(options, &result->problem, why));
    result->problem_known = true;
    FA_TRY(fa_spec_make(options, &result->problem, NULL, 0, &result->main.spec, why)); /* until the device is known */
    result->main.spec_known = true;
    if (!options->compile_only) {
        FA_TRY(fa_device_open(options, device, why));
        memcpy(result->device_choice, device->choice, sizeof result->device_choice);
        result->device = device->info;
        result->device_known = true;
        FA_TRY(
            fa_spec_make(options, &result->problem, device->info.arch, device->info.sm_count, &result->main.spec, why));
    }
    fa_stage_enter(result, FA_AT_COMPILE);
    FA_TRY(fa_candidate_compile(options, result->device_known ? device : NULL, &result->main, why));
    FA_TRY(fa_candidate_keep(options, result->device_known ? device : NULL, &result->main, why));
    if (options->compile_only)
        return FA_PASS;
    fa_stage_enter(result, FA_AT_LOAD);
    FA_TRY(fa_candidate_load(options, &result->problem, device, &result->main, &on[0], why));
    return measure(options, result, on);
}

static void work(const fa_options *options, fa_result *result, fa_device *device)
{
    fa_loaded on[2] = {{.candidate.kernel = NULL}};
    fa_stage_enter(result, FA_AT_START);
    result->status = run_on(options, result, device, on);
    if (result->status == FA_ERROR && result->device.bus_id[0] != '\0') {
        *device = (fa_device){.self = NULL}; /* a fault took the context with it: the driver cleans up */
        return;
    }
    fa_candidate_unload(&on[1]);
    fa_candidate_unload(&on[0]);
}

int main(int argc, char *argv[])
{
    fa_options options;
    fa_runs runs = {.count = 0};
    fa_records records;
    fa_child child = {.pid = 0};
    fa_reason why;
    int code = 0;
    fa_status status = fa_options_parse(argc, argv, &options, &why);
    if (status == FA_PASS && (options.help || options.version || options.list_kernels))
        return fa_report_facts(&options);
    if (status == FA_PASS)
        fa_emu_preload((fa_sanitize)options.sanitize, argv);
    if (status == FA_PASS)
        status = fa_runs_make(argc, argv, &options, &runs, &why);
    for (size_t i = 0; status == FA_PASS && i < runs.count; i++)
        status = fa_runs_blame(&runs, &runs.at[i], fa_candidate_validate(&runs.at[i].options, &why), &why);
    if (status == FA_PASS)
        status = fa_report_begin(&options, &records, &why);
    if (status != FA_PASS)
        code = fa_report_refusal(status, &why);
    for (size_t i = 0; status == FA_PASS && i < runs.count && !records.lost; i++) {
        const int ended = fa_report(fa_child_run(&child, work, &runs, i), &runs.at[i], &records);
        code = code != 0 ? code : ended;
    }
    fa_child_end(&child);
    fa_runs_free(&runs);
    return code;
}
