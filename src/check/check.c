#include "check/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/compare_bits.h"
#include "device/gpu_lock.h"
#include "input/npy.h"

/* On the emulator: each other schedule, and two seeds more. */
enum { REPEATS = 10, EMULATED_REPEATS = 5 };
#define EMULATED_WORK (1ll << 24) /* multiply-adds of all repeats: a few seconds */
#define EMULATED_ONCE (1ll << 32) /* of a launch that is nevertheless repeated, once */

/* One check: its subject, and what is made once for all seeds. */
typedef struct session {
    fa_candidate *candidate; /* with the problem and layout of the seed's draw */
    const fa_problem *problem;
    const fa_draw *draw;
    const fa_options *options;
    fa_check_result *result;
    bool cpu; /* a reference */
    fa_library_reference cublas;
    int32_t tile_m;
    bool acc_fp16;
    size_t count; /* elements of the output */
    uint16_t *output;
    float *lse; /* NULL without --lse */
    size_t lse_count;
    fa_finding damage; /* by a launch, beside its output */
} session;

/* Release the GPU lock during the CPU reference, so that other processes can time. */
static void gpu_lock(const session *s, fa_gpu_lock_mode mode) { fa_gpu_lock(s->candidate->device->info.bus_id, mode); }

/* The name of the emulator's present schedule; "" on a GPU. */
static const char *vary(session *s, int32_t variation, char word[32])
{
    fa_device *device = s->candidate->device;
    if (!device->vary)
        return "";
    const int32_t schedule = device->vary(device, variation);
    s->result->schedules |= 1 << schedule;
    return fa_word(FA_SCHEDULE_WORDS, schedule, word);
}

/* Launches once more on the same inputs and compares with the first launch. */
static fa_status repeat(session *s, int32_t number, uint16_t *again, float *lse_again, fa_reason *why)
{
    const fa_buffers *buffers = &s->candidate->buffers;
    char word[32];
    const char *schedule = vary(s, number, word);
    FA_TRY(fa_buffers_poison_output(buffers, why));
    FA_TRY(fa_candidate_launch(s->candidate, why));
    FA_TRY(fa_buffers_output(buffers, again, why));
    FA_TRY(fa_buffers_read_lse(buffers, lse_again, why));
    s->result->repeats++;
    const fa_outputs first = {s->output, s->count, s->lse, s->lse_count},
                     second = {again, s->count, lse_again, s->lse_count};
    return fa_compare_bits(&first, &second, number, schedule, why);
}

int32_t fa_check_repeats(const fa_problem *problem, bool emulated)
{
    const int64_t keys = problem->seq_kv > 0 ? problem->seq_kv : 1;
    const int64_t work = keys * problem->dim * fa_problem_rows(problem), fit = EMULATED_WORK / work;
    if (!emulated)
        return REPEATS;
    if (fit == 0)
        return EMULATED_ONCE / work > 0;
    return fit > EMULATED_REPEATS ? EMULATED_REPEATS : (int32_t)fit;
}

/* More launches on the same inputs give the same bits; on the emulator in other orders of the threads. */
static fa_status check_repeats(session *s, fa_reason *why)
{
    const int32_t repeats = fa_check_repeats(s->problem, s->candidate->device->sample == NULL);
    const char *unrepeated = repeats == 0                     ? "more than 2^32 multiply-adds on the emulator"
                             : s->candidate->nondeterministic ? "the kernel says that its results may differ"
                                                              : "";
    snprintf(s->result->unrepeated, sizeof s->result->unrepeated, "%s", unrepeated);
    if (unrepeated[0] != '\0')
        return FA_PASS;
    uint16_t *again = fa_alloc(s->count * sizeof *again);
    float *lse_again = fa_alloc((s->lse_count + 1) * sizeof *lse_again);
    char word[32];
    fa_status status = FA_PASS;
    for (int32_t i = 1; i <= repeats && status == FA_PASS; i++)
        status = repeat(s, i, again, lse_again, why);
    vary(s, 0, word);
    free(again);
    free(lse_again);
    return status;
}

static void merge(fa_check_result *result, const fa_verdict *verdict)
{
    for (int32_t i = 0; i < result->verdict_count; i++)
        if (strcmp(result->verdicts[i].name, verdict->name) == 0) {
            fa_verdict_merge(&result->verdicts[i], verdict);
            return;
        }
    FA_ASSERT(result->verdict_count < 2, "a third reference");
    result->verdicts[result->verdict_count++] = *verdict;
}

