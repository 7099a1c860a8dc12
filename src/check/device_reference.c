#include "check/device_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "check/rules.h"
#include "compile/cuda.h"
#include "compile/emu.h"
#include "run/params.h"

enum { PLAIN_ROWS = 8 }; /* of a block of plain.cu */

static const char *name_of(const fa_device_reference *other) { return other->plain ? "plain" : "cublas"; }

void fa_device_reference_close(fa_device *device, fa_device_reference *other)
{
    if (other->out)
        device->free(device, other->out);
    if (other->kernel)
        device->unload(device, other->kernel);
    other->out = 0;
    other->kernel = NULL;
    other->on = false;
}

/* Adds the reason to those of other references. */
static void drop(fa_device *device, fa_device_reference *other, const char *reason, char missing[FA_MISSING_SIZE])
{
    const size_t used = strlen(missing);
    fa_device_reference_close(device, other);
    snprintf(missing + used, FA_MISSING_SIZE - used, "%s%s: %.240s", used > 0 ? "; " : "", name_of(other), reason);
}

static const fa_kernel_row *library_row(void)
{
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (fa_registry_at(i)->traits.is_reference)
            return fa_registry_at(i);
    return NULL;
}

static fa_status load_library(const fa_candidate *candidate, fa_device_reference *other, fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_kernel_row *row = library_row();
    const int32_t features = fa_problem_features(candidate->problem);
    char asked[FA_FEATURES_TEXT];
    if (!row)
        return fa_refuse(why, FA_NOT_RUN, "not in the registry");
    if (candidate->spec->row == row)
        return fa_refuse(why, FA_NOT_RUN, "is the kernel under test, so it is no reference");
    if (features != 0)
        return fa_refuse(why, FA_NOT_RUN, "does not serve %s", fa_features_text(features, asked));
    fa_spec spec = *candidate->spec;
    spec.row = row;
    spec.kind = row->kind;
    spec.knobs = row->knobs;
    spec.source[0] = '\0';
    spec.lse = false;
    snprintf(spec.name, sizeof spec.name, "%s", row->name);
    other->bytes = other->count * sizeof(uint16_t);
    return device->load(device, &spec, NULL, candidate->problem, &other->kernel, why);
}

/* Compiled alike for all candidates: its code depends on the dimensions and the type alone. */
static fa_spec plain_spec(const fa_candidate *candidate, const fa_device_reference *other)
{
    const fa_spec *spec = candidate->spec;
    const fa_problem *problem = candidate->problem;
    fa_spec plain = {.name = "plain",
                     .kind = FA_KIND_HAND,
                     .knobs = {.m = PLAIN_ROWS, .n = 32, .warps = PLAIN_ROWS, .vec = 8, .stages = 1, .splits = 1},
                     .dim = problem->dim,
                     .dim_v = fa_problem_dim_v(problem),
                     .lse = true,
                     .dtype = problem->dtype,
                     .features = (fa_problem_features(problem) & (FA_FEATURE_FP8 | FA_FEATURE_FP8_KV)) |
                                 (other->gradients ? FA_FEATURE_BACKWARD : 0),
                     .compiler = spec->compiler};
    char *source = fa_format("%s/src/cuda/plain.cu", fa_home());
    snprintf(plain.source, sizeof plain.source, "%s", source);
    snprintf(plain.arch, sizeof plain.arch, "%s",
             fa_device_is_emu(candidate->device) ? spec->arch : candidate->device->info.arch);
    free(source);
    return plain;
}

static fa_status check_work(const fa_candidate *candidate, const fa_device_reference *other, fa_reason *why)
{
    const fa_problem *problem = candidate->problem;
    const double work = (double)fa_problem_pairs(problem) * (problem->dim + fa_problem_dim_v(problem));
    const double host = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    /* Seven products in place of two. */
    if (other->work_most > 0 && (other->gradients ? 3.5 : 1.0) * work > (double)other->work_most)
        return fa_refuse(why, FA_NOT_RUN, "%.3g multiply-adds in FP64; --check cpu,plain asks for it nevertheless",
                         work);
    if ((double)other->bytes > fmin((double)candidate->device->info.memory_bytes, host) / 4)
        return fa_refuse(why, FA_NOT_RUN, "its result takes %.1f GiB", (double)other->bytes / 0x1p30);
    return FA_PASS;
}

static fa_status load_plain(const fa_candidate *candidate, fa_device_reference *other, fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_spec spec = plain_spec(candidate, other);
    fa_module *module = fa_alloc(sizeof *module);
    const size_t forward = other->count + other->rows;
    other->skipped = other->gradients ? forward + 3 * other->rows : 0; /* D, the sizes and squares of its terms */
    other->bytes =
        (other->gradients ? other->skipped + fa_gradient_doubles(candidate->problem) : forward) * sizeof(double);
    fa_status status = check_work(candidate, other, why);
    FA_THEN(status, fa_device_is_emu(device) ? fa_compile_emu(&spec, FA_SANITIZE_NONE, module, why)
                                             : fa_compile_cuda(&spec, module, why));
    FA_THEN(status, device->load(device, &spec, module, candidate->problem, &other->kernel, why));
    free(module);
    return status;
}

