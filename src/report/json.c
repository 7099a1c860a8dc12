#include "report/json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compile/emu.h"
#include "report/check.h"
#include "report/fields.h"
#include "report/library.h"
#include "report/problem.h"
#include "report/provenance.h"

/* What the module says it was compiled with; what was asked for until there is one. */
static void put_config(cJSON *record, const char *key, const fa_candidate_record *candidate)
{
    const fa_kernel_info *real = &candidate->module.info;
    fa_knobs tile = candidate->spec.knobs;
    if (candidate->module_known && real->abi == FA_ABI)
        tile = (fa_knobs){real->m,       real->n,        real->warps,  real->vec,   real->stages,
                          real->swizzle, real->acc_fp16, real->splits, real->maxreg};
    cJSON *config = object_if(candidate->spec.kind == FA_KIND_HAND, record, key);
    if (config != NULL)
        put_tile(config, &tile);
}

static void put_device(cJSON *record, const fa_result *result)
{
    const fa_device_info *d = &result->device;
    cJSON *device = object_if(result->device_known, record, "device");
    if (device == NULL)
        return;
    PUT_FIELDS(device, d, backend, name, arch, sm_count, clock_mhz_max, memory_bytes, memory_gbytes_per_s, l2_bytes,
               smem_block_bytes);
}

static void put_ptxas(cJSON *record, const fa_candidate_record *candidate)
{
    const fa_ptxas *x = &candidate->module.ptxas;
    cJSON *ptxas = object_if(x->known, record, "ptxas");
    if (ptxas == NULL) {
        put_text(record, "ptxas_reason", x->unknown_reason);
        cJSON_AddNullToObject(record, "occupancy");
        return;
    }
    PUT_FIELDS(ptxas, x, arch, registers, smem_static_bytes, smem_dynamic_bytes, smem_total_bytes, spill_store_bytes,
               spill_load_bytes, stack_bytes, barriers);
    cJSON *warnings = cJSON_AddArrayToObject(ptxas, "warnings");
    for (int32_t i = 0; i < x->warning_count; i++)
        cJSON_AddItemToArray(warnings, cJSON_CreateString(x->warnings[i]));
    const fa_occupancy *o = &candidate->module.occupancy;
    cJSON *occupancy = object_in(record, "occupancy");
    PUT_FIELDS(occupancy, o, blocks_per_sm, warps_per_sm, fraction);
}

/* What the machine code cannot be faster than: null unless asked for; {"unknown": why} where it cannot be told. */
static void put_bound(cJSON *record, const fa_machine_bound *b)
{
    cJSON *bound = object_if(b->done, record, "bound");
    if (bound == NULL)
        return;
    if (!b->bound.known) {
        put_text(bound, "unknown", b->bound.unknown_reason);
        return;
    }
    cJSON_AddStringToObject(bound, "binds", fa_machine_bound_binds(b));
    cJSON_AddStringToObject(bound, "second", fa_pipe_name(b->bound.second));
    put(bound, "us", b->us_at_max);
    put(bound, "clock_mhz_max", b->clock_mhz_max);
    put(bound, "us_at_min_clock", b->clock_mhz_min > 0 ? b->us_at_min : NAN);
    put(bound, "clock_mhz_min", b->clock_mhz_min > 0 ? b->clock_mhz_min : NAN);
    put(bound, "us_at_power_low", b->power_mhz_low > 0 ? b->us_at_power_low : NAN);
    put(bound, "clock_mhz_power_low", b->power_mhz_low > 0 ? b->power_mhz_low : NAN);
    put(bound, "us_at_power_high", b->power_mhz_high > 0 ? b->us_at_power_high : NAN);
    put(bound, "clock_mhz_power_high", b->power_mhz_high > 0 ? b->power_mhz_high : NAN);
    put(bound, "clocks", b->bound.clocks);
    PUT_FIELDS(bound, b, dram_us, sm_count, grid, threads);
    cJSON *pipes = object_in(bound, "pipe_clocks");
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        put(pipes, fa_pipe_name((fa_pipe)pipe), b->bound.pipe_clocks[pipe]);
    put(pipes, "l2", b->bound.l2_clocks);
    put(bound, "percent_of_bound", b->percent > 0 ? b->percent : NAN);
    if (!b->estimate.known)
        return;
    put(bound, "estimate_us", b->estimate.us);
    put(bound, "estimate_us_low", b->estimate.us_low);
    put(bound, "estimate_us_high", b->estimate.us_high);
    cJSON *terms = object_in(bound, "estimate_terms_us");
    char name[32];
    for (int term = 0; term < FA_TERM_COUNT; term++)
        put(terms, fa_term_name((fa_term)term, name), b->estimate.terms_us[term]);
}

