#include "timing/invariance.h"

#include <math.h>
#include <stdlib.h>

#include "base/process.h"
#include "timing/stats.h"

enum { INPUTS = 3, ROUNDS = 7, ROUNDS_LEAST = 3 }; /* least: before a kernel is accused */
enum { ON_NEW_INPUTS, ON_SEEN_INPUTS, ON_A_DONE_OUTPUT, CASES };

static const double BUDGET_S = 0.3, INPUTS_MOST_BYTES = 1 << 30;
static const double RATIO_MOST = 1.25, SLACK_US = 1.0; /* an event pair resolves about half a microsecond */
static const float TOLERANCE = 2e-3f;

typedef struct trial {
    const fa_candidate *candidate;
    const fa_buffers *buffers; /* the candidate's */
    fa_sample_request request;
    /* As they are, and with every sign flipped: the output's signs flip, S stays. Backward: dO alone */
    int count, which[INPUTS]; /* of the tensors */
    fa_ptr inputs[INPUTS][2];
    uint16_t *expected, *found;
} trial;

static fa_status put_inputs(const trial *t, int which, fa_reason *why)
{
    fa_device *device = t->candidate->device;
    for (int i = 0; i < t->count; i++)
        FA_TRY(device->copy(device, fa_buffers_at(t->buffers, t->which[i]), t->inputs[i][which],
                            fa_buffers_bytes(t->buffers, t->which[i]), why));
    return FA_PASS;
}

/* Both sets of an input lie on the device: through the host the copies would take longer than all that is timed. */
static fa_status keep_input(trial *t, int i, fa_reason *why)
{
    fa_device *device = t->candidate->device;
    const fa_ptr tensor = fa_buffers_at(t->buffers, t->which[i]);
    const size_t bytes = fa_buffers_bytes(t->buffers, t->which[i]);
    const bool fp8 = t->buffers->layout[t->which[i]].fp8;
    for (int which = 0; which < 2; which++)
        FA_TRY(device->alloc(device, bytes, &t->inputs[i][which], why));
    FA_TRY(device->copy(device, t->inputs[i][0], tensor, bytes, why));
    uint8_t *flipped = fa_alloc(bytes);
    fa_status status = device->copy_out(device, flipped, tensor, bytes, why);
#pragma omp parallel for schedule(static)
    for (size_t k = 0; k < bytes; k++) /* of FP8 each byte has a sign, else the second of two */
        flipped[k] ^= (uint8_t)(fp8 || k % 2 == 1 ? 0x80 : 0);
    FA_THEN(status, device->copy_in(device, t->inputs[i][1], flipped, bytes, why));
    free(flipped);
    return status;
}

static fa_status trial_make(trial *t, fa_reason *why)
{
    for (int i = 0; i < t->count; i++)
        FA_TRY(keep_input(t, i, why));
    t->expected = fa_alloc(fa_buffers_output_halves(t->buffers) * sizeof *t->expected);
    t->found = fa_alloc(fa_buffers_output_halves(t->buffers) * sizeof *t->found);
    FA_TRY(fa_buffers_poison_output(t->buffers, why));
    FA_TRY(fa_candidate_launch(t->candidate, why));
    return fa_buffers_output(t->buffers, t->expected, why);
}

static void trial_free(trial *t)
{
    fa_device *device = t->candidate->device;
    for (int i = 0; i < INPUTS; i++)
        for (int which = 0; which < 2; which++)
            if (t->inputs[i][which])
                device->free(device, t->inputs[i][which]);
    free(t->expected);
    free(t->found);
}

static float value_of(const trial *t, uint16_t element)
{
    return fa_element_to_float(fa_problem_dtype_o(t->candidate->problem), element);
}

static bool close_enough(const trial *t, float found, float expected)
{
    const float tolerance = TOLERANCE * (float)fa_dtype_coarseness(fa_problem_dtype_o(t->candidate->problem));
    return fabsf(found - expected) <= tolerance + tolerance * fabsf(expected);
}

