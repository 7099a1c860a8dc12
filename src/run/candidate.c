#include "run/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "compile/cuda.h"
#include "compile/emu.h"
#include "cuda/libraries.h"
#include "input/needs.h"
#include "run/params.h"

/* A kernel that the CUDA compiler takes and the emulator's g++ does not is no broken kernel: it is not run, and the
 * reason names the construct with its file and line. Without a CUDA compiler nobody can tell. */
static fa_status explain_emu_failure(fa_status status, bool cuda_took_it, fa_reason *why)
{
    const fa_reason bare = *why;
    if (strstr(bare.text, "No space left on device") != NULL || strstr(bare.text, "File too large") != NULL)
        return fa_refuse(why, FA_ERROR, "%.4000s", bare.text); /* the disk's fault, not the kernel's */
    if (strstr(bare.text, "Resource temporarily unavailable") != NULL)
        return fa_refuse(why, FA_ERROR, "the compiler could not start its parts (ulimit -u): %.3900s", bare.text);
    const bool refused = status == FA_COMPILE_ERROR || status == FA_INFEASIBLE ||
                         (status == FA_ERROR && strstr(bare.text, "undefined symbol") != NULL);
    if (refused && cuda_took_it)
        return fa_refuse(why, FA_NOT_RUN, "the emulator does not take this (the CUDA compiler does): %.3900s",
                         bare.text);
    if (status == FA_COMPILE_ERROR)
        return fa_refuse(why, status,
                         "%.3800s\n(no CUDA compiler was asked: an error of the kernel, or what the emulator does not "
                         "take)",
                         bare.text);
    return status;
}

static fa_status compile_for_emu(const fa_options *options, bool cuda_took_it, fa_candidate_record *record,
                                 fa_reason *why)
{
    fa_module figures = record->module;
    const fa_status status = fa_compile_emu(&record->spec, (fa_sanitize)options->sanitize, &record->module, why);
    if (status != FA_PASS)
        return explain_emu_failure(status, cuda_took_it, why);
    record->module.ptxas = figures.ptxas;
    record->module.occupancy = figures.occupancy;
    record->module.code_sha256 = figures.code_sha256;
    memcpy(record->module.same_code_as, figures.same_code_as, sizeof figures.same_code_as);
    return FA_PASS;
}

/* What the run asks for, and the candidate says of itself. */
static fa_status check_serves(const fa_spec *spec, bool bf16, bool lse, int32_t serves, fa_reason *why)
{
    const bool hand = spec->kind == FA_KIND_HAND;
    const char *name = spec->row != NULL ? spec->row->name : spec->name;
    if (spec->dtype == FA_DTYPE_BF16 && !bf16)
        return fa_refuse(why, FA_INFEASIBLE, "%s does not serve the BF16 tensors that --dtype asks for%s", name,
                         hand ? ": its FA_KERNEL_INFO has no .serves_bf16" : "");
    if (spec->lse && !lse)
        return fa_refuse(why, FA_INFEASIBLE, "%s does not write the log-sum-exp that --lse asks for%s", name,
                         spec->launches ? ": it is in none of its lines"
                         : hand         ? ": its FA_KERNEL_INFO has no .writes_lse"
                                        : "");
    char options[FA_FEATURES_TEXT];
    if ((spec->features & ~serves) != 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s does not serve %s", name,
                         fa_features_text(spec->features & ~serves, options));
    return FA_PASS;
}