void fa_device_reference_open(const fa_candidate *candidate, fa_device_reference *other, char missing[FA_MISSING_SIZE])
{
    fa_device *device = candidate->device;
    fa_reason why = {""};
    if (other->opened)
        return;
    other->opened = true;
    other->rows = (size_t)fa_problem_rows(candidate->problem);
    other->count = fa_problem_o_count(candidate->problem);
    fa_status status = other->plain ? load_plain(candidate, other, &why) : load_library(candidate, other, &why);
    FA_THEN(status, device->alloc(device, other->bytes, &other->out, &why));
    if (status != FA_PASS)
        drop(device, other, why.text, missing);
    else
        other->on = true;
}

/* The candidate's inputs, and an output of its own: the library's packed in o, the plain kernel's in the workspace. */
static fa_params params_of(const fa_candidate *candidate, const fa_device_reference *other, const fa_launch *launch)
{
    const fa_layout packed = fa_layout_of(candidate->problem, FA_STRIDES_PACKED, 0, FA_O);
    fa_params params = fa_buffers_params(&candidate->buffers, candidate->problem, launch);
    params.o = (void *)(uintptr_t)(other->plain ? 0 : other->out);
    params.o_stride_b = packed.stride_b;
    params.o_stride_h = packed.stride_h;
    params.o_stride_s = packed.stride_s;
    params.lse = NULL;
    if (other->plain) {
        params.workspace = (void *)(uintptr_t)other->out;
        params.workspace_bytes = (fa_i64)other->bytes;
    }
    return params;
}

/* Copies the library's output out. False: its own result is wrong, or the copy failed. */
static fa_status take_library(const fa_candidate *candidate, const fa_device_reference *other, fa_kept *kept,
                              fa_reason *wrong, fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_dtype dtype = candidate->problem->dtype;
    const double rule = fa_rule_tolerance(dtype);
    uint16_t *half = fa_alloc(other->bytes);
    const fa_status status = device->copy_out(device, half, other->out, other->bytes, why);
    if (status == FA_PASS) {
        const fa_verdict own = fa_judge(candidate->problem, &kept->reference, half, FA_LIBRARY_TILE, rule, rule);
        snprintf(wrong->text, sizeof wrong->text, "%s", own.failure);
    }
    if (status == FA_PASS && wrong->text[0] == '\0') {
        kept->library = fa_alloc(other->count * sizeof *kept->library);
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < other->count; i++)
            kept->library[i] = fa_element_to_float(dtype, half[i]);
    }
    free(half);
    return status;
}

static fa_status take_plain(const fa_candidate *candidate, const fa_device_reference *other, fa_kept *kept,
                            fa_reason *wrong, fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_problem *problem = candidate->problem;
    const size_t skipped = other->skipped * sizeof(double), bytes = other->bytes - skipped;
    double *plain = fa_alloc(bytes);
    const fa_status status = device->copy_out(device, plain, other->out + skipped, bytes, why);
    const bool good =
        status == FA_PASS && (other->gradients ? fa_plain_gradients_agree(problem, kept, plain, wrong)
                                               : fa_plain_agrees(problem, kept, plain, plain + other->count, wrong));
    if (good)
        *(problem->backward && !other->gradients ? &kept->forward : &kept->plain) = plain;
    else
        free(plain);
    return status;
}

static fa_launch launch_of(const fa_problem *problem, const fa_device_reference *other)
{
    const size_t more = other->gradients ? (size_t)fa_gradient_rows(problem, FA_GRAD_DK) + (size_t)problem->heads : 0;
    if (!other->plain)
        return (fa_launch){.grid = 1, .threads = 1};
    const fa_i32 rows = (fa_i32)((other->rows + PLAIN_ROWS - 1) / PLAIN_ROWS),
                 all = (fa_i32)((other->rows + more + PLAIN_ROWS - 1) / PLAIN_ROWS);
    fa_launch launch = {.grid = (uint32_t)all, .threads = 32 * PLAIN_ROWS, .cluster = 1};
    const fa_step steps[2] = {
        {.grid = {rows, 1, 1}, .block = {32 * PLAIN_ROWS, 1, 1}, .entry = FA_STEP_BEFORE},
        {.grid = {all, 1, 1}, .block = {32 * PLAIN_ROWS, 1, 1}},
    };
    launch.plan.count = other->gradients ? 2 : 0;
    memcpy(launch.plan.steps, steps, sizeof steps);
    return launch;
}

