#include "run/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_candidate_validate(const fa_options *options, fa_reason *why)
{
    fa_problem problem;
    fa_spec spec, other;
    FA_TRY(fa_problem_make(options, &problem, why));
    FA_TRY(fa_spec_make(options, &problem, NULL, 0, &spec, why));
    FA_TRY(fa_check_references_parse(options->check, why));
    if (options->cubin != NULL && spec.kind != FA_KIND_HAND)
        return fa_refuse(why, FA_USAGE, "--cubin takes a kernel that is compiled here: %s is a library", spec.name);
    if (options->cubin != NULL && options->device == FA_DEVICE_EMU && !options->compile_only)
        return fa_refuse(why, FA_USAGE, "--cubin is what a GPU runs: not with --device emu, but for --compile-only");
    return options->vs == NULL ? FA_PASS : fa_spec_make_vs(options, &problem, &spec, 0, &other, why);
}

static fa_status compile_for_emu(const fa_options *options, fa_side *side, fa_reason *why)
{
    fa_module figures = side->module;
    FA_TRY(fa_compile_emu(&side->spec, (fa_sanitize)options->sanitize, &side->module, why));
    side->module.ptxas = figures.ptxas;
    side->module.occupancy = figures.occupancy;
    side->module.code_sha256 = figures.code_sha256;
    memcpy(side->module.same_code_as, figures.same_code_as, sizeof figures.same_code_as);
    return FA_PASS;
}

fa_status fa_candidate_compile(const fa_options *options, const fa_device *device, fa_side *side, fa_reason *why)
{
    const bool emu = device != NULL && strcmp(device->info.backend, "emu") == 0;
    fa_module *module = &side->module;
    if (side->spec.kind != FA_KIND_HAND) {
        if (options->compile_only)
            return fa_refuse(why, FA_NOT_RUN, "%s is a library: nothing to compile", side->spec.name);
        return FA_PASS;
    }
    if (emu && side->spec.row != NULL && side->spec.row->traits.emu_not_run)
        return fa_refuse(why, FA_NOT_RUN, "%s is not emulated: it needs a GPU", side->spec.name);
    if (!emu && options->sanitize != FA_SANITIZE_NONE)
        return fa_refuse(why, FA_USAGE, "--sanitize is for --device emu; on a GPU use compute-sanitizer");
    const fa_status status = fa_compile_cuda(&side->spec, module, why);
    if (status == FA_NOT_RUN && emu) {
        *module = (fa_module){.ptxas.known = false};
        snprintf(module->ptxas.unknown_reason, sizeof module->ptxas.unknown_reason, "%.255s", why->text);
    } else {
        side->module_known = module->ptxas.known;
        FA_TRY(status);
    }
    if (emu)
        FA_TRY(compile_for_emu(options, side, why));
    else if (device != NULL && fa_needs_ptx(side->spec.arch, device->info.arch))
        FA_TRY(fa_compile_ptx(&side->spec, module, why));
    side->module_known = true;
    return FA_PASS;
}

fa_status fa_candidate_keep(const fa_options *options, const fa_device *device, const fa_side *side, fa_reason *why)
{
    char *object = NULL;
    size_t size = 0;
    if (options->cubin == NULL)
        return FA_PASS;
    if (device != NULL && strcmp(device->info.backend, "emu") == 0)
        return fa_refuse(why, FA_NOT_RUN, "--cubin needs a GPU, or --compile-only: the emulator runs no cubin");
    FA_TRY(fa_read_file(side->module.path, &object, &size, why));
    const fa_status status = fa_write_file(options->cubin, object, size, why);
    free(object);
    return status;
}

fa_status fa_candidate_load(const fa_options *options, const fa_problem *problem, fa_device *device, fa_side *side,
                            fa_loaded *on, fa_reason *why)
{
    fa_candidate *candidate = &on->candidate;
    *candidate = (fa_candidate){.device = device, .spec = &side->spec};
    if (side->spec.kind == FA_KIND_HAND) {
        side->launch = fa_launch_of(&side->module.info, problem, device->info.sm_count);
        candidate->nondeterministic = side->module.info.nondeterministic != 0;
        if (side->launch.grid == 0)
            return fa_refuse(why, FA_INFEASIBLE, "more than 2147483647 blocks in a launch");
    }
    if (side->spec.row != NULL && side->spec.row->traits.nondeterministic)
        candidate->nondeterministic = true;
    candidate->launch = side->launch;
    FA_TRY(fa_buffers_make(device, problem, side->launch.workspace_bytes, options->misalign, &on->buffers, why));
    FA_TRY(device->load(device, &side->spec, &side->module, problem, &candidate->kernel, why));
    if (side->spec.kind == FA_KIND_HAND)
        return FA_PASS;
    return fa_library_version(side->spec.kind, side->module.compiler, why);
}

void fa_candidate_unload(fa_loaded *on)
{
    fa_device *device = on->candidate.device;
    if (device == NULL)
        return;
    if (on->candidate.kernel != NULL)
        device->unload(device, on->candidate.kernel);
    fa_buffers_free(device, &on->buffers);
    *on = (fa_loaded){.candidate.device = NULL};
}