/* Asks the library. The file of --library is loaded and asked even where nothing can be run. */
static fa_status ask_library(const fa_options *options, const fa_problem *problem, const fa_device *device,
                             fa_candidate_record *record, fa_reason *why)
{
    const fa_spec *spec = &record->spec;
    const bool gpu = device != NULL && !fa_device_is_emu(device), asked = gpu || spec->row == NULL;
    fa_buffers none = {.device = NULL};
    for (int tensor = 0; tensor < fa_tensor_count(problem, spec->lse); tensor++)
        none.layout[tensor] = fa_layout_of(problem, (fa_strides)options->strides, (uint64_t)options->seed, tensor);
    const fa_launch no_launch = {.grid = 0};
    fa_params params = fa_buffers_params(&none, problem, &no_launch);
    params.sm_count = gpu ? device->info.sm_count : 0;
    const int32_t offset_bytes = 2 * options->misalign;
    const fa_library_question question = {
        .abi = FA_LIBRARY_ABI,
        .arch = fa_arch_cc(gpu ? device->info.arch : spec->arch),
        .alignment_bytes = offset_bytes == 0 ? 256 : offset_bytes & -offset_bytes,
        .lse = spec->lse,
        .problem = &params,
        .features = spec->features,
        .lengths_q = problem->lengths != NULL ? problem->lengths->q : NULL,
        .lengths_kv = problem->lengths != NULL ? problem->lengths->kv : NULL,
    };
    if (asked) {
        fa_library_facts *facts = &record->library;
        const fa_status status = fa_library_of(spec)->describe(spec, &question, facts, why);
        snprintf(record->module.compiler, sizeof record->module.compiler, "%.31s%s%.31s", facts->name,
                 facts->version[0] != '\0' ? " " : "", facts->version);
        record->module.object_sha256 = facts->sha256;
        FA_TRY(status);
    }
    FA_TRY(check_serves(spec, !asked || record->library.serves_bf16, record->library.writes_lse, record->library.serves,
                        why));
    if (options->compile_only)
        return fa_refuse(why, FA_NOT_RUN, "%s is a library: nothing to compile", spec->name);
    return gpu ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "%s is a GPU library: not on the emulator", spec->name);
}

/* Says which row computes gradients, or takes FP8, under this one's name, if any: its rules may end at a head dimension
 * or begin at an architecture, and a tile that is asked for runs in the kernel that is named. Without a row for FP8 a
 * kernel may serve it itself. */
static fa_status refuse_for_variant(const fa_spec *spec, bool backward, fa_reason *why)
{
    const fa_rule *with = NULL;
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++) {
        const fa_traits *of = &fa_registry_serves(rule)->traits;
        if (strcmp(rule->name, spec->row->name) == 0 && (backward ? of->backward : of->fp8) &&
            (with == NULL || rule->max_dim > with->max_dim))
            with = rule;
    }
    if (with == NULL)
        return backward ? fa_refuse(why, FA_INFEASIBLE, "%s does not serve --op backward", spec->row->name) : FA_PASS;
    const int32_t arch = fa_registry_serves(with)->traits.min_arch;
    char from[40] = "";
    if (arch > fa_arch_cc(spec->arch))
        snprintf(from, sizeof from, ", from sm_%d on", arch);
    return fa_refuse(why, FA_INFEASIBLE, "%s does not serve %s: %s does, up to dim %d, by its own tiles%s",
                     spec->row->name, backward ? "--op backward" : "--dtype e4m3", with->variant, with->max_dim, from);
}

/* A row of the registry says what it needs; a file of one's own says it by a static_assert. */
static fa_status check_arch(const fa_spec *spec, fa_reason *why)
{
    const fa_traits *traits = spec->row != NULL ? &spec->row->traits : NULL;
    const bool backward = (spec->features & FA_FEATURE_BACKWARD) != 0;
    if (traits != NULL && traits->backward && !backward)
        return fa_refuse(why, FA_INFEASIBLE, "%s computes gradients: it serves --op backward alone", spec->row->name);
    if (traits != NULL && !traits->backward && backward)
        return refuse_for_variant(spec, true, why);
    if (traits != NULL && !traits->fp8 && (spec->features & FA_FEATURE_FP8) != 0)
        FA_TRY(refuse_for_variant(spec, false, why));
    if (traits == NULL || fa_arch_cc(spec->arch) >= traits->min_arch)
        return FA_PASS;
    return fa_refuse(why, FA_INFEASIBLE, "%s needs sm_%d%s", spec->name, traits->min_arch,
                     traits->arch_specific ? "a" : " or later");
}

/* The cubin with its figures, and what the device runs in its place: the emulator's code, PTX. */
static fa_status compile_hand(const fa_options *options, const fa_device *device, fa_candidate_record *record,
                              fa_reason *why)
{
    const bool emu = fa_device_is_emu(device);
    fa_module *module = &record->module;
    if (options->no_ptxas && !emu)
        return fa_refuse(why, FA_USAGE, "--no-ptxas is for runs on the emulator");
    const fa_status status =
        options->no_ptxas ? fa_refuse(why, FA_NOT_RUN, "--no-ptxas") : fa_compile_cuda(&record->spec, module, why);
    if (status == FA_NOT_RUN && emu) {
        *module = (fa_module){.ptxas.known = false};
        snprintf(module->ptxas.unknown_reason, sizeof module->ptxas.unknown_reason, "%.255s", why->text);
    } else {
        record->module_known = module->ptxas.known;
        FA_TRY(status);
    }
    if (emu)
        return compile_for_emu(options, status == FA_PASS, record, why);
    const bool ptx = device != NULL && fa_needs_ptx(record->spec.arch, device->info.arch);
    return ptx ? fa_compile_ptx(&record->spec, module, why) : FA_PASS;
}