fa_status fa_device_reference_run(const fa_candidate *candidate, bool as_asked, fa_device_reference *other,
                                  fa_kept *kept, char missing[FA_MISSING_SIZE], fa_reason *why)
{
    fa_device *device = candidate->device;
    const fa_launch launch = launch_of(candidate->problem, other);
    const fa_params params = params_of(candidate, other, &launch);
    FA_TRY(device->fill16(device, other->out, FA_POISON, other->bytes / 2, why));
    if (other->gradients)
        FA_TRY(device->copy_in(device, other->out, kept->forward, (other->count + other->rows) * sizeof(double), why));
    fa_reason inner = {""}, wrong = {""};
    const fa_status status = device->launch(device, other->kernel, &launch, &params, &inner);
    if (status == FA_INFEASIBLE && !as_asked)
        return FA_PASS; /* this layout alone */
    if (status == FA_NOT_RUN || status == FA_INFEASIBLE) {
        drop(device, other, inner.text, missing);
        return FA_PASS;
    }
    if (status != FA_PASS)
        return fa_refuse(why, status, "the %s reference: %s", name_of(other), inner.text);
    FA_TRY((other->plain ? take_plain : take_library)(candidate, other, kept, &wrong, why));
    if (wrong.text[0] == '\0')
        return FA_PASS;
    char *reason = fa_format("its own result is wrong here, so no reference: %s", wrong.text);
    drop(device, other, reason, missing);
    free(reason);
    return FA_PASS;
}

/* The largest |V|; poison is NaN. */
static double largest_v(const fa_problem *problem, const fa_tensors *tensors)
{
    const fa_dtype dtype = fa_problem_dtype_kv(problem);
    float largest = 0.0f, factor = tensors->scores.v_descale != NULL ? 0.0f : 1.0f;
    for (int32_t i = 0; tensors->scores.v_descale != NULL && i < problem->batch * problem->kv_heads; i++)
        factor = fmaxf(factor, tensors->scores.v_descale[i]);
#pragma omp parallel for reduction(max : largest) schedule(static) if (tensors->v_count > 1 << 16)
    for (size_t i = 0; i < tensors->v_count; i++) {
        const float value = factor * fabsf(fa_element_to_float(dtype, tensors->v[i]));
        largest = value > largest ? value : largest;
    }
    return (double)largest;
}

bool fa_plain_agrees(const fa_problem *problem, const fa_kept *kept, const double *plain, const double *lse,
                     fa_reason *why)
{
    const fa_reference *cpu = &kept->reference;
    const int32_t dim = fa_problem_dim_v(problem);
    const double largest = largest_v(problem, &kept->tensors);
    for (int64_t i = 0; i < cpu->row_count; i++) {
        const int64_t row = cpu->rows[i];
        const fa_place at = fa_place_of(problem, row, 0);
        for (int32_t d = 0; d < dim; d++) {
            const double got = plain[row * dim + d], want = cpu->exact[i * dim + d];
            if (!(fabs(got - want) <= FA_PLAIN_AGREES * (largest + fabs(want)))) {
                fa_refuse(why, FA_WRONG, "batch %d head %d row %d col %d: %.12g, on the CPU %.12g", at.batch, at.head,
                          at.row, d, got, want);
                return false;
            }
        }
        const double off = isfinite(cpu->lse[i]) ? fabs(lse[row] - cpu->lse[i]) : INFINITY;
        if (lse[row] != cpu->lse[i] && !(off <= FA_PLAIN_AGREES * (1.0 + fabs(cpu->lse[i])) && off < INFINITY)) {
            fa_refuse(why, FA_WRONG, "log-sum-exp of batch %d head %d row %d: %.12g, on the CPU %.12g", at.batch,
                      at.head, at.row, lse[row], cpu->lse[i]);
            return false;
        }
    }
    return true;
}

bool fa_plain_gradients_agree(const fa_problem *problem, const fa_kept *kept, const double *plain, fa_reason *why)
{
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
        const fa_gradient *of = &kept->gradients.of[tensor];
        for (int64_t i = 0; i < of->row_count * of->columns; i++) {
            const int64_t row = of->rows[i / of->columns], d = i % of->columns;
            const double got = plain[row * of->columns + d], want = of->exact[i];
            const double size = ldexp(of->slack[i / of->columns], 19); /* of the terms that are summed */
            if (fabs(got - want) <= FA_PLAIN_AGREES * (size + fabs(want)))
                continue;
            const fa_row at = fa_gradient_row(problem, tensor, row);
            fa_refuse(why, FA_WRONG, "%s of batch %d head %d row %d col %lld: %.12g, on the CPU %.12g",
                      fa_gradient_name(tensor), at.batch, at.head, at.row, (long long)d, got, want);
            return false;
        }
        plain += fa_gradient_rows(problem, tensor) * of->columns;
    }
    return true;
}
