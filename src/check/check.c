#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "device/gpu_lock.h"
#include "input/npy.h"

enum { REPEATS = 10, LIBRARY_TILE = 64 };
#define REPEAT_BUDGET_S 2.0

/* The library reference: a kernel of its own, writing into an output of its own. */
typedef struct library {
    bool on;
    fa_kernel *kernel;
    fa_ptr out;
    uint16_t *half;
    float *full;
} library;

/* One check: its subject, and what is made once for all seeds. */
typedef struct session {
    const fa_candidate *candidate;
    const fa_problem *problem;
    const fa_options *options;
    fa_check_result *result;
    bool cpu; /* a reference */
    library cublas;
    int32_t tile_m;
    bool acc_fp16;
    size_t count; /* elements of the output */
    uint16_t *output;
    float *lse; /* NULL when not asked for */
    size_t lse_count;
} session;

static void close_library(session *s)
{
    fa_device *device = s->candidate->device;
    if (s->cublas.out)
        device->free(device, s->cublas.out);
    if (s->cublas.kernel)
        device->unload(device, s->cublas.kernel);
    free(s->cublas.half);
    free(s->cublas.full);
    s->cublas = (library){0};
}

/* A missing reference is not an error of the run: the record says why it is missing. */
static void drop_library(session *s, const char *reason)
{
    close_library(s);
    snprintf(s->result->missing, sizeof s->result->missing, "cublas: %.240s", reason);
}

static const fa_kernel_row *library_row(void)
{
    for (size_t i = 0; i < fa_registry_count(); i++)
        if (fa_registry_at(i)->traits.is_reference)
            return fa_registry_at(i);
    return NULL;
}

/* Without the library the check goes on; drop_library says why it is missing. */
static void open_library(session *s)
{
    fa_device *device = s->candidate->device;
    const fa_kernel_row *row = library_row();
    fa_reason why = {""};
    if (!row) {
        drop_library(s, "not in the registry");
        return;
    }
    if (s->candidate->spec->row == row) {
        drop_library(s, "is what is checked, so no reference for it");
        return;
    }
    fa_spec spec = *s->candidate->spec;
    spec.row = row;
    spec.kind = row->kind;
    spec.knobs = row->knobs;
    spec.source[0] = '\0';
    spec.lse = false;
    snprintf(spec.name, sizeof spec.name, "%s", row->name);
    fa_status status = device->load(device, &spec, NULL, s->problem, &s->cublas.kernel, &why);
    if (status == FA_PASS)
        status = device->alloc(device, s->count * sizeof *s->cublas.half, &s->cublas.out, &why);
    if (status != FA_PASS) {
        drop_library(s, why.text);
        return;
    }
    s->cublas.half = fa_alloc(s->count * sizeof *s->cublas.half);
    s->cublas.full = fa_alloc(s->count * sizeof *s->cublas.full);
    s->cublas.on = true;
}

/* Release the GPU lock during the CPU reference: other processes may time meanwhile. */
static void gpu_lock(const session *s, fa_gpu_lock_mode mode) { fa_gpu_lock(s->candidate->device->info.bus_id, mode); }

/* What launch `number` writes differs: how much of it, and where first. */
static fa_status differs(int32_t number, const char *schedule, const char *what, size_t differing, size_t count,
                         const char *first, fa_reason *why)
{
    return fa_refuse(why, FA_WRONG,
                     "not deterministic: launch %d on the same inputs%s%s differs from the first in %zu of %zu "
                     "elements%s, first at %s",
                     number + 1, schedule[0] != '\0' ? ", schedule " : "", schedule, differing, count, what, first);
}

/* The output and the log-sum-exp of one more launch have the bits of the first. */
static fa_status compare_bits(const session *s, const uint16_t *again, const float *lse_again, int32_t number,
                              const char *schedule, fa_reason *why)
{
    char place[64];
    size_t differing = 0, first = 0;
    for (size_t k = 0; memcmp(again, s->output, s->count * sizeof *again) != 0 && k < s->count; k++)
        if (again[k] != s->output[k] && differing++ == 0)
            first = k;
    snprintf(place, sizeof place, "element %zu (0x%04x, then 0x%04x)", first, s->output[first], again[first]);
    if (differing > 0)
        return differs(number, schedule, "", differing, s->count, place, why);
    for (size_t k = 0; k < s->lse_count; k++)
        if (memcmp(&lse_again[k], &s->lse[k], sizeof *lse_again) != 0 && differing++ == 0)
            first = k;
    if (differing == 0)
        return FA_PASS;
    snprintf(place, sizeof place, "element %zu (%.9g, then %.9g)", first, (double)s->lse[first],
             (double)lse_again[first]);
    return differs(number, schedule, " of the log-sum-exp", differing, s->lse_count, place, why);
}