/* Code of a feature that a kernel does not serve need not compile, nor fit: what it serves is asked without features,
 * of a registered kernel by its own tile at dim 64, then of the problem's shape: some kernels serve one alone. */
static fa_status explain_features(const fa_options *options, const fa_device *device, const fa_candidate_record *record,
                                  fa_status status, fa_reason *why)
{
    const fa_kernel_row *row = record->spec.row;
    const int32_t fp8 = FA_FEATURE_FP8 | FA_FEATURE_FP8_KV;
    const int32_t own = FA_FEATURE_BACKWARD | FA_FEATURE_DETERMINISTIC | (row != NULL && row->traits.fp8 ? fp8 : 0);
    if ((status != FA_COMPILE_ERROR && status != FA_INFEASIBLE) || (record->spec.features & ~own) == 0)
        return status;
    fa_candidate_record *without = fa_alloc(sizeof *without);
    fa_spec *spec = &without->spec;
    fa_reason ignored;
    bool compiles = false;
    for (int own_shape = 1; own_shape >= 0 && !compiles; own_shape--) {
        *without = *record;
        spec->features &= own | (own_shape ? 0 : FA_FEATURE_DIM_V);
        spec->dtype = spec->dtype == FA_DTYPE_E4M3 && (spec->features & fp8) == 0 ? FA_DTYPE_BF16 : spec->dtype;
        if (own_shape) {
            spec->v_in_k = false;
            spec->knobs = row != NULL ? row->knobs : spec->knobs;
            spec->dim = spec->dim_v = row != NULL ? 64 : spec->dim;
        }
        compiles = compile_hand(options, device, without, &ignored) == FA_PASS;
    }
    if (compiles && check_serves(&record->spec, true, true, without->module.info.serves, &ignored) == FA_INFEASIBLE) {
        status = FA_INFEASIBLE;
        *why = ignored;
    }
    free(without);
    return status;
}

/* A kernel that a rule chose is named when it refuses: the user asked for another. */
static fa_status add_name(const fa_spec *spec, fa_status status, fa_reason *why)
{
    const fa_reason bare = *why;
    if ((status != FA_INFEASIBLE && status != FA_COMPILE_ERROR) || spec->row == spec->asked)
        return status;
    return fa_refuse(why, status, "%s, which serves this problem: %.4000s", spec->row->name, bare.text);
}

int32_t fa_candidate_needs(const fa_candidate_record *record)
{
    return record->spec.needs | record->module.info.needs | record->library.needs;
}

/* What only some problems with a feature are refused for. */
static fa_status check_pages(const fa_options *options, const fa_problem *problem, const fa_kernel_info *info,
                             const char *name, fa_reason *why)
{
    const int32_t rows = info->page_rows;
    if (problem->pages != NULL && rows > 1 && problem->pages->size % rows != 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s takes pages of a multiple of %d rows: not --page-size %d", name, rows,
                         problem->pages->size);
    if (options->l2_persist != FA_L2_PERSIST_NONE && (problem->pages != NULL || problem->lengths != NULL))
        return fa_refuse(why, FA_INFEASIBLE, "--l2-persist takes dense K and V: no --lengths, no --page-size");
    return FA_PASS;
}

static fa_status check_needs(const fa_options *options, const fa_problem *problem, const fa_candidate_record *record,
                             fa_reason *why)
{
    const fa_spec *spec = &record->spec;
    FA_TRY(check_pages(options, problem, &record->module.info, spec->name, why));
    return fa_needs_check(fa_candidate_needs(record), spec->row != NULL ? spec->row->name : spec->name, options,
                          problem, &spec->knobs, why);
}

