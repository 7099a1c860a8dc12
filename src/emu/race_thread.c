#include "emu/race_thread.h"

#include <stddef.h>

void fa_race_forget(fa_race_known **known)
{
    fa_race_known_drop(*known);
    *known = NULL;
}

static void learn(const fa_emu_worker *worker, fa_race_thread *thread, fa_race_known *known)
{
    const fa_race_epochs *own = fa_race_known_block(known, worker->block_number);
    if (own != NULL)
        fa_race_epochs_join(thread->clock, own->of, fa_race_of(worker)->threads);
    if (known != NULL && known->count > (own != NULL))
        fa_race_known_add(&thread->others, known, fa_race_of(worker)->threads);
}

void fa_race_learn_observed(const fa_emu_worker *worker, fa_race_thread *thread, int scope)
{
    learn(worker, thread, thread->observed[scope]);
    fa_race_forget(&thread->observed[scope]);
}

fa_race_known *fa_race_snapshot(const fa_emu_worker *worker, fa_race_thread *thread)
{
    const uint32_t threads = fa_race_of(worker)->threads;
    fa_race_known *known = fa_race_known_of_block(worker->block_number, thread->clock, threads);
    fa_race_known_add(&known, thread->others, threads);
    thread->clock[fa_race_index(worker)]++;
    return known;
}
