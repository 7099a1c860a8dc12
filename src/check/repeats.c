#include "check/repeats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check/judge.h"

/* On the emulator: each other schedule, and two seeds more. */
enum { REPEATS = 10, EMULATED_REPEATS = 5 };
#define EMULATED_WORK (1ll << 24) /* multiply-adds of all repeats: a few seconds */
#define EMULATED_ONCE (1ll << 32) /* of a launch that is nevertheless repeated, once */

const char *fa_repeats_vary(fa_session *s, int32_t variation, char word[32])
{
    fa_device *device = s->candidate->device;
    if (!device->vary)
        return "";
    const int32_t schedule = device->vary(device, variation);
    s->result->schedules |= 1 << schedule;
    return fa_word(FA_SCHEDULE_WORDS, schedule, word);
}

/* A repeat that may differ is judged like the first launch. */
static fa_status judge_again(fa_session *s, int32_t number, const char *schedule, uint16_t *again, float *lse_again,
                             fa_reason *why)
{
    fa_reason inner = {""};
    fa_check_result *result = s->result;
    uint16_t *const output = s->output;
    float *const lse = s->lse;
    for (int32_t tensor = 0; s->problem->backward && tensor < FA_GRADS; tensor++) {
        const double apart = fa_gradient_apart(s->problem, tensor, s->output, again);
        for (int32_t i = 0; i < result->gradient_count; i++)
            if (strcmp(result->gradients[i].tensor, fa_gradient_name(tensor)) == 0)
                result->gradients[i].repeats_max_abs = fmax(result->gradients[i].repeats_max_abs, apart);
    }
    s->output = again;
    s->lse = lse != NULL ? lse_again : NULL;
    const fa_status status = fa_judge_all(s, &inner);
    s->output = output;
    s->lse = lse;
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED); /* the judge gave it to others; the next launch comes */
    if (status == FA_PASS)
        return FA_PASS;
    return fa_refuse(why, status,
                     "launch %d on the same inputs%s%s is wrong, the first was right: what a launch adds to is not "
                     "zeroed, or launches race: %s",
                     number + 1, schedule[0] != '\0' ? ", schedule " : "", schedule, inner.text);
}

/* With --deterministic: which of the gradients differs comes first. */
static fa_status name_gradient(const fa_session *s, const uint16_t *again, fa_status status, fa_reason *why)
{
    const fa_reason bare = *why;
    for (int32_t tensor = 0; status == FA_WRONG && tensor < FA_GRADS; tensor++) {
        const size_t from = fa_gradient_offset(s->problem, tensor), to = fa_gradient_offset(s->problem, tensor + 1);
        if (memcmp(s->output + from, again + from, (to - from) * sizeof *again) != 0)
            return fa_refuse(why, status, "%s: %s", fa_gradient_name(tensor), bare.text);
    }
    return status;
}

/* Before one repeat the outputs hold numbers, those of the first launch with the other sign: a kernel that writes only
 * where it finds NaN, or adds to what it finds, gives another result. What no launch writes keeps its NaN. */
static fa_status put_numbers(const fa_session *s, uint16_t *scratch, float *lse, fa_reason *why)
{
    const fa_buffers *buffers = &s->candidate->buffers;
    const uint16_t *first = s->output;
    for (int tensor = FA_O; tensor < buffers->tensors; tensor++) {
        if (!fa_buffers_write(buffers, tensor) || tensor == FA_L)
            continue;
#pragma omp parallel for schedule(static) if (buffers->count[tensor] > 1 << 16)
        for (size_t i = 0; i < buffers->count[tensor]; i++) {
            const bool has_sign = !fa_tensor_is_fp32(tensor) || i % 2 == 1; /* FP32: in the second half */
            scratch[i] = has_sign && first[i] != FA_POISON ? first[i] ^ 0x8000u : first[i];
        }
        FA_TRY(fa_buffers_put(buffers, tensor, scratch, why));
        first += buffers->count[tensor];
    }
    for (size_t i = 0; i < s->lse_count; i++)
        lse[i] = isnan(s->lse[i]) ? s->lse[i] : -s->lse[i];
    return fa_buffers_has_lse(buffers) ? fa_buffers_put(buffers, FA_L, (const uint16_t *)(void *)lse, why) : FA_PASS;
}