/* Errors of a drawn seed are reported with the draw, not with the requested inputs. */
static void record(session *s, const fa_verdict *verdict)
{
    fa_check_result *result = s->result;
    fa_draw *draw = result->draw_count > 0 ? &result->draws[result->draw_count - 1] : NULL;
    if (draw != NULL && verdict->max_abs_err > draw->max_abs_err)
        draw->max_abs_err = verdict->max_abs_err;
    if (s->draw->as_asked || !verdict->passed)
        merge(result, verdict);
}

/* The log-sum-exp against FP64. A failure of the output comes first. */
static fa_status judge_lse(session *s, const fa_reference *reference, fa_status status, fa_reason *why)
{
    if (s->lse == NULL)
        return status;
    const fa_lse_verdict verdict = fa_judge_lse(s->problem, reference, s->lse, s->acc_fp16);
    if (s->draw->as_asked || !verdict.passed)
        fa_lse_verdict_merge(&s->result->lse, &verdict);
    return verdict.passed || status != FA_PASS ? status : fa_refuse(why, FA_WRONG, "%s", verdict.failure);
}

/* The rules, against each reference; the first broken one is the reason. */
static fa_status judge(session *s, const fa_tensors *tensors, uint64_t seed, fa_reason *why)
{
    const double atol = s->result->atol, rtol = s->result->rtol;
    gpu_lock(s, FA_GPU_LOCK_NONE);
    fa_reference reference = fa_reference_make(s->problem, tensors, s->tile_m, s->acc_fp16, seed);
    reference.unit = ldexp(1.0, s->draw->v_power);
    reference.tensors = tensors;
    reference.tile_n = s->candidate->spec->kind == FA_KIND_HAND ? s->candidate->spec->knobs.n : 0;
    const fa_verdict exact = fa_judge(s->problem, &reference, s->output, s->tile_m, atol, rtol);
    fa_status status = FA_PASS;
    if (s->cpu) {
        record(s, &exact);
        if (!exact.passed)
            status = fa_refuse(why, FA_WRONG, "against cpu: %s", exact.failure);
    }
    status = judge_lse(s, &reference, status, why);
    if (s->cublas.on) {
        fa_reason inner = {""};
        gpu_lock(s, FA_GPU_LOCK_SHARED);
        const fa_status ran =
            fa_library_reference_run(s->candidate, s->draw, &reference, &s->cublas, s->result->missing, &inner);
        if (ran != FA_PASS && status == FA_PASS)
            status = fa_refuse(why, ran, "%s", inner.text);
        if (ran == FA_PASS && s->cublas.on && s->cublas.answered) {
            const fa_verdict against =
                fa_judge_library(s->problem, s->cublas.full, s->output, s->tile_m, atol * reference.unit, rtol, &exact);
            record(s, &against);
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
    const int32_t batch = fa_problem_stored_batch(p), q = fa_problem_stored_q(p), kv = fa_problem_stored_kv(p);
    const int32_t q_shape[4] = {batch, p->heads, q, p->dim}, o_shape[4] = {batch, p->heads, q, fa_problem_dim_v(p)};
    const int32_t kv_batch = fa_problem_stored_batch_kv(p);
    const int32_t k_shape[4] = {kv_batch, p->kv_heads, kv, p->dim},
                  v_shape[4] = {kv_batch, p->kv_heads, kv, fa_problem_dim_v(p)};
    FA_TRY(fa_npy_write(s->options->dump, "q", p->dtype, tensors->q, q_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "k", p->dtype, tensors->k, k_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "v", p->dtype, tensors->v, v_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "o", p->dtype, s->output, o_shape, why));
    return s->lse != NULL ? fa_npy_write_fp32(s->options->dump, "lse", s->lse, q_shape, why) : FA_PASS;
}

/* The output; what else a launch wrote is a finding. */
static fa_status read_output(session *s, const fa_tensors *tensors, fa_reason *why)
{
    const fa_status status = fa_buffers_read(&s->candidate->buffers, tensors, s->output, why);
    if (status != FA_WRONG)
        return status;
    const bool outside = strncmp(why->text, FA_OUT_OF_BOUNDS, strlen(FA_OUT_OF_BOUNDS)) == 0;
    snprintf(s->damage.fault, sizeof s->damage.fault, "%s", outside ? FA_OUT_OF_BOUNDS : "input overwritten");
    snprintf(s->damage.text, sizeof s->damage.text, "%.1900s", why->text);
    return status;
}

static fa_status check_tensors(session *s, const fa_tensors *tensors, uint64_t seed, bool first, fa_reason *why)
{
    fa_buffers *buffers = &s->candidate->buffers;
    gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(fa_buffers_fill(buffers, tensors, why));
    char word[32];
    vary(s, 0, word);
    FA_TRY(fa_candidate_launch(s->candidate, why));
    const fa_status intact = read_output(s, tensors, why);
    if (intact != FA_PASS && intact != FA_WRONG)
        return intact;
    FA_TRY(fa_buffers_read_lse(buffers, s->lse, why)); /* sets `why` only when it fails */
    if (first && s->options->dump)
        FA_TRY(dump(s, tensors, why)); /* a wrong output is worth looking at too */
    FA_TRY(intact);
    FA_TRY(judge(s, tensors, seed, why));
    if (!first)
        return FA_PASS;
    gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(check_repeats(s, why));
    return read_output(s, tensors, why);
}

/* Inputs are drawn for the requested scale; the launch and the reference use that of the draw. */
static fa_status check_inputs(session *s, const fa_problem *asked, const fa_draw *draw, bool first, fa_reason *why)
{
    fa_tensors tensors = {0};
    if (s->options->load)
        FA_TRY(fa_npy_load(asked, s->options->load, &tensors, why));
    else
        tensors = fa_draw_tensors(draw, asked);
    const fa_status status = check_tensors(s, &tensors, draw->seed, first, why);
    fa_tensors_free(&tensors);
    return status;
}

static fa_status check_seed(session *s, const fa_draw *draw, bool first, fa_reason *why)
{
    fa_candidate *asked = s->candidate;
    fa_candidate candidate = *asked;
    fa_problem drawn = fa_draw_problem(draw, asked->problem), problem = drawn;
    fa_reason inner = {""};
    char name[FA_DRAW_TEXT];
    problem.scale *= draw->factor;
    candidate.problem = s->problem = &problem;
    FA_ASSERT(fa_buffers_lay(&candidate.buffers, &problem, (fa_strides)draw->strides, draw->seed));
    s->candidate = &candidate;
    s->draw = draw;
    const fa_status status = check_inputs(s, &drawn, draw, first, &inner);
    asked->buffers.tables = candidate.buffers.tables; /* strides as they were left */
    fa_draw_problem_free(asked->problem, &drawn);
    s->candidate = asked;
    s->problem = asked->problem;
    if (status == FA_PASS)
        return FA_PASS;
    if (s->options->load)
        return fa_refuse(why, status, "%s", inner.text);
    fa_draw_describe(draw, name);
    return fa_refuse(why, status, "%s: %s", name, inner.text);
}

/* A draw that this candidate supports: a library's plans are for one layout, also as the only reference. */
static fa_draw draw_for(const session *s, int32_t index)
{
    fa_draw draw = fa_draw_of(s->options, s->candidate->problem, index);
    fa_buffers buffers = s->candidate->buffers;
    if (s->candidate->spec->kind != FA_KIND_HAND || index >= FA_DRAWS_MAX) {
        draw.as_asked = true;
        draw.dist = s->options->dist;
        draw.factor = 1.0f;
        draw.flat = false;
        draw.lengths = 0;
    }
    if (draw.as_asked || s->acc_fp16) /* sums in FP16 hold no large V: that is their class */
        draw.v_power = 0;
    const int32_t needs = s->candidate->needs;
    if (draw.lengths > 0 && needs & (FA_NEEDS_SELF | FA_NEEDS_WHOLE_M | FA_NEEDS_WHOLE_N))
        draw.lengths = 2; /* the lengths asked for, in another order */
    if (draw.as_asked || !s->cpu || needs & FA_NEEDS_PACKED || s->options->strides >= FA_STRIDES_FAR ||
        !fa_buffers_lay(&buffers, s->candidate->problem, (fa_strides)draw.strides, draw.seed))
        draw.strides = s->options->strides;
    return draw;
}

static session open_session(fa_candidate *candidate, const fa_options *options, fa_check_result *result)
{
    const fa_spec *spec = candidate->spec;
    session s = {
        .candidate = candidate,
        .problem = candidate->problem,
        .options = options,
        .result = result,
        .cpu = (options->check & FA_REFERENCE_CPU) != 0,
        .tile_m = spec->kind == FA_KIND_HAND && spec->knobs.m > 0 ? spec->knobs.m : FA_LIBRARY_TILE,
        .acc_fp16 = spec->knobs.acc == 1,
        .count = fa_problem_o_count(candidate->problem),
    };
    s.output = fa_alloc(s.count * sizeof *s.output);
    s.lse_count = spec->lse ? (size_t)fa_problem_rows(candidate->problem) : 0;
    s.lse = spec->lse ? fa_alloc(s.lse_count * sizeof *s.lse) : NULL;
    return s;
}

static fa_status close_session(session *s, fa_status status, const fa_reason *why)
{
    fa_library_reference_close(s->candidate->device, &s->cublas);
    free(s->output);
    free(s->lse);
    if (s->candidate->device->found != NULL)
        s->result->found = *s->candidate->device->found;
    if (s->damage.fault[0] != '\0')
        fa_findings_add(&s->result->found, &s->damage);
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

/* The inputs of a seed as asked, for what comes after the check. */
static fa_status put_back(const session *s, int32_t index, fa_reason *why)
{
    const fa_draw draw = draw_for(s, index);
    fa_tensors tensors = fa_draw_tensors(&draw, s->problem);
    gpu_lock(s, FA_GPU_LOCK_SHARED);
    const fa_status status = fa_buffers_fill(&s->candidate->buffers, &tensors, why);
    fa_tensors_free(&tensors);
    return status;
}

static fa_status check_seeds(session *s, fa_reason *why)
{
    if (s->options->check & FA_REFERENCE_CUBLAS)
        fa_library_reference_open(s->candidate, &s->cublas, s->result->missing);
    FA_TRY(need_reference(s, why));
    const int32_t seeds = s->options->load ? 1 : s->options->seeds; /* loaded inputs are the same for every seed */
    for (int32_t i = 0; i < seeds; i++) {
        /* the last seed comes second, with the queries of the first: K and V alone are new */
        fa_draw draw = draw_for(s, i == 0 ? 0 : i == 1 ? seeds - 1 : i - 1);
        if (i == 1 && seeds > 2)
            draw.q_seed = (uint64_t)s->options->seed;
        s->result->seeds++;
        if (i < FA_DRAWS_MAX)
            s->result->draws[s->result->draw_count++] = draw;
        FA_TRY(check_seed(s, &draw, i == 0, why));
        FA_TRY(need_reference(s, why)); /* the library is dropped where its own result is wrong */
    }
    return seeds > 2 ? put_back(s, seeds - 1, why) : FA_PASS;
}

/* A result with the type's tolerances, or the requested ones. */
static fa_check_result with_tolerances(fa_dtype dtype, const fa_options *options)
{
    const double rule = fa_rule_tolerance(dtype);
    fa_check_result result = {.atol = options->atol == FA_UNSET_REAL ? rule : options->atol,
                              .rtol = options->rtol == FA_UNSET_REAL ? rule : options->rtol};
    result.loosened = result.atol != rule || result.rtol != rule;
    return result;
}

fa_status fa_check(fa_candidate *candidate, const fa_options *options, fa_check_result *result, fa_reason *why)
{
    *result = with_tolerances(candidate->problem->dtype, options);
    session s = open_session(candidate, options, result);
    const fa_status status = check_seeds(&s, why);
    return close_session(&s, status == FA_PASS ? fa_findings_verdict(candidate->device->found, why) : status, why);
}

/* Uses the CPU where --check has it: opening the library again costs more than five seeds on the CPU. */
fa_status fa_check_again(fa_candidate *candidate, const fa_options *options, uint64_t seed, fa_check_result *result,
                         fa_reason *why)
{
    fa_check_result second = with_tolerances(candidate->problem->dtype, options);
    const fa_draw draw = {.seed = seed,
                          .q_seed = seed,
                          .as_asked = true,
                          .dist = options->dist,
                          .strides = options->strides,
                          .factor = 1.0f};
    session s = open_session(candidate, options, &second);
    fa_reason inner = {""};
    if (!s.cpu)
        fa_library_reference_open(s.candidate, &s.cublas, second.missing);
    fa_status status = need_reference(&s, &inner);
    if (status == FA_PASS)
        status = check_seed(&s, &draw, false, &inner);
    close_session(&s, status, &inner);
    if (status == FA_PASS)
        return FA_PASS;
    for (int32_t i = 0; i < second.verdict_count; i++)
        merge(result, &second.verdicts[i]);
    fa_lse_verdict_merge(&result->lse, &second.lse);
    for (int32_t i = 0; i < second.found.listed; i++)
        fa_findings_add(&result->found, &second.found.list[i]);
    result->passed = false;
    fa_refuse(why, status, "after timing: %s", inner.text);
    snprintf(result->failure, sizeof result->failure, "%.1023s", why->text);
    return status;
}