/* The emulator's schedule for what is launched next; "" on a GPU. */
static const char *vary(session *s, int32_t variation, char word[32])
{
    fa_device *device = s->candidate->device;
    if (!device->vary)
        return "";
    const int32_t schedule = device->vary(device, variation);
    s->result->schedules |= 1 << schedule;
    return fa_word(FA_SCHEDULE_WORDS, schedule, word);
}

/* What one more launch on the same inputs writes, against what the first wrote. */
static fa_status repeat(session *s, int32_t number, uint16_t *again, float *lse_again, fa_reason *why)
{
    const fa_buffers *buffers = &s->candidate->buffers;
    fa_device *device = s->candidate->device;
    char word[32];
    const char *schedule = vary(s, number, word);
    FA_TRY(fa_buffers_poison_output(buffers, why));
    FA_TRY(fa_candidate_launch(s->candidate, why));
    FA_TRY(device->copy_out(device, again, fa_buffers_at(buffers, FA_O), s->count * sizeof *again, why));
    FA_TRY(fa_buffers_read_lse(buffers, lse_again, why));
    s->result->repeats++;
    return compare_bits(s, again, lse_again, number, schedule, why);
}

/* Ten more launches on the same inputs give the same bits; on the emulator in other orders of the threads. */
static fa_status check_repeats(session *s, double first_launch_s, fa_reason *why)
{
    const fa_device *device = s->candidate->device;
    if (s->candidate->nondeterministic)
        return FA_PASS;
    uint16_t *again = fa_alloc(s->count * sizeof *again);
    float *lse_again = fa_alloc((s->lse_count + 1) * sizeof *lse_again);
    const double start = fa_now_s();
    fa_status status = FA_PASS;
    for (int32_t i = 1; i <= REPEATS && status == FA_PASS; i++) {
        if (!device->sample && fa_now_s() - start + first_launch_s > REPEAT_BUDGET_S)
            break;
        status = repeat(s, i, again, lse_again, why);
    }
    vary(s, 0, (char[32]){0});
    free(again);
    free(lse_again);
    return status;
}

/* Runs the library on the same inputs. Its output must itself pass against R, or it is dropped as a reference. */
static fa_status run_library(session *s, const fa_reference *reference, fa_reason *why)
{
    fa_device *device = s->candidate->device;
    const fa_launch none = {.grid = 1, .threads = 1};
    fa_params params = fa_buffers_params(&s->candidate->buffers, s->problem, &none);
    params.o = (void *)(uintptr_t)s->cublas.out;
    params.lse = NULL;
    FA_TRY(device->fill16(device, s->cublas.out, FA_POISON, s->count, why));
    fa_reason inner = {""};
    const fa_status status = device->launch(device, s->cublas.kernel, &none, &params, &inner);
    if (status == FA_NOT_RUN) {
        drop_library(s, inner.text);
        return FA_PASS;
    }
    if (status != FA_PASS)
        return fa_refuse(why, status, "the cublas reference: %s", inner.text);
    FA_TRY(device->copy_out(device, s->cublas.half, s->cublas.out, s->count * sizeof *s->cublas.half, why));
    const fa_verdict own = fa_judge(s->problem, reference, s->cublas.half, LIBRARY_TILE, 1e-3, 1e-3);
    if (!own.passed) {
        char *reason = fa_format("its own result is wrong here, so no reference: %s", own.failure);
        drop_library(s, reason);
        free(reason);
        return FA_PASS;
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < s->count; i++)
        s->cublas.full[i] = fa_half_to_float(s->cublas.half[i]);
    return FA_PASS;
}

