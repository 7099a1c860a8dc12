#include "check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/judge.h"
#include "check/nan_source.h"
#include "check/repeats.h"
#include "input/npy.h"
#include "input/workload.h"

enum { AGAIN = 2 }; /* checks after timing: of a kernel, and with --vs of both */

static fa_status dump_gradients(const fa_session *s, const fa_tensors *tensors, const int32_t q_shape[4],
                                const int32_t k_shape[4], const int32_t v_shape[4], const int32_t o_shape[4],
                                fa_reason *why)
{
    const fa_problem *p = s->problem;
    const char *folder = s->options->dump;
    const int32_t *const shapes[] = {q_shape, k_shape, v_shape};
    FA_TRY(fa_npy_write(folder, "o", p->dtype, tensors->o, o_shape, why));
    FA_TRY(fa_npy_write(folder, "dout", p->dtype, tensors->dout, o_shape, why));
    FA_TRY(fa_npy_write_fp32(folder, "lse", tensors->lse, q_shape, why));
    const uint16_t *of = s->output;
    for (int32_t i = FA_GRAD_DQ; i < FA_GRAD_DSINKS; i++, of = s->output + fa_gradient_offset(p, i))
        FA_TRY(fa_npy_write(folder, fa_gradient_name(i), p->dtype, of, shapes[i], why));
    const int32_t heads[3] = {1, 1, p->heads};
    return p->sinks ? fa_npy_write_fp32(folder, "dsinks", (const float *)(const void *)of, heads, why) : FA_PASS;
}

static fa_status dump(const fa_session *s, const fa_tensors *tensors, fa_reason *why)
{
    const fa_problem *p = s->problem;
    const int32_t batch = fa_problem_stored_batch(p), q = fa_problem_stored_q(p), kv = fa_problem_stored_kv(p);
    const int32_t q_shape[4] = {batch, p->heads, q, p->dim}, o_shape[4] = {batch, p->heads, q, fa_problem_dim_v(p)};
    const int32_t kv_batch = fa_problem_stored_batch_kv(p);
    const int32_t k_shape[4] = {kv_batch, p->kv_heads, kv, p->dim},
                  v_shape[4] = {kv_batch, p->kv_heads, kv, fa_problem_dim_v(p)};
    FA_TRY(fa_npy_write(s->options->dump, "q", p->dtype, tensors->q, q_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "k", fa_problem_dtype_kv(p), tensors->k, k_shape, why));
    FA_TRY(fa_npy_write(s->options->dump, "v", fa_problem_dtype_kv(p), tensors->v, v_shape, why));
    FA_TRY(fa_npy_write_scores(p, s->options->dump, &tensors->scores, why));
    if (p->backward)
        return dump_gradients(s, tensors, q_shape, k_shape, v_shape, o_shape, why);
    FA_TRY(fa_npy_write(s->options->dump, "o", fa_problem_dtype_o(p), s->output, o_shape, why));
    if (p->pages != NULL)
        FA_TRY(fa_npy_write_pages(p->pages, s->options->dump, why));
    return s->lse != NULL ? fa_npy_write_fp32(s->options->dump, "lse", s->lse, q_shape, why) : FA_PASS;
}

/* The output; what else a launch wrote is a finding. */
static fa_status read_output(fa_session *s, fa_reason *why)
{
    const fa_status status = fa_buffers_read(&s->candidate->buffers, &s->kept->tensors, s->output, why);
    if (status != FA_WRONG)
        return status;
    const bool outside = strncmp(why->text, FA_OUT_OF_BOUNDS, strlen(FA_OUT_OF_BOUNDS)) == 0;
    snprintf(s->damage.fault, sizeof s->damage.fault, "%s", outside ? FA_OUT_OF_BOUNDS : "input overwritten");
    snprintf(s->damage.text, sizeof s->damage.text, "%.1900s", why->text);
    return status;
}

static fa_status check_tensors(fa_session *s, bool first, fa_reason *why)
{
    fa_buffers *buffers = &s->candidate->buffers;
    const fa_tensors *tensors = &s->kept->tensors;
    FA_TRY(fa_judge_give_forward(s, why));
    if (!s->problem->backward && fa_gpu_lock_is_taken(s->candidate->device->info.bus_id))
        fa_judge_need_rows(s); /* in place of waiting */
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(fa_buffers_fill(buffers, tensors, why));
    char word[32];
    fa_repeats_vary(s, 0, word);
    FA_TRY(fa_candidate_launch(s->candidate, why));
    const fa_status intact = read_output(s, why);
    if (intact != FA_PASS && intact != FA_WRONG)
        return intact;
    FA_TRY(fa_buffers_read_lse(buffers, s->lse, why)); /* sets `why` only when it fails */
    if (first && s->options->dump)
        FA_TRY(dump(s, tensors, why)); /* a wrong output is worth looking at too */
    FA_TRY(intact);
    const fa_status judged = fa_judge_all(s, why);
    if (judged == FA_WRONG)
        fa_nan_source_find(s, why);
    FA_TRY(judged);
    if (!first && !(s->problem->deterministic && !s->draw->as_asked && s->draw->dist == FA_DIST_LOW))
        return FA_PASS;
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_TRY(fa_repeats_check(s, why));
    return read_output(s, why);
}

