#include "check/library_reference.h"

#include <stdio.h>
#include <stdlib.h>

#include "check/rules.h"
#include "run/params.h"

void fa_library_reference_close(fa_device *device, fa_library_reference *library)
{
    if (library->out)
        device->free(device, library->out);
    if (library->kernel)
        device->unload(device, library->kernel);
    free(library->half);
    free(library->full);
    *library = (fa_library_reference){.on = false};
}

static void drop(fa_device *device, fa_library_reference *library, const char *reason, char missing[FA_MISSING_SIZE])
{
    fa_library_reference_close(device, library);
    snprintf(missing, FA_MISSING_SIZE, "cublas: %.240s", reason);
}

static const fa_kernel_row *reference_row(void)
{
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (fa_registry_at(i)->traits.is_reference)
            return fa_registry_at(i);
    return NULL;
}

void fa_library_reference_open(const fa_candidate *candidate, fa_library_reference *library,
                               char missing[FA_MISSING_SIZE])
{
    fa_device *device = candidate->device;
    const fa_kernel_row *row = reference_row();
    fa_reason why = {""};
    if (!row) {
        drop(device, library, "not in the registry", missing);
        return;
    }
    if (candidate->spec->row == row) {
        drop(device, library, "is the kernel under test, so it is no reference", missing);
        return;
    }
    const int32_t features = fa_problem_features(candidate->problem);
    if (features != 0) {
        char asked[FA_FEATURES_TEXT];
        snprintf(why.text, sizeof why.text, "does not serve %s", fa_features_text(features, asked));
        drop(device, library, why.text, missing);
        return;
    }
    fa_spec spec = *candidate->spec;
    spec.row = row;
    spec.kind = row->kind;
    spec.knobs = row->knobs;
    spec.source[0] = '\0';
    spec.lse = false;
    snprintf(spec.name, sizeof spec.name, "%s", row->name);
    const size_t count = library->count = fa_problem_o_count(candidate->problem);
    fa_status status = device->load(device, &spec, NULL, candidate->problem, &library->kernel, &why);
    if (status == FA_PASS)
        status = device->alloc(device, count * sizeof *library->half, &library->out, &why);
    if (status != FA_PASS) {
        drop(device, library, why.text, missing);
        return;
    }
    library->half = fa_alloc(count * sizeof *library->half);
    library->full = fa_alloc(count * sizeof *library->full);
    library->on = true;
}

/* The candidate's inputs, and the library's own output, packed. */
static fa_params params_of(const fa_candidate *candidate, const fa_library_reference *library, const fa_launch *launch)
{
    const fa_layout packed = fa_layout_of(candidate->problem, FA_STRIDES_PACKED, 0, FA_O);
    fa_params params = fa_buffers_params(&candidate->buffers, candidate->problem, launch);
    params.o = (void *)(uintptr_t)library->out;
    params.o_stride_b = packed.stride_b;
    params.o_stride_h = packed.stride_h;
    params.o_stride_s = packed.stride_s;
    params.lse = NULL;
    return params;
}

fa_status fa_library_reference_run(const fa_candidate *candidate, const fa_draw *draw, const fa_reference *reference,
                                   fa_library_reference *library, char missing[FA_MISSING_SIZE], fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_launch none = {.grid = 1, .threads = 1};
    const fa_params params = params_of(candidate, library, &none);
    library->answered = false;
    FA_TRY(device->fill16(device, library->out, FA_POISON, library->count, why));
    fa_reason inner = {""};
    const fa_status status = device->launch(device, library->kernel, &none, &params, &inner);
    if (status == FA_INFEASIBLE && !draw->as_asked)
        return FA_PASS; /* this layout alone */
    if (status == FA_NOT_RUN || status == FA_INFEASIBLE) {
        drop(device, library, inner.text, missing);
        return FA_PASS;
    }
    if (status != FA_PASS)
        return fa_refuse(why, status, "the cublas reference: %s", inner.text);
    FA_TRY(device->copy_out(device, library->half, library->out, library->count * sizeof *library->half, why));
    const fa_dtype dtype = candidate->problem->dtype;
    const double rule = fa_rule_tolerance(dtype);
    const fa_verdict own = fa_judge(candidate->problem, reference, library->half, FA_LIBRARY_TILE, rule, rule);
    if (!own.passed) {
        char *reason = fa_format("its own result is wrong here, so no reference: %s", own.failure);
        drop(device, library, reason, missing);
        free(reason);
        return FA_PASS;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < library->count; i++)
        library->full[i] = fa_element_to_float(dtype, library->half[i]);
    library->answered = true;
    return FA_PASS;
}
