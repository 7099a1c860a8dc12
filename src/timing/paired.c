#include "timing/paired.h"

#include <math.h>
#include <stdlib.h>

#include "base/process.h"
#include "timing/calibrate.h"
#include "timing/invariance.h"
#include "timing/roofline.h"
#include "timing/stats.h"

enum { BLOCKS_MAX = FA_SAMPLES_MAX, BLOCK_SAMPLES = 2 };

static const double GAIN_LEAST = 0.03; /* smaller gains are not worth a replacement (docs/timing.md) */

/* Paired ratios of the blocks kept so far. In a block of four samples X Y Y X a linear drift cancels. */
typedef struct blocks {
    size_t count, seen;
    bool few;                 /* too few for an interval: none of A A A A */
    double ratio[BLOCKS_MAX]; /* other / candidate */
    double self[BLOCKS_MAX];  /* candidate / candidate, taken the same way */
    double us[BLOCKS_MAX], other_us[BLOCKS_MAX];
} blocks;

typedef struct contender {
    fa_device *device;
    fa_sample_request request;
} contender;

/* Four samples x y y x; the sum of each contender's two. */
typedef struct quad {
    double x_us, y_us;
    bool throttled; /* by the hardware; the power limit affects both contenders of a block alike */
} quad;

static fa_status add(contender *of, double *sum_us, quad *block, fa_reason *why)
{
    fa_sample sample;
    FA_TRY(of->device->sample(of->device, &of->request, &sample, why));
    of->request.reset_l2 = false;
    *sum_us += sample.us;
    block->throttled = block->throttled || sample.throttled;
    return FA_PASS;
}

static fa_status take_quad(contender *x, contender *y, quad *block, fa_reason *why)
{
    *block = (quad){0};
    FA_TRY(add(x, &block->x_us, block, why));
    FA_TRY(add(y, &block->y_us, block, why));
    FA_TRY(add(y, &block->y_us, block, why));
    return add(x, &block->x_us, block, why);
}

/* One round: ABBA or, every other time, BAAB; then AAAA, unless no second round of both would fit. */
static fa_status take_round(contender *a, contender *b, double max_s, blocks *all, fa_reason *why)
{
    quad pair, self = {.x_us = 1, .y_us = 1};
    const bool swapped = all->seen % 2 == 1;
    const double begun_s = fa_now_s();
    FA_TRY(swapped ? take_quad(b, a, &pair, why) : take_quad(a, b, &pair, why));
    const double a_us = swapped ? pair.y_us : pair.x_us, b_us = swapped ? pair.x_us : pair.y_us;
    if (all->seen == 0)
        all->few = 2 * (fa_now_s() - begun_s + 2e-6 * a_us * a->request.launches) > max_s;
    if (!all->few)
        FA_TRY(take_quad(a, a, &self, why));
    all->seen++;
    if (pair.throttled || self.throttled)
        return FA_PASS;
    all->ratio[all->count] = b_us / a_us;
    all->self[all->count] = self.y_us / self.x_us;
    all->us[all->count] = a_us / BLOCK_SAMPLES;
    all->other_us[all->count] = b_us / BLOCK_SAMPLES;
    all->count++;
    return FA_PASS;
}

static void summarise(const blocks *all, fa_paired *c)
{
    const fa_stats ratio = fa_stats_of(all->ratio, all->count), self = fa_stats_of(all->self, all->count);
    c->ratio = ratio.p50;
    c->ratio_ci95[0] = ratio.ci95[0];
    c->ratio_ci95[1] = ratio.ci95[1];
    c->aa_noise = fmax(fabs(self.p50 - 1), 0.5 * (self.ci95[1] - self.ci95[0]));
    c->blocks = (int32_t)all->count;
    c->discarded = (int32_t)(all->seen - all->count);
    c->throttled = (double)c->discarded > FA_THROTTLED_SHARE * (double)all->seen;
    c->p50_us = fa_stats_of(all->us, all->count).p50;
    c->other_p50_us = fa_stats_of(all->other_us, all->count).p50;
    c->settled = fa_stats_settled(&ratio, FA_SETTLED) && fa_stats_settled(&self, FA_SETTLED);
    const double gain = c->ratio - 1;
    c->accepted = gain > GAIN_LEAST && gain > 2 * c->aa_noise && c->ratio_ci95[0] > 1 && !c->throttled;
}

static fa_status take_all(contender *a, contender *b, const fa_options *options, blocks *all, fa_paired *c,
                          fa_reason *why)
{
    const double start_s = fa_now_s();
    const size_t least = ((size_t)options->min_samples + BLOCK_SAMPLES - 1) / BLOCK_SAMPLES;
    size_t look_at = least;
    double last_s;
    do {
        const double begun_s = fa_now_s();
        FA_TRY(take_round(a, b, options->max_time, all, why));
        last_s = fa_now_s() - begun_s;
        if (all->count < look_at)
            continue;
        look_at = fa_stats_next_look(all->count);
        summarise(all, c);
    } while (!c->settled && all->seen < BLOCKS_MAX && fa_now_s() - start_s + last_s <= options->max_time);
    if (all->count == 0)
        return fa_refuse(why, FA_ERROR, "--vs: the hardware throttled in every one of %zu blocks", all->seen);
    summarise(all, c);
    c->settled = c->settled && all->count >= least;
    return FA_PASS;
}

/* One method for both: the graph as soon as one of them is too short for events. */
static fa_status calibrate_both(contender *a, contender *b, const fa_options *options, fa_paired *c, fa_reason *why)
{
    double warmup_ms;
    fa_sample_request *both[] = {&a->request, &b->request};
    FA_TRY(fa_calibrate(a->device, both, 2, options, &warmup_ms, why));
    c->method = a->request.method;
    a->request.rest_ms = b->request.rest_ms = options->rest_ms;
    /* After the other candidate's samples the L2 holds the other candidate's tensors: launch once untimed, or so long
     * that it does not matter. */
    for (int i = 0; i < 2; i++)
        both[i]->warmup_launches = options->l2 == FA_L2_WARM && both[i]->about_us < FA_LONG_US;
    return FA_PASS;
}

fa_status fa_time_paired(const fa_candidate *candidate, const fa_candidate *other, const fa_options *options,
                         fa_paired *paired, fa_reason *why)
{
    fa_device *device = candidate->device;
    *paired = (fa_paired){.done = false};
    if (!device->sample)
        return fa_refuse(why, FA_NOT_RUN, "the %s device has no clock worth reading", device->info.backend);
    FA_ASSERT(other->device == device, "two devices");
    contender a = {device, fa_calibrate_request(candidate, options)};
    contender b = {device, fa_calibrate_request(other, options)};
    blocks *all = fa_alloc(sizeof *all);
    fa_status status = calibrate_both(&a, &b, options, paired, why);
    FA_THEN(status, take_all(&a, &b, options, all, paired, why));
    free(all);
    FA_TRY(status);
    double roofline_us, ratio;
    FA_TRY(fa_roofline_judge(paired->p50_us, candidate->problem, &device->info, &a.request, &roofline_us, why));
    FA_TRY(fa_roofline_judge(paired->other_p50_us, candidate->problem, &device->info, &b.request, &roofline_us, why));
    FA_TRY(fa_timing_invariance(other, &b.request, &ratio, why));
    paired->accepted = paired->accepted && candidate->problem->dtype == other->problem->dtype;
    paired->done = true;
    return FA_PASS;
}
