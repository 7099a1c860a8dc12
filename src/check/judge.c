#include "check/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/choose_rows.h"

void fa_judge_merge(fa_check_result *result, const fa_verdict *verdict)
{
    for (int32_t i = 0; i < result->verdict_count; i++)
        if (strcmp(result->verdicts[i].name, verdict->name) == 0) {
            fa_verdict_merge(&result->verdicts[i], verdict);
            return;
        }
    FA_ASSERT(result->verdict_count < FA_REFERENCES, "one reference too many");
    result->verdicts[result->verdict_count++] = *verdict;
}

/* Errors of a drawn seed are reported with the draw, not with the requested inputs. */
static void raise_error(fa_check_result *result, double error)
{
    fa_draw *end = result->draws + result->draw_count;
    if (result->draw_count > 0)
        end[-1].max_abs_err = fmax(end[-1].max_abs_err, error);
}

static void record(fa_session *s, const fa_verdict *verdict)
{
    raise_error(s->result, verdict->max_abs_err);
    if (s->draw->as_asked || !verdict->passed)
        fa_judge_merge(s->result, verdict);
}

static bool asks(const fa_session *s, int32_t reference) { return (s->asked & reference) != 0; }

/* The library's result, where it is there and is not that of the kernel under test. */
static const float *library_of(const fa_session *s)
{
    const fa_kernel_row *row = s->candidate->spec->row;
    const bool itself = row != NULL && row->traits.is_reference;
    return asks(s, FA_REFERENCE_CUBLAS) && !itself ? s->kept->library : NULL;
}

/* Where the plain reference is asked for, or stands in for cuBLAS on a GPU. */
static bool wants_plain(const fa_session *s)
{
    const bool gpu = !fa_device_is_emu(s->candidate->device);
    return asks(s, FA_REFERENCE_PLAIN) || (asks(s, FA_REFERENCE_CUBLAS) && gpu && library_of(s) == NULL);
}

/* With every row's log-sum-exp of the plain kernel in place of the sampled ones. Rounding may be as in the sample. */
static fa_lse_verdict judge_every_lse(const fa_session *s, double baseline_max)
{
    const int64_t all = fa_problem_rows(s->problem);
    const double *lse = s->kept->plain + s->count;
    fa_reference every = {.rows = fa_alloc((size_t)all * sizeof *every.rows),
                          .lse = fa_alloc((size_t)all * sizeof *every.lse),
                          .baseline_lse = fa_alloc((size_t)all * sizeof *every.baseline_lse)};
    for (int64_t row = 0; row < all; row++) {
        if (s->problem->lengths != NULL && !fa_problem_row(s->problem, row).used)
            continue;
        every.rows[every.row_count] = row;
        every.lse[every.row_count] = lse[row];
        every.baseline_lse[every.row_count++] = lse[row] + baseline_max;
    }
    const fa_lse_verdict verdict = fa_judge_lse(s->problem, &every, s->lse, s->acc_fp16);
    fa_reference_free(&every);
    return verdict;
}

/* The log-sum-exp against FP64. A failure of the output comes first. */
static fa_status judge_lse(fa_session *s, fa_status status, fa_reason *why)
{
    if (s->lse == NULL)
        return status;
    fa_lse_verdict verdict = fa_judge_lse(s->problem, &s->kept->reference, s->lse, s->acc_fp16);
    if (verdict.passed && wants_plain(s) && s->kept->plain != NULL)
        verdict = judge_every_lse(s, verdict.baseline_max_abs_err);
    if (s->draw->as_asked || !verdict.passed)
        fa_lse_verdict_merge(&s->result->lse, &verdict);
    return verdict.passed || status != FA_PASS ? status : fa_refuse(why, FA_WRONG, "%s", verdict.failure);
}

fa_status fa_judge_need_reference(fa_session *s, fa_reason *why)
{
    char *missing = s->result->missing;
    const bool stands_in = asks(s, FA_REFERENCE_CUBLAS) && !fa_device_is_emu(s->candidate->device);
    if (!asks(s, FA_REFERENCE_CPU))
        fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    if (!asks(s, FA_REFERENCE_CPU) && asks(s, FA_REFERENCE_CUBLAS))
        fa_device_reference_open(s->candidate, &s->cublas, missing);
    if (!asks(s, FA_REFERENCE_CPU) && !s->cublas.on && (stands_in || asks(s, FA_REFERENCE_PLAIN)))
        fa_device_reference_open(s->candidate, &s->plain, missing);
    return asks(s, FA_REFERENCE_CPU) || s->cublas.on || s->plain.on
               ? FA_PASS
               : fa_refuse(why, FA_NOT_RUN, "no reference could run: %s", missing);
}