static void record(fa_check_result *result, const fa_verdict *verdict)
{
    for (int32_t i = 0; i < result->verdict_count; i++)
        if (strcmp(result->verdicts[i].name, verdict->name) == 0) {
            fa_verdict_merge(&result->verdicts[i], verdict);
            return;
        }
    FA_ASSERT(result->verdict_count < 2, "a third reference");
    result->verdicts[result->verdict_count++] = *verdict;
}

/* The log-sum-exp against FP64. A failure of the output comes first. */
static fa_status judge_lse(session *s, const fa_reference *reference, fa_status status, fa_reason *why)
{
    if (s->lse == NULL)
        return status;
    const fa_lse_verdict verdict = fa_judge_lse(s->problem, reference, s->lse, s->acc_fp16);
    fa_lse_verdict_merge(&s->result->lse, &verdict);
    return verdict.passed || status != FA_PASS ? status : fa_refuse(why, FA_WRONG, "%s", verdict.failure);
}

/* The rules, against each reference; the first broken one is the reason. */
static fa_status judge(session *s, const fa_tensors *tensors, uint64_t seed, fa_reason *why)
{
    const double atol = s->options->atol, rtol = s->options->rtol;
    gpu_lock(s, FA_GPU_LOCK_NONE);
    fa_reference reference = fa_reference_make(s->problem, tensors, s->tile_m, s->acc_fp16, seed);
    const fa_verdict exact = fa_judge(s->problem, &reference, s->output, s->tile_m, atol, rtol);
    fa_status status = FA_PASS;
    if (s->cpu) {
        record(s->result, &exact);
        if (!exact.passed)
            status = fa_refuse(why, FA_WRONG, "against cpu: %s", exact.failure);
    }
    status = judge_lse(s, &reference, status, why);
    if (s->cublas.on) {
        fa_reason inner = {""};
        gpu_lock(s, FA_GPU_LOCK_SHARED);
        const fa_status ran = run_library(s, &reference, &inner);
        if (ran != FA_PASS && status == FA_PASS)
            status = fa_refuse(why, ran, "%s", inner.text);
        if (ran == FA_PASS && s->cublas.on) {
            const fa_verdict against =
                fa_judge_library(s->problem, s->cublas.full, s->output, s->tile_m, atol, rtol, &exact);
            record(s->result, &against);
            if (!against.passed && status == FA_PASS)
                status = fa_refuse(why, FA_WRONG, "against cublas: %s", against.failure);
        }
    }
    fa_reference_free(&reference);
    return status;
}

static fa_status dump(const session *s, const fa_tensors *tensors, fa_reason *why)
{
    const fa_problem *p = s->problem;
    const int32_t q_shape[4] = {p->batch, p->heads, p->seq_q, p->dim},
                  kv_shape[4] = {p->batch, p->kv_heads, p->seq_kv, p->dim};
    FA_TRY(fa_npy_write(s->options->dump, "q", tensors->q, q_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "k", tensors->k, kv_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "v", tensors->v, kv_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "o", s->output, q_shape, why));
    return s->lse != NULL ? fa_npy_write_fp32(s->options->dump, "lse", s->lse, q_shape, why) : FA_PASS;
}

static fa_status check_tensors(session *s, const fa_tensors *tensors, uint64_t seed, bool first, fa_reason *why)
{
    const fa_buffers *buffers = &s->candidate->buffers;
    gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(fa_buffers_fill(buffers, tensors, why));
    char word[32];
    vary(s, 0, word);
    const double start = fa_now_s();
    FA_TRY(fa_candidate_launch(s->candidate, why));
    const double launch_s = fa_now_s() - start;
    const fa_status intact = fa_buffers_read(buffers, tensors, s->output, why);
    if (intact != FA_PASS && intact != FA_WRONG)
        return intact;
    FA_TRY(fa_buffers_read_lse(buffers, s->lse, why)); /* says why only when it fails */
    if (first && s->options->dump)
        FA_TRY(dump(s, tensors, why)); /* a wrong output is worth looking at too */
    FA_TRY(intact);
    FA_TRY(judge(s, tensors, seed, why));
    if (!first)
        return FA_PASS;
    gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(check_repeats(s, launch_s, why));
    return fa_buffers_read(buffers, tensors, s->output, why);
}