/* The entry of the draw, with its inputs. They are drawn for the requested scale; the launch and the reference use that
 * of the draw. */
static void open_kept(fa_session *s, const fa_problem *asked, const fa_draw *draw)
{
    const fa_digest key = fa_kept_key(asked, draw, s->tile_m, s->acc_fp16);
    s->kept = fa_kept_open(&key, asked, fa_device_is_emu(s->candidate->device));
    if (!s->kept->has_tensors)
        s->kept->tensors = fa_draw_tensors(draw, asked);
    s->kept->has_tensors = true;
}

static void close_kept(fa_session *s)
{
    fa_kept_close(s->kept, fa_kept_most(fa_device_is_emu(s->candidate->device)));
    s->kept = NULL;
}

/* Inputs of files, which are not kept. */
static fa_status load(const fa_session *s, const fa_problem *asked, fa_tensors *tensors, fa_reason *why)
{
    if (s->options->load)
        return fa_npy_load(asked, s->options->load, tensors, why);
    if (fa_problem_has_descales(asked))
        return fa_refuse(why, FA_USAGE, "a workload's values have 16 bits: not with e4m3");
    *tensors = fa_draw_tensors(s->draw, asked);
    return fa_workload_values(s->options->definition, s->options->workload, asked, tensors, why);
}

static fa_status check_inputs(fa_session *s, const fa_problem *asked, bool first, fa_reason *why)
{
    fa_kept loaded = {.has_tensors = true};
    fa_status status;
    if (s->options->load || s->draw->given) {
        status = load(s, asked, &loaded.tensors, why);
        s->kept = &loaded;
        FA_THEN(status, check_tensors(s, first, why));
        fa_kept_free(&loaded);
        return status;
    }
    open_kept(s, asked, s->draw);
    status = check_tensors(s, first, why);
    close_kept(s);
    return status;
}

static fa_status check_seed(fa_session *s, const fa_draw *draw, bool first, fa_reason *why)
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
    const fa_status status = check_inputs(s, &drawn, first, &inner);
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
static fa_draw draw_for(const fa_session *s, int32_t index)
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
    if (draw.as_asked || (s->asked & FA_REFERENCE_CPU) == 0 || needs & FA_NEEDS_PACKED ||
        s->options->strides >= FA_STRIDES_FAR ||
        !fa_buffers_lay(&buffers, s->candidate->problem, (fa_strides)draw.strides, draw.seed))
        draw.strides = s->options->strides;
    return draw;
}

/* again: after timing. */
static fa_session open_session(fa_candidate *candidate, const fa_options *options, bool again, fa_check_result *result)
{
    const fa_spec *spec = candidate->spec;
    fa_session s = {
        .candidate = candidate,
        .problem = candidate->problem,
        .options = options,
        .result = result,
        .asked = again && (options->check & FA_REFERENCE_CPU) != 0 ? FA_REFERENCE_CPU : options->check,
        .forward = {.plain = true},
        .plain = {.plain = true,
                  .gradients = candidate->problem->backward,
                  .work_most = (options->check & FA_REFERENCE_PLAIN) != 0 ? 0 : FA_PLAIN_WORK_MOST},
        .tile_m = spec->kind == FA_KIND_HAND ? spec->knobs.m : FA_LIBRARY_TILE,
        .tile_n = spec->kind == FA_KIND_HAND ? spec->knobs.n : FA_LIBRARY_TILE,
        .acc_fp16 = spec->knobs.acc == 1,
        .count = fa_buffers_output_halves(&candidate->buffers),
    };
    s.output = fa_alloc(s.count * sizeof *s.output);
    s.lse_count = spec->lse ? (size_t)fa_problem_rows(candidate->problem) : 0;
    s.lse = spec->lse ? fa_alloc(s.lse_count * sizeof *s.lse) : NULL;
    return s;
}