static fa_status ask(fa_session *s, fa_device_reference *other, char *missing, fa_reason *why)
{
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    fa_device_reference_open(s->candidate, other, missing);
    return other->on ? fa_device_reference_run(s->candidate, s->draw->as_asked, other, s->kept, missing, why) : FA_PASS;
}

/* Asks the library; where it cannot serve this input, later candidates need not ask again. */
static fa_status ask_library(fa_session *s, fa_reason *why)
{
    fa_kept *kept = s->kept;
    const fa_kernel_row *row = s->candidate->spec->row;
    char *missing = s->result->missing;
    if (kept->library_cannot && kept->plain != NULL) {
        if (missing[0] == '\0')
            snprintf(missing, FA_MISSING_SIZE, "%s", kept->missing);
        return FA_PASS;
    }
    FA_TRY(ask(s, &s->cublas, missing, why));
    kept->library_cannot = kept->library == NULL && (row == NULL || !row->traits.is_reference);
    snprintf(kept->missing, sizeof kept->missing, "%.255s", s->cublas.on ? "" : missing);
    return FA_PASS;
}

/* What the entry lacks. A plain reference that stands in for one layout alone is not missed. */
static fa_status ask_device(fa_session *s, fa_reason *why)
{
    char unsaid[FA_MISSING_SIZE] = "";
    if (asks(s, FA_REFERENCE_CUBLAS) && library_of(s) == NULL)
        FA_TRY(ask_library(s, why));
    if (!wants_plain(s) || s->kept->plain != NULL)
        return FA_PASS;
    return ask(s, &s->plain, s->cublas.on && !asks(s, FA_REFERENCE_PLAIN) ? unsaid : s->result->missing, why);
}

/* The suspects of the plain reference may be rows where the baseline is no better: by all rules, with their own
 * baseline, the CPU decides. */
static bool cpu_clears_output(fa_session *s, const double *suspects, const fa_verdict *exact)
{
    const fa_reference *sample = &s->kept->reference;
    if (fa_chooses_all_rows(s->problem))
        return exact->passed;
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    int64_t count,
        *rows = fa_choose_suspects(sample->rows, sample->row_count, suspects, fa_problem_rows(s->problem), &count);
    fa_reference more = fa_reference_of_rows(s->problem, &s->kept->tensors, rows, count, s->acc_fp16);
    more.unit = sample->unit;
    const fa_verdict verdict = fa_judge(s->problem, &more, s->output, s->tile_m, s->result->atol, s->result->rtol);
    fa_reference_free(&more);
    return verdict.passed;
}

static fa_verdict judge_plain(fa_session *s, const fa_verdict *exact)
{
    const double atol = s->result->atol, rtol = s->result->rtol;
    double *suspects = fa_alloc((size_t)fa_problem_rows(s->problem) * sizeof *suspects);
    fa_verdict verdict = fa_judge_plain(s->problem, s->kept->plain, &s->kept->reference, s->output, s->tile_m, atol,
                                        rtol, exact, suspects);
    if (!verdict.passed && cpu_clears_output(s, suspects, exact)) {
        verdict.passed = true;
        verdict.failure[0] = '\0';
    }
    free(suspects);
    return verdict;
}

/* Against one reference of the device, whose result is there. */
static fa_status judge_against(fa_session *s, const fa_verdict *verdict, fa_status status, fa_reason *why)
{
    record(s, verdict);
    return verdict->passed || status != FA_PASS
               ? status
               : fa_refuse(why, FA_WRONG, "against %s: %s", verdict->name, verdict->failure);
}

static fa_status judge_device(fa_session *s, const fa_verdict *exact, fa_status status, fa_reason *why)
{
    const fa_kept *kept = s->kept;
    fa_reason inner = {""};
    const fa_status ran = ask_device(s, &inner);
    if (ran != FA_PASS)
        return status != FA_PASS ? status : fa_refuse(why, ran, "%s", inner.text);
    if (library_of(s) != NULL) {
        const fa_verdict against = fa_judge_library(s->problem, kept->library, s->output, s->tile_m,
                                                    s->result->atol * kept->reference.unit, s->result->rtol, exact);
        status = judge_against(s, &against, status, why);
    }
    if (wants_plain(s) && kept->plain != NULL) {
        const fa_verdict against = judge_plain(s, exact);
        status = judge_against(s, &against, status, why);
    }
    return status;
}