static fa_status compile_one(const fa_options *options, const fa_problem *problem, const fa_device *device,
                             fa_candidate_record *record, fa_reason *why)
{
    const bool emu = fa_device_is_emu(device);
    if (record->spec.kind == FA_KIND_LIBRARY)
        return ask_library(options, problem, device, record, why);
    if (emu && record->spec.row != NULL && record->spec.row->traits.emu_not_run)
        return fa_refuse(why, FA_NOT_RUN, "%s is not emulated: it needs a GPU", record->spec.name);
    if (!emu && options->sanitize != FA_SANITIZE_NONE)
        return fa_refuse(why, FA_USAGE, "--sanitize is for --device emu; on a GPU use compute-sanitizer");
    FA_TRY(check_arch(&record->spec, why));
    if (record->spec.dtype != FA_DTYPE_FP16 && record->spec.knobs.acc == 1)
        return fa_refuse(why, FA_INFEASIBLE, "--acc fp16 needs --dtype fp16: products of %s are summed in FP32 only",
                         fa_dtype_name(record->spec.dtype));
    const fa_status compiled = compile_hand(options, device, record, why);
    FA_TRY(add_name(&record->spec, explain_features(options, device, record, compiled, why), why));
    record->module_known = true;
    const fa_kernel_info *info = &record->module.info;
    FA_TRY(check_serves(&record->spec, info->serves_bf16 != 0, info->writes_lse != 0, info->serves, why));
    return check_needs(options, problem, record, why);
}

fa_status fa_candidate_compile(const fa_options *options, const fa_problem *problem, const fa_device *device,
                               fa_candidate_record *record, fa_reason *why)
{
    fa_candidate_record *next = fa_alloc(sizeof *next);
    fa_reason ignored;
    *next = *record;
    fa_status status = compile_one(options, problem, device, record, why);
    while (status == FA_INFEASIBLE && fa_spec_next(problem, &next->spec)) {
        status = compile_one(options, problem, device, next, &ignored) == FA_PASS ? FA_PASS : status;
        if (status == FA_PASS)
            *record = *next;
    }
    free(next);
    return status;
}

fa_status fa_candidate_keep(const fa_options *options, const fa_device *device, const fa_candidate_record *record,
                            fa_reason *why)
{
    char *object = NULL;
    size_t size = 0;
    if (options->cubin == NULL)
        return FA_PASS;
    if (fa_device_is_emu(device))
        return fa_refuse(why, FA_NOT_RUN, "--cubin needs a GPU, or --compile-only: the emulator runs no cubin");
    if (record->module.plan.count > 0)
        return fa_refuse(why, FA_INFEASIBLE, "--cubin: %s launches by lines of its own (FA_LAUNCH)", record->spec.name);
    FA_TRY(fa_read_file(record->module.path, &object, &size, why));
    const fa_status status = fa_write_file(options->cubin, object, size, why);
    free(object);
    return status;
}

fa_status fa_candidate_load(const fa_options *options, const fa_problem *problem, fa_device *device,
                            fa_candidate_record *record, fa_candidate *candidate, fa_reason *why)
{
    const fa_spec *spec = &record->spec;
    *candidate = (fa_candidate){.device = device, .problem = problem, .spec = spec};
    if (spec->kind == FA_KIND_HAND) {
        record->launch = fa_launch_of(&record->module, problem, device->info.sm_count);
        if (record->launch.grid == 0)
            return fa_refuse(why, FA_INFEASIBLE, "more than 2147483647 blocks in a launch");
    }
    if (spec->kind == FA_KIND_LIBRARY)
        record->launch.workspace_bytes = record->library.workspace_bytes;
    candidate->nondeterministic = record->module.info.nondeterministic != 0 || record->library.nondeterministic ||
                                  (spec->row != NULL && spec->row->traits.nondeterministic);
    candidate->needs = fa_candidate_needs(record);
    candidate->launch = record->launch;
    FA_TRY(
        fa_buffers_make(device, problem, record->launch.workspace_bytes, options, spec->lse, &candidate->buffers, why));
    return device->load(device, spec, &record->module, problem, &candidate->kernel, why);
}

void fa_candidate_unload(fa_candidate *candidate)
{
    fa_device *device = candidate->device;
    if (device == NULL)
        return;
    if (candidate->kernel != NULL)
        device->unload(device, candidate->kernel);
    fa_buffers_free(&candidate->buffers);
    *candidate = (fa_candidate){.device = NULL};
}

fa_status fa_candidate_launch(const fa_candidate *candidate, fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_params params = fa_buffers_params(&candidate->buffers, candidate->problem, &candidate->launch);
    return device->launch(device, candidate->kernel, &candidate->launch, &params, why);
}
