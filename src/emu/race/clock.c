#include "emu/race/clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static fa_race_epochs *epochs_make(const uint32_t *epochs, uint32_t threads)
{
    fa_race_epochs *made = malloc(sizeof *made + threads * sizeof *epochs);
    FA_ASSERT(made != NULL);
    made->references = 1;
    memcpy(made->of, epochs, threads * sizeof *epochs);
    return made;
}

static fa_race_epochs *epochs_hold(fa_race_epochs *epochs)
{
    epochs->references++;
    return epochs;
}

static fa_race_known *known_make(size_t blocks)
{
    fa_race_known *made = malloc(sizeof *made + blocks * sizeof made->at[0]);
    FA_ASSERT(made != NULL);
    made->references = 1;
    made->count = 0;
    return made;
}

void fa_race_epochs_join(uint32_t *into, const uint32_t *from, uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

const fa_race_epochs *fa_race_known_block(const fa_race_known *known, uint32_t block)
{
    uint32_t low = 0, high = known != NULL ? known->count : 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (known->at[middle].block == block)
            return known->at[middle].epochs;
        if (known->at[middle].block < block)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

uint32_t fa_race_known_epoch(const fa_race_known *known, uint32_t block, uint32_t thread)
{
    const fa_race_epochs *epochs = fa_race_known_block(known, block);
    return epochs != NULL ? epochs->of[thread] : 0;
}

fa_race_known *fa_race_known_of_block(uint32_t block, const uint32_t *epochs, uint32_t threads)
{
    fa_race_known *made = known_make(1);
    made->at[made->count++] = (fa_race_block){block, epochs_make(epochs, threads)};
    return made;
}

fa_race_known *fa_race_known_hold(fa_race_known *known)
{
    if (known != NULL)
        known->references++;
    return known;
}

void fa_race_known_drop(fa_race_known *known)
{
    if (known == NULL || --known->references > 0)
        return;
    for (uint32_t i = 0; i < known->count; i++)
        if (--known->at[i].epochs->references == 0)
            free(known->at[i].epochs);
    free(known);
}

static fa_race_epochs *epochs_join(fa_race_epochs *a, fa_race_epochs *b, uint32_t threads)
{
    if (a == b)
        return epochs_hold(a);
    fa_race_epochs *both = epochs_make(a->of, threads);
    fa_race_epochs_join(both->of, b->of, threads);
    return both;
}

void fa_race_known_add(fa_race_known **known, fa_race_known *more, uint32_t threads)
{
    fa_race_known *old = *known;
    if (more == NULL || more == old)
        return;
    if (old == NULL) {
        *known = fa_race_known_hold(more);
        return;
    }
    fa_race_known *both = known_make((size_t)old->count + more->count);
    for (uint32_t i = 0, j = 0; i < old->count || j < more->count;) {
        const bool only_old = j == more->count || (i < old->count && old->at[i].block < more->at[j].block);
        const bool only_more = i == old->count || (j < more->count && more->at[j].block < old->at[i].block);
        fa_race_block *to = &both->at[both->count++];
        if (only_old)
            *to = (fa_race_block){old->at[i].block, epochs_hold(old->at[i].epochs)};
        else if (only_more)
            *to = (fa_race_block){more->at[j].block, epochs_hold(more->at[j].epochs)};
        else
            *to = (fa_race_block){old->at[i].block, epochs_join(old->at[i].epochs, more->at[j].epochs, threads)};
        i += !only_more;
        j += !only_old;
    }
    fa_race_known_drop(old);
    *known = both;
}
