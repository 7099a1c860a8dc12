#include "timing/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FITTED_TENSOR_FLOP 4096.0 /* of the part that was measured, sm_90, per multiprocessor and clock */

/* Fitted by studies/estimate.py --fit. low, high: 10 % and 90 % of the judged times, of the estimate. */
static const struct {
    const char *kernel; /* "", the last: every other */
    double low, high, weights[FA_TERM_COUNT];
} fitted[] = {
#define FA_ESTIMATE(kernel, low, high, ...) {kernel, low, high, {__VA_ARGS__}},
#include "timing/estimate.def"
#undef FA_ESTIMATE
};

const char *fa_term_name(fa_term term, char name[32])
{
    static const char *const others[] = {"l2", "copy", "steps", "blocks", "parts", "dram"};
    if (term == FA_TERM_LAUNCH)
        return "launch";
    if (term >= FA_TERM_L2)
        return others[term - FA_TERM_L2];
    if (term < FA_TERM_CHAIN)
        return fa_pipe_name((fa_pipe)(term - FA_TERM_PIPE));
    snprintf(name, 32, "%s_chain", fa_pipe_name((fa_pipe)(term - FA_TERM_CHAIN)));
    return name;
}

static void fill_terms(const fa_estimate_input *in, double *terms)
{
    const fa_problem *p = in->problem;
    const double sms = in->sm_count, splits = fmax(1, in->info->splits), tiles = fmax(1, in->launch->tiles) * splits;
    const double each = tiles / sms, rounds = fmax(1, ceil(tiles / sms / fmax(1, in->blocks_per_sm)));
    /* Blocks that share the tiles out among themselves end together; others leave multiprocessors idle. */
    const double busiest = in->info->grid == FA_GRID_TILES ? fmax(1, ceil(each)) : fmax(1, each),
                 uneven = busiest / each;
    const double full = 4.0 * p->batch * p->heads * (double)p->seq_q * (double)p->seq_kv * p->dim;
    const double unmasked = full > 0 ? fa_problem_flop(p) / full : 1, keys = unmasked * (double)p->seq_kv;
    const double read_bytes = tiles / splits * keys * p->dim * 4;
    double clocks[FA_TERM_COUNT] = {0};
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++) {
        clocks[FA_TERM_PIPE + pipe] = in->pipe_clocks[pipe] * uneven;
        clocks[FA_TERM_CHAIN + pipe] = rounds * in->pipe_clocks[pipe] * sms / (tiles * in->launch->threads / 32.0);
    }
    clocks[FA_TERM_CHAIN + FA_PIPE_TENSOR] *= in->tensor_flop / FITTED_TENSOR_FLOP;
    clocks[FA_TERM_L2] = read_bytes / (64 * sms) * uneven;
    clocks[FA_TERM_COPY] = read_bytes / (64.0 * fmax(1, in->info->vec)) / sms * uneven;
    clocks[FA_TERM_STEPS] = 1000 * rounds * keys / fmax(1, in->info->n) / splits;
    clocks[FA_TERM_BLOCKS] = 1000 * fmax(1, ceil(in->launch->grid / sms / fmax(1, in->blocks_per_sm)));
    if (splits > 1)
        clocks[FA_TERM_PARTS] = 8 * splits * p->batch * p->heads * (double)p->seq_q * p->dim / (64 * sms);
    for (int term = 0; term < FA_TERM_COUNT; term++)
        terms[term] = clocks[term] / in->clock_mhz;
    terms[FA_TERM_LAUNCH] = 1;
    terms[FA_TERM_DRAM] = in->dram_us;
}

fa_estimate fa_estimate_of(const fa_estimate_input *input, const char *kernel)
{
    fa_estimate estimate = {.known = true};
    size_t i = 0;
    while (fitted[i].kernel[0] != '\0' && strcmp(fitted[i].kernel, kernel) != 0)
        i++; /* the last is "" */
    fill_terms(input, estimate.terms_us);
    for (int term = 0; term < FA_TERM_COUNT; term++)
        estimate.us += fitted[i].weights[term] * estimate.terms_us[term];
    estimate.us = fmax(input->bound_us, estimate.us);
    estimate.us_low = fmax(input->bound_us, estimate.us * fitted[i].low);
    estimate.us_high = estimate.us * fitted[i].high;
    return estimate;
}