/* On a GPU, of a problem that the CPU takes long for. Needs the inputs on the device. */
static fa_status forward_on_device(fa_session *s, fa_reason *why)
{
    fa_kept *kept = s->kept;
    const size_t count = fa_problem_o_count(s->problem) + (size_t)fa_problem_rows(s->problem);
    double *nothing = fa_alloc(count * sizeof *nothing);
    fa_gradients_give(s->problem, nothing, &kept->tensors);
    free(nothing);
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(fa_buffers_fill(&s->candidate->buffers, &kept->tensors, why));
    kept->reference = fa_reference_make(s->problem, &kept->tensors, s->tile_m, false, s->draw->seed);
    kept->has_reference = true;
    return ask(s, &s->forward, s->result->missing, why);
}

fa_status fa_judge_give_forward(fa_session *s, fa_reason *why)
{
    fa_kept *kept = s->kept;
    if (!s->problem->backward || kept->tensors.o != NULL)
        return FA_PASS;
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    if (kept->forward == NULL && !fa_device_is_emu(s->candidate->device) && !fa_chooses_all_rows(s->problem))
        FA_TRY(forward_on_device(s, why));
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    if (kept->forward == NULL)
        kept->forward = fa_gradients_forward(s->problem, &kept->tensors);
    fa_gradients_give(s->problem, kept->forward, &kept->tensors);
    return FA_PASS;
}

void fa_judge_merge_gradient(fa_check_result *result, const fa_gradient_verdict *verdict)
{
    int32_t i = 0;
    while (i < result->gradient_count && (strcmp(result->gradients[i].tensor, verdict->tensor) != 0 ||
                                          strcmp(result->gradients[i].reference, verdict->reference) != 0))
        i++;
    result->gradient_count = i < result->gradient_count ? result->gradient_count : i + 1;
    fa_gradient_verdict_merge(&result->gradients[i], verdict);
}

static void record_gradient(fa_session *s, const fa_gradient_verdict *verdict)
{
    raise_error(s->result, verdict->max_abs_err);
    if (s->draw->as_asked || !verdict->passed)
        fa_judge_merge_gradient(s->result, verdict);
}

/* Rows that are suspects, with a baseline of their own: the CPU decides. */
static bool cpu_clears_gradient(fa_session *s, int32_t tensor, const uint16_t *output, const double *suspects)
{
    const fa_kept *kept = s->kept;
    const fa_gradient *sample = &kept->gradients.of[tensor];
    if (tensor == FA_GRAD_DSINKS || fa_chooses_all_rows(s->problem))
        return true; /* they were all in the sample */
    int64_t count, *none = fa_alloc(sizeof *none);
    int64_t *rows =
        fa_choose_suspects(sample->rows, sample->row_count, suspects, fa_gradient_rows(s->problem, tensor), &count);
    const bool queries = tensor == FA_GRAD_DQ;
    fa_gradients more = fa_gradients_of_rows(s->problem, &kept->tensors, kept->forward, queries ? rows : none,
                                             queries ? count : 0, queries ? none : rows, queries ? 0 : count);
    const fa_gradient_verdict verdict = fa_judge_gradient(s->problem, tensor, &more.of[tensor], output, NULL, NULL);
    fa_gradients_free(&more);
    return verdict.passed;
}

/* Drawn rows alone do not tell whether an infinity elsewhere is right: the type may have no such number. */
static void judge_infinities(fa_session *s, int32_t tensor, const uint16_t *output, fa_gradient_verdict *verdict)
{
    if (verdict->nonfinite == 0 || verdict->mismatches > 0 || fa_chooses_all_rows(s->problem))
        return;
    double *of_row = fa_alloc((size_t)fa_gradient_rows(s->problem, tensor) * sizeof *of_row);
    fa_gradient_nonfinite(s->problem, tensor, output, of_row);
    if (cpu_clears_gradient(s, tensor, output, of_row)) {
        verdict->passed = true;
        verdict->nonfinite = 0;
        verdict->failure[0] = '\0';
    }
    free(of_row);
}