static fa_status close_session(fa_session *s, fa_status status, const fa_reason *why)
{
    fa_device_reference_close(s->candidate->device, &s->cublas);
    fa_device_reference_close(s->candidate->device, &s->plain);
    fa_device_reference_close(s->candidate->device, &s->forward);
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

/* The inputs of a seed as asked, for what comes after the check. */
static fa_status put_back(fa_session *s, int32_t index, fa_reason *why)
{
    const fa_draw draw = draw_for(s, index);
    fa_tensors loaded = {.q = NULL};
    fa_status status = FA_PASS;
    s->draw = &draw;
    if (draw.given)
        status = load(s, s->problem, &loaded, why);
    else
        open_kept(s, s->problem, &draw);
    if (status == FA_PASS && !draw.given)
        status = fa_judge_give_forward(s, why);
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    FA_THEN(status, fa_buffers_fill(&s->candidate->buffers, draw.given ? &loaded : &s->kept->tensors, why));
    if (draw.given)
        fa_tensors_free(&loaded);
    else
        close_kept(s);
    s->draw = NULL;
    return status;
}

/* Of a check after timing. */
static fa_draw draw_again(const fa_options *options, uint64_t seed)
{
    return (fa_draw){.seed = seed,
                     .q_seed = seed,
                     .as_asked = true,
                     .dist = options->dist,
                     .strides = options->strides,
                     .factor = 1.0f};
}

/* The last seed comes second, with the queries of the first: K and V alone are new. Then those of AGAIN checks. */
static fa_draw draw_of_turn(const fa_session *s, int32_t turn)
{
    const int32_t seeds = s->options->seeds;
    if (turn >= seeds)
        return draw_again(s->options, (uint64_t)(s->options->seed + turn));
    fa_draw draw = draw_for(s, turn == 0 ? 0 : turn == 1 ? seeds - 1 : turn - 1);
    if (turn == 1 && seeds > 2)
        draw.q_seed = (uint64_t)s->options->seed;
    return draw;
}

/* Inputs and FP64 rows of a seed that comes later. */
static void prepare(fa_session *s, int32_t turn)
{
    const fa_problem *asked = s->problem;
    const fa_draw draw = draw_of_turn(s, turn);
    fa_problem drawn = fa_draw_problem(&draw, asked), problem = drawn;
    problem.scale *= draw.factor;
    s->problem = &problem;
    s->draw = &draw;
    open_kept(s, &drawn, &draw);
    fa_judge_need_rows(s);
    close_kept(s);
    fa_draw_problem_free(asked, &drawn);
    s->problem = asked;
    s->draw = NULL;
}

/* Whether all seeds are kept at once: inputs, and the plain kernel's result. */
static bool may_prepare(const fa_session *s)
{
    const fa_problem *p = s->problem;
    const size_t inputs = 2 * (fa_problem_q_count(p) + fa_problem_k_count(p) + fa_problem_v_count(p));
    const size_t results = 8 * (fa_problem_o_count(p) + (size_t)fa_problem_rows(p));
    return !p->backward && s->options->load == NULL && !s->options->valued &&
           (size_t)(s->options->seeds + AGAIN) * (inputs + results) < fa_kept_most(false);
}

static fa_status check_seeds(fa_session *s, fa_reason *why)
{
    FA_TRY(fa_judge_need_reference(s, why));
    const int32_t seeds = s->options->load ? 1 : s->options->seeds; /* loaded inputs are the same for every seed */
    const char *bus_id = s->candidate->device->info.bus_id;
    const bool gated = fa_gpu_gate_is_closed(bus_id);
    const int32_t last = may_prepare(s) ? seeds + (gated ? AGAIN : 0) : 0;
    int32_t prepared = 0;
    if (gated && s->asked & FA_REFERENCE_CUBLAS) /* it takes half a second */
        fa_device_reference_open(s->candidate, &s->cublas, s->result->missing);
    for (int32_t i = 0; i < seeds; i++) {
        /* While another process has the GPU there is work for the CPU. */
        for (prepared = prepared < i ? i : prepared; prepared < last && fa_gpu_lock_is_taken(bus_id); prepared++)
            prepare(s, prepared);
        fa_draw draw = draw_of_turn(s, i);
        s->result->seeds++;
        if (i < FA_DRAWS_MAX)
            s->result->draws[s->result->draw_count++] = draw;
        FA_TRY(check_seed(s, &draw, i == 0, why));
        FA_TRY(fa_judge_need_reference(s, why)); /* the library is dropped where its own result is wrong */
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
    fa_session s = open_session(candidate, options, false, result);
    fa_status status = options->workload != NULL ? fa_workload_tolerance(options->definition, options->workload,
                                                                         &result->published.tolerance, why)
                                                 : FA_PASS;
    FA_THEN(status, check_seeds(&s, why));
    return close_session(&s, status == FA_PASS ? fa_findings_verdict(candidate->device->found, why) : status, why);
}

/* Uses the CPU alone where --check has it: opening a library costs more than five seeds on the CPU. */
fa_status fa_check_again(fa_candidate *candidate, const fa_options *options, uint64_t seed, fa_check_result *result,
                         fa_reason *why)
{
    fa_check_result second = with_tolerances(candidate->problem->dtype, options);
    const fa_draw draw = draw_again(options, seed);
    fa_session s = open_session(candidate, options, true, &second);
    fa_reason inner = {""};
    fa_status status = fa_judge_need_reference(&s, &inner);
    FA_THEN(status, check_seed(&s, &draw, false, &inner));
    close_session(&s, status, &inner);
    if (status == FA_PASS)
        return FA_PASS;
    for (int32_t i = 0; i < second.verdict_count; i++)
        fa_judge_merge(result, &second.verdicts[i]);
    for (int32_t i = 0; i < second.gradient_count; i++)
        fa_judge_merge_gradient(result, &second.gradients[i]);
    fa_lse_verdict_merge(&result->lse, &second.lse);
    for (int32_t i = 0; i < second.found.listed; i++)
        fa_findings_add(&result->found, &second.found.list[i]);
    result->passed = false;
    fa_refuse(why, status, "after timing: %s", inner.text);
    snprintf(result->failure, sizeof result->failure, "%.1023s", why->text);
    return status;
}