/* What is launched, in order. Copies that a launch leaves out, because the tensor lies right, are there too. */
static void put_steps(cJSON *launch, const fa_plan *plan)
{
    static const char *const tensors[] = FA_OF_NAMES;
    cJSON *steps = cJSON_AddArrayToObject(launch, "steps");
    for (int i = 0; i < plan->count; i++) {
        const fa_step *s = &plan->steps[i];
        cJSON *step = cJSON_CreateObject();
        cJSON_AddItemToArray(steps, step);
        char entry[32];
        snprintf(entry, sizeof entry, "fa_step_%d", s->entry);
        put_text(step, "entry",
                 s->entry == 0                ? "fa_kernel"
                 : s->entry == FA_STEP_BEFORE ? "fa_before"
                 : s->entry == FA_STEP_AFTER  ? "fa_after"
                                              : entry);
        put(step, "line", s->line > 0 ? s->line : NAN);
        put_text(step, "copies", tensors[s->tensor]);
        cJSON_AddItemToObject(step, "grid", cJSON_CreateIntArray(s->grid, 3));
        cJSON_AddItemToObject(step, "block", cJSON_CreateIntArray(s->block, 3));
        put(step, "smem_dynamic_bytes", s->shared_bytes);
    }
}

static void put_launch(cJSON *record, const fa_candidate_record *candidate)
{
    cJSON *launch = object_if(candidate->launch.grid != 0, record, "launch");
    if (launch == NULL)
        return;
    PUT_FIELDS(launch, &candidate->launch, grid, threads, smem_dynamic_bytes, cluster, tiles_m, tiles, workspace_bytes);
    if (candidate->launch.plan.count > 0)
        put_steps(launch, &candidate->launch.plan);
}

static void put_timing(cJSON *record, const fa_result *result, double beat_us)
{
    const fa_timing *t = &result->timing;
    cJSON *timing = object_if(t->done && result->status != FA_WRONG, record, "timing");
    cJSON *beaten = object_if(t->beaten_us > 0, record, "beaten");
    if (beaten != NULL) {
        put(beaten, "by_us", beat_us);
        put(beaten, "at_least_us", t->beaten_us);
        put(beaten, "samples", FA_BEATEN_SAMPLES);
        put(beaten, "error_probability", ldexp(1.0, -FA_BEATEN_SAMPLES));
    }
    if (timing == NULL) {
        cJSON_AddNullToObject(record, "throughput");
        return;
    }
    put(timing, "p50_us", t->us.p50);
    put(timing, "p90_us", t->us.p90);
    put(timing, "p10_us", t->us.p10);
    put(timing, "min_us", t->us.min);
    put(timing, "mean_us", t->us.mean);
    put_pair(timing, "p50_ci95_us", t->us.ci95);
    put(timing, "samples", (double)t->us.count);
    put(timing, "discarded", t->discarded);
    cJSON_AddStringToObject(timing, "method", t->method == FA_TIMING_GRAPH ? "graph" : "event");
    put(timing, "launches_per_sample", t->launches_per_sample);
    cJSON_AddStringToObject(timing, "l2", t->l2 == FA_L2_COLD ? "cold" : "warm");
    cJSON_AddStringToObject(timing, "l2_persist", t->persist_kv ? "kv" : "none");
    cJSON *clock = object_in(timing, "sm_clock_mhz");
    put(clock, "p50", t->sm_clock_mhz_p50 > 0 ? t->sm_clock_mhz_p50 : NAN);
    cJSON_AddBoolToObject(timing, "throttled", t->throttled);
    cJSON_AddStringToObject(timing, "stopped_by", t->settled ? "interval" : "budget");
    PUT_FIELDS(timing, t, impossible, poisoned, power_capped, gated);
    put(timing, "fresh_ratio", t->invariance_ratio);
    PUT_FIELDS(timing, t, noisy, noisy_reason);
    put(timing, "other_processes", t->other_processes < 0 ? NAN : t->other_processes);
    PUT_FIELDS(timing, t, floor_us, roofline_us, warmup_ms);
    put(object_in(timing, "pace"), "rest_ms", t->rest_ms);
    put(timing, "percent_of_peak_at_clock", t->percent_of_peak);
    const fa_throughput *h = &result->throughput;
    cJSON *throughput = object_in(record, "throughput");
    PUT_FIELDS(throughput, h, tflops, peak_tflops, peak_boost_tflops, fraction_of_peak, gbytes_per_s);
}