/* The first element that is not `sign` times what is expected; their number when all are. NaN is not. */
static size_t first_wrong(const trial *t, float sign)
{
    const size_t count = fa_buffers_output_count(t->buffers);
    size_t first = count;
#pragma omp parallel for schedule(static) reduction(min : first)
    for (size_t i = 0; i < count; i++)
        if (i < first && !close_enough(t, value_of(t, t->found[i]), sign * value_of(t, t->expected[i])))
            first = i;
    return first;
}

/* Before each sample come equal launches and, last, equal copies: caches, clocks and the queue of the GPU are alike in
 * all three cases. */
static fa_status take_sample(trial *t, int which, double *us, fa_reason *why)
{
    fa_device *device = t->candidate->device;
    fa_sample sample;
    FA_TRY(put_inputs(t, 0, why));
    FA_TRY(fa_candidate_launch(t->candidate, why));
    if (which != ON_A_DONE_OUTPUT)
        FA_TRY(fa_buffers_poison_output(t->buffers, why));
    FA_TRY(put_inputs(t, which == ON_NEW_INPUTS, why));
    FA_TRY(device->sample(device, &t->request, &sample, why));
    *us = sample.us;
    if (which == ON_A_DONE_OUTPUT)
        return FA_PASS;
    FA_TRY(fa_buffers_output(t->buffers, t->found, why));
    const float sign = which == ON_NEW_INPUTS ? -1.0f : 1.0f;
    const size_t wrong = first_wrong(t, sign);
    if (wrong < fa_buffers_output_count(t->buffers))
        return fa_refuse(why, FA_WRONG, "a timed launch on %s gave %g at element %zu, not %g",
                         which == ON_NEW_INPUTS ? "new inputs" : "the inputs of the launch before",
                         (double)value_of(t, t->found[wrong]), wrong, (double)(sign * value_of(t, t->expected[wrong])));
    return FA_PASS;
}

static fa_status take_all(trial *t, size_t least, double medians_us[CASES], fa_reason *why)
{
    double us[CASES][ROUNDS];
    const double start_s = fa_now_s();
    size_t rounds = 0;
    while (rounds < ROUNDS && (rounds < least || fa_now_s() - start_s < BUDGET_S)) {
        for (int which = 0; which < CASES; which++)
            FA_TRY(take_sample(t, which, &us[which][rounds], why));
        rounds++;
    }
    for (int which = 0; which < CASES; which++)
        medians_us[which] = fa_stats_of(us[which], rounds).p50;
    return FA_PASS;
}

static fa_status judge(trial *t, double *ratio, fa_reason *why)
{
    double us[CASES];
    for (int attempt = 0; attempt < 3; attempt++) {
        FA_TRY(take_all(t, attempt == 0 ? 1 : ROUNDS_LEAST, us, why));
        const double most = fmax(us[0], fmax(us[1], us[2])), least = fmin(us[0], fmin(us[1], us[2]));
        *ratio = most / least;
        if (most <= RATIO_MOST * least + SLACK_US)
            return FA_PASS;
    }
    return fa_refuse(why, FA_WRONG,
                     "the time depends on what an earlier launch left: %.2f us on new inputs, %.2f us on the same "
                     "inputs again, %.2f us when the output was already there",
                     us[ON_NEW_INPUTS], us[ON_SEEN_INPUTS], us[ON_A_DONE_OUTPUT]);
}

fa_status fa_timing_invariance(const fa_candidate *candidate, const fa_sample_request *request, double *ratio,
                               fa_reason *why)
{
    trial t = {.candidate = candidate, .buffers = &candidate->buffers, .request = *request};
    *ratio = NAN;
    double bytes = 0;
    t.count = t.buffers->problem != NULL && t.buffers->problem->backward ? 1 : INPUTS;
    for (int i = 0; i < t.count; i++) {
        t.which[i] = t.count == 1 ? FA_DO : FA_Q + i;
        bytes += (double)fa_buffers_bytes(t.buffers, t.which[i]);
    }
    if (bytes == 0 || bytes > INPUTS_MOST_BYTES)
        return FA_PASS;
    t.request.method = FA_TIMING_EVENT;
    t.request.launches = 1;
    t.request.warmup_launches = 0;
    t.request.reset_l2 = false;
    fa_status status = trial_make(&t, why);
    if (status == FA_PASS)
        status = judge(&t, ratio, why); /* the last case leaves the inputs as they were */
    trial_free(&t);
    return status;
}