/* Every element, by the plain kernel's result. */
static fa_status judge_every_gradient(fa_session *s, const fa_gradients *every, int32_t tensor, const uint16_t *output,
                                      const fa_gradient_verdict *sample, fa_reason *why)
{
    double *suspects = fa_alloc((size_t)fa_gradient_rows(s->problem, tensor) * sizeof *suspects);
    fa_gradient_verdict verdict =
        fa_judge_every_gradient(s->problem, tensor, &every->of[tensor], output, sample, suspects);
    if (!verdict.passed && sample->passed && cpu_clears_gradient(s, tensor, output, suspects)) {
        verdict.passed = true;
        verdict.failure[0] = '\0';
    }
    free(suspects);
    record_gradient(s, &verdict);
    return verdict.passed ? FA_PASS : fa_refuse(why, FA_WRONG, "against plain: %s", verdict.failure);
}

static fa_status ask_plain_gradients(fa_session *s, fa_reason *why)
{
    char unsaid[FA_MISSING_SIZE] = "";
    if (!wants_plain(s) || s->kept->plain != NULL)
        return FA_PASS;
    if (asks(s, FA_REFERENCE_CUBLAS))
        fa_device_reference_open(s->candidate, &s->cublas, s->result->missing); /* for its reason */
    return ask(s, &s->plain, asks(s, FA_REFERENCE_PLAIN) ? s->result->missing : unsaid, why);
}

static fa_status judge_gradients(fa_session *s, fa_reason *why)
{
    const uint16_t *output = s->output;
    fa_kept *kept = s->kept;
    fa_status status = FA_PASS;
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    if (!kept->has_gradients)
        kept->gradients =
            fa_gradients_make(s->problem, &kept->tensors, kept->forward, s->tile_m, s->tile_n, s->draw->seed);
    kept->has_gradients = true;
    FA_TRY(ask_plain_gradients(s, why));
    const bool has_every = wants_plain(s) && kept->plain != NULL;
    if (has_every && kept->every.of[0].exact == NULL)
        kept->every = fa_gradients_of_plain(s->problem, &kept->tensors, kept->plain);
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
        fa_reason inner;
        if (kept->gradients.of[tensor].row_count == 0)
            continue;
        fa_gradient_verdict verdict =
            fa_judge_gradient(s->problem, tensor, &kept->gradients.of[tensor], output, &kept->tensors, kept->forward);
        judge_infinities(s, tensor, output, &verdict);
        if (asks(s, FA_REFERENCE_CPU) || !has_every)
            record_gradient(s, &verdict);
        if (!verdict.passed && status == FA_PASS)
            status = fa_refuse(why, FA_WRONG, "against cpu: %s", verdict.failure);
        if (has_every && judge_every_gradient(s, &kept->every, tensor, output, &verdict, &inner) != FA_PASS &&
            status == FA_PASS)
            status = fa_refuse(why, FA_WRONG, "%s", inner.text);
    }
    return status;
}

void fa_judge_need_rows(fa_session *s)
{
    fa_kept *kept = s->kept;
    if (!kept->has_reference)
        kept->reference = fa_reference_make(s->problem, &kept->tensors, s->tile_m, s->acc_fp16, s->draw->seed);
    kept->has_reference = true;
}

fa_status fa_judge_all(fa_session *s, fa_reason *why)
{
    fa_kept *kept = s->kept;
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    if (s->problem->backward)
        return judge_gradients(s, why);
    fa_judge_need_rows(s);
    kept->reference.unit = ldexp(1.0, s->draw->v_power);
    kept->reference.tensors = &kept->tensors;
    kept->reference.tile_n = s->candidate->spec->kind == FA_KIND_HAND ? s->candidate->spec->knobs.n : 0;
    const fa_verdict exact =
        fa_judge(s->problem, &kept->reference, s->output, s->tile_m, s->result->atol, s->result->rtol);
    if (s->draw->as_asked)
        fa_published_judge(s->problem, &kept->reference, s->output, s->lse, &s->result->published);
    fa_status status = FA_PASS;
    if (asks(s, FA_REFERENCE_CPU)) {
        record(s, &exact);
        if (!exact.passed)
            status = fa_refuse(why, FA_WRONG, "against cpu: %s", exact.failure);
    }
    status = judge_device(s, &exact, status, why);
    return judge_lse(s, status, why);
}