static fa_status check_seed(session *s, uint64_t seed, bool first, fa_reason *why)
{
    fa_tensors tensors = {0};
    if (s->options->load)
        FA_TRY(fa_npy_load(s->problem, s->options->load, &tensors, why));
    else
        tensors = fa_tensors_make(s->problem, (fa_dist)s->options->dist, seed);
    fa_reason inner = {""};
    const fa_status status = check_tensors(s, &tensors, seed, first, &inner);
    fa_tensors_free(&tensors);
    if (status == FA_PASS)
        return FA_PASS;
    if (s->options->load)
        return fa_refuse(why, status, "%s", inner.text);
    return fa_refuse(why, status, "seed %llu: %s", (unsigned long long)seed, inner.text);
}

static session open_session(const fa_candidate *candidate, const fa_options *options, fa_check_result *result)
{
    const fa_spec *spec = candidate->spec;
    session s = {
        .candidate = candidate,
        .problem = candidate->problem,
        .options = options,
        .result = result,
        .cpu = (options->check & FA_REFERENCE_CPU) != 0,
        .tile_m = spec->kind == FA_KIND_HAND && spec->knobs.m > 0 ? spec->knobs.m : LIBRARY_TILE,
        .acc_fp16 = spec->knobs.acc == 1,
        .count = fa_problem_q_count(candidate->problem),
    };
    s.output = fa_alloc(s.count * sizeof *s.output);
    s.lse_count = spec->lse ? s.count / (size_t)candidate->problem->dim : 0;
    s.lse = spec->lse ? fa_alloc(s.lse_count * sizeof *s.lse) : NULL;
    return s;
}

static fa_status close_session(session *s, fa_status status, const fa_reason *why)
{
    close_library(s);
    free(s->output);
    free(s->lse);
    s->result->done = status == FA_PASS || status == FA_WRONG;
    s->result->passed = status == FA_PASS;
    if (status != FA_PASS)
        snprintf(s->result->failure, sizeof s->result->failure, "%.1023s", why->text);
    return status;
}

static fa_status need_reference(const session *s, fa_reason *why)
{
    return s->cpu || s->cublas.on ? FA_PASS
                                  : fa_refuse(why, FA_NOT_RUN, "no reference could run: %s", s->result->missing);
}

static fa_status check_seeds(session *s, fa_reason *why)
{
    if (s->options->check & FA_REFERENCE_CUBLAS)
        open_library(s);
    FA_TRY(need_reference(s, why));
    const int32_t seeds = s->options->load ? 1 : s->options->seeds; /* loaded inputs are the same for every seed */
    for (int32_t i = 0; i < seeds; i++) {
        s->result->seeds++;
        FA_TRY(check_seed(s, (uint64_t)s->options->seed + (uint64_t)i, i == 0, why));
        FA_TRY(need_reference(s, why)); /* the library is dropped where its own result is wrong */
    }
    return FA_PASS;
}

fa_status fa_check(const fa_candidate *candidate, const fa_options *options, fa_check_result *result, fa_reason *why)
{
    *result = (fa_check_result){.atol = options->atol, .rtol = options->rtol};
    result->loosened = options->atol != 1e-3 || options->rtol != 1e-3;
    session s = open_session(candidate, options, result);
    return close_session(&s, check_seeds(&s, why), why);
}

/* Against the CPU where --check has it: opening the library again costs more than all five seeds on the CPU. */
fa_status fa_check_again(const fa_candidate *candidate, const fa_options *options, uint64_t seed,
                         fa_check_result *result, fa_reason *why)
{
    fa_check_result second = {.atol = options->atol, .rtol = options->rtol};
    session s = open_session(candidate, options, &second);
    fa_reason inner = {""};
    if (!s.cpu)
        open_library(&s);
    fa_status status = need_reference(&s, &inner);
    if (status == FA_PASS)
        status = check_seed(&s, seed, false, &inner);
    close_session(&s, status, &inner);
    if (status == FA_PASS)
        return FA_PASS;
    for (int32_t i = 0; i < second.verdict_count; i++)
        record(result, &second.verdicts[i]);
    fa_lse_verdict_merge(&result->lse, &second.lse);
    result->passed = false;
    fa_refuse(why, status, "after timing: %s", inner.text);
    snprintf(result->failure, sizeof result->failure, "%.1023s", why->text);
    return status;
}