/* Whether data races were looked for, and under which schedules of the emulator. */
static void put_race(cJSON *record, const fa_result *result, const fa_options *options)
{
    const int32_t launched = result->check.schedules;
    const bool looked_for = options->sanitize == FA_SANITIZE_THREAD && launched != 0;
    cJSON *race = object_in(record, "race");
    cJSON_AddBoolToObject(race, "looked_for", looked_for);
    cJSON_AddBoolToObject(race, "all_calls",
                          looked_for && strstr(result->main.module.options, FA_EMU_ALL_CALLS) != NULL);
    cJSON *schedules = cJSON_AddArrayToObject(race, "schedules");
    for (int schedule = 0; looked_for && schedule < FA_SCHEDULES; schedule++) {
        char word[32];
        if (launched >> schedule & 1)
            cJSON_AddItemToArray(schedules, cJSON_CreateString(fa_word(FA_SCHEDULE_WORDS, schedule, word)));
    }
}

/* What the emulator found; the first one's class by itself. */
static void put_findings(cJSON *record, const fa_findings *found)
{
    put_text(record, "fault", found->listed > 0 ? found->list[0].fault : "");
    cJSON *findings = object_in(record, "findings");
    put(findings, "count", found->count);
    cJSON_AddBoolToObject(findings, "more", found->more);
    cJSON *list = cJSON_AddArrayToObject(findings, "list");
    for (int32_t i = 0; i < found->listed; i++) {
        const fa_finding *f = &found->list[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "class", f->fault);
        put_text(one, "memory", f->memory);
        cJSON *at = cJSON_AddArrayToObject(one, "at");
        for (int k = 0; k < 2 && f->at[k][0] != '\0'; k++)
            cJSON_AddItemToArray(at, cJSON_CreateString(f->at[k]));
        cJSON_AddStringToObject(one, "text", f->text);
        cJSON_AddItemToArray(list, one);
    }
}