/* Launches once more on the same inputs and compares with the first launch. */
static fa_status repeat(fa_session *s, int32_t number, uint16_t *again, float *lse_again, fa_reason *why)
{
    const fa_buffers *buffers = &s->candidate->buffers;
    char word[32];
    const char *schedule = fa_repeats_vary(s, number, word);
    FA_TRY(fa_buffers_poison_output(buffers, why));
    if (number == 1)
        FA_TRY(put_numbers(s, again, lse_again, why));
    FA_TRY(fa_candidate_launch(s->candidate, why));
    FA_TRY(fa_buffers_output(buffers, again, why));
    FA_TRY(fa_buffers_read_lse(buffers, lse_again, why));
    s->result->repeats++;
    const bool may_differ = s->problem->backward ? !s->problem->deterministic : s->candidate->nondeterministic;
    fa_status status = fa_compare_bits(s, again, lse_again, number, schedule, why);
    if (status == FA_WRONG && may_differ)
        status = judge_again(s, number, schedule, again, lse_again, why);
    else if (s->problem->backward)
        status = name_gradient(s, again, status, why);
    if (status == FA_WRONG && number == 1)
        fa_append_text(why->text, sizeof why->text,
                       "; before it the output held the first one's numbers with the other sign");
    return status;
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

fa_status fa_repeats_check(fa_session *s, fa_reason *why)
{
    const int32_t repeats = fa_check_repeats(s->problem, s->candidate->device->sample == NULL);
    snprintf(s->result->unrepeated, sizeof s->result->unrepeated, "%s",
             repeats == 0 ? "more than 2^32 multiply-adds on the emulator" : "");
    uint16_t *again = fa_alloc(s->count * sizeof *again);
    float *lse_again = fa_alloc((s->lse_count + 1) * sizeof *lse_again);
    char word[32];
    fa_status status = FA_PASS;
    for (int32_t i = 1; i <= repeats && status == FA_PASS; i++)
        status = repeat(s, i, again, lse_again, why);
    fa_repeats_vary(s, 0, word);
    free(again);
    free(lse_again);
    return status;
}

static fa_status differs(int32_t number, const char *schedule, const char *what, size_t differing, size_t count,
                         const char *first, fa_reason *why)
{
    return fa_refuse(why, FA_WRONG,
                     "not deterministic: launch %d on the same inputs%s%s differs from the first in %zu of %zu "
                     "elements%s, first at %s",
                     number + 1, schedule[0] != '\0' ? ", schedule " : "", schedule, differing, count, what, first);
}

/* Elements whose bits differ; at: the first of them. */
static size_t count_differing(const uint16_t *first, const uint16_t *again, size_t count, size_t *at)
{
    size_t differing = 0, least = count;
#pragma omp parallel for schedule(static) reduction(+ : differing) reduction(min : least) if (count > 1 << 16)
    for (size_t i = 0; i < count; i++)
        if (again[i] != first[i]) {
            differing++;
            least = i < least ? i : least;
        }
    *at = differing > 0 ? least : 0;
    return differing;
}

fa_status fa_compare_bits(const fa_session *s, const uint16_t *again, const float *lse_again, int32_t number,
                          const char *schedule, fa_reason *why)
{
    char place[64];
    size_t at, differing = count_differing(s->output, again, s->count, &at);
    snprintf(place, sizeof place, "element %zu (0x%04x, then 0x%04x)", at, s->output[at], again[at]);
    if (differing > 0)
        return differs(number, schedule, "", differing, s->count, place, why);
    for (size_t k = 0; k < s->lse_count; k++)
        if (memcmp(&lse_again[k], &s->lse[k], sizeof *lse_again) != 0 && differing++ == 0)
            at = k;
    if (differing == 0)
        return FA_PASS;
    snprintf(place, sizeof place, "element %zu (%.9g, then %.9g)", at, (double)s->lse[at], (double)lse_again[at]);
    return differs(number, schedule, " of the log-sum-exp", differing, s->lse_count, place, why);
}