static void put_paired(cJSON *record, const fa_result *result)
{
    const fa_paired *c = &result->paired;
    cJSON *vs = object_if(result->other_begun, record, "vs");
    if (vs == NULL)
        return;
    cJSON_AddStringToObject(vs, "kernel", result->other.spec.name);
    put_text(vs, "variant", result->other.spec.row != NULL ? result->other.spec.row->name : "");
    put_config(vs, "config", &result->other);
    fa_report_contract(vs, &result->other);
    put_word(vs, "dtype", FA_DTYPE_WORDS, result->vs_problem.dtype);
    fa_report_check(vs, &result->other_check, &result->vs_problem);
    put_text(vs, "cubin_sha256", result->other.module.object_sha256.hex);
    put_text(vs, "code_sha256", result->other.module.code_sha256.hex);
    put_text(vs, "compiler", result->other.module.compiler);
    fa_report_library(vs, &result->other);
    if (!c->done || result->status == FA_WRONG) {
        cJSON_AddNullToObject(vs, "ratio");
        return;
    }
    put(vs, "ratio", c->ratio);
    put_pair(vs, "ratio_ci95", c->ratio_ci95);
    PUT_FIELDS(vs, c, aa_noise, blocks, p50_us, other_p50_us);
    cJSON_AddStringToObject(vs, "method", c->method == FA_TIMING_GRAPH ? "graph" : "event");
    PUT_FIELDS(vs, c, discarded, throttled);
    cJSON_AddStringToObject(vs, "stopped_by", c->settled ? "interval" : "budget");
    cJSON_AddBoolToObject(vs, "accepted", c->accepted);
    const bool same = result->main.module.code_sha256.hex[0] != '\0' &&
                      strcmp(result->main.module.code_sha256.hex, result->other.module.code_sha256.hex) == 0;
    cJSON_AddBoolToObject(vs, "same_code", same);
}

/* Who serves, by which rule. */
static void put_selection(cJSON *record, const fa_candidate_record *candidate)
{
    const fa_spec *spec = &candidate->spec;
    cJSON_AddStringToObject(record, "kernel", spec->name);
    put_text(record, "variant", spec->row != NULL ? spec->row->name : "");
    put(record, "rule", spec->rule > 0 ? spec->rule : NAN);
    put_config(record, "config", candidate);
}

static void put_selections(cJSON *record, const fa_result *result, const fa_command *run)
{
    put_selection(record, &result->main);
    cJSON_AddStringToObject(record, "arch", result->main.spec.arch);
    put(record, "sm_count", result->main.spec.sm_count);
    fa_report_problem(record, &result->problem, &run->options);
    put_device(record, result);
    cJSON *vs = object_if(run->options.vs.name[0] != '\0', record, "vs");
    if (vs != NULL)
        put_selection(vs, &result->other);
    cJSON *provenance = object_in(record, "provenance");
    if (run->options.line > 0)
        put(provenance, "line", run->options.line);
    char *command = fa_command_text(run);
    cJSON_AddStringToObject(provenance, "command", command);
    free(command);
}

static void put_run(cJSON *record, const fa_result *result, const fa_command *run)
{
    cJSON_AddStringToObject(record, "kernel", result->main.spec.name);
    put_text(record, "variant", result->main.spec.row != NULL ? result->main.spec.row->name : "");
    put_config(record, "config", &result->main);
    fa_report_contract(record, &result->main);
    fa_report_problem(record, &result->problem, &run->options);
    put_device(record, result);
    put_ptxas(record, &result->main);
    put_bound(record, &result->bound);
    put_launch(record, &result->main);
    fa_report_library(record, &result->main);
    put_timing(record, result, run->options.beat);
    fa_report_check(record, &result->check, &result->problem);
    put_race(record, result, &run->options);
    put_findings(record, &result->check.found);
    put_paired(record, result);
    fa_report_provenance(record, result, run);
}

char *fa_report_json(const fa_result *result, const fa_command *run)
{
    const bool select = run->options.select;
    cJSON *record = cJSON_CreateObject();
    cJSON_AddStringToObject(record, "schema", select ? "fa_bench.selection/1" : "fa_bench.result/1");
    cJSON_AddStringToObject(record, "status", fa_status_name(result->status));
    put_text(record, "reason", result->status == FA_PASS ? "" : result->reason.text);
    (select ? put_selections : put_run)(record, result, run);
    char *text = run->options.line > 0 ? cJSON_PrintUnformatted(record) : cJSON_Print(record);
    FA_ASSERT(text != NULL);
    cJSON_Delete(record);
    char *valid = fa_utf8(text); /* paths and compilers may say anything */
    free(text);
    return valid;
}
