#include "emu/race/async.h"

#include <stdlib.h>

#include "base/status.h"
#include "emu/race/cluster.h"
#include "emu/race/detector.h"
#include "emu/race/found.h"
#include "emu/race/memory.h"

static uint32_t threads_of(const fa_emu_worker *worker) { return worker->launch->threads; }

void fa_race_phase_init(fa_race_phase **phase, const void *pc)
{
    fa_emu_worker *worker = fa_emu_self;
    const uint32_t width = fa_race_of(worker)->width;
    if (*phase == NULL) {
        *phase = fa_alloc(sizeof **phase + 2 * width * sizeof(uint32_t));
        (*phase)->gathering.clock = (*phase)->clocks;
        (*phase)->complete.clock = (*phase)->clocks + width;
    }
    fa_race_meeting_reset(&(*phase)->gathering, width);
    fa_race_meeting_reset(&(*phase)->complete, width);
    (*phase)->slot = 0;
    (*phase)->epoch = 1;
    (*phase)->init = fa_race_access_now(worker, FA_RACE_WRITE, pc);
}

void fa_race_phase_free(fa_race_phase *phase)
{
    if (phase == NULL)
        return;
    fa_race_meeting_reset(&phase->gathering, 0);
    fa_race_meeting_reset(&phase->complete, 0);
    free(phase);
}

/* A fence of the barrier's initialisation releases it to every thread that knows of the fence. */
static bool is_visible(const fa_emu_worker *worker, const fa_race_access *init)
{
    const fa_race_thread *self = fa_race_current(worker);
    const fa_emu_worker *block = fa_race_peer(worker, init->block);
    const uint32_t known =
        block == worker ? self->clock[init->thread] : fa_race_known_epoch(self->others, init->block, init->thread);
    const fa_race_fences *fences = &block->race->thread[init->thread].fences[FA_RACE_BARRIER_INIT];
    return init->epoch <= known ||
           fa_race_fence_after(fences, init->epoch, fa_race_reached(worker, init->block, init->thread));
}

void fa_race_phase_used(const fa_race_phase *phase, const void *pc)
{
    fa_emu_worker *worker = fa_emu_self;
    if (phase->init.block != worker->block_number)
        fa_race_visit(worker, fa_race_peer(worker, phase->init.block), pc);
    if (is_visible(worker, &phase->init))
        return;
    const fa_race_access now = fa_race_access_now(worker, FA_RACE_ATOMIC, pc);
    fa_race_found(worker, "barrier not visible", "no synchronisation with its initialisation:", &now, &phase->init);
}

static bool knows_phase(const fa_emu_worker *worker, const fa_race_phase *phase)
{
    const fa_race_thread *thread = fa_race_current(worker);
    for (uint32_t i = 0; i < threads_of(worker); i++)
        if (phase->complete.clock[i] > thread->clock[i])
            return false;
    return true;
}

bool fa_race_phase_arrive(fa_race_phase *phase, fa_race_arrival how)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_race_thread *thread = fa_race_current(worker);
    const uint32_t index = fa_race_index(worker), width = fa_race_of(worker)->width;
    const bool own = phase->init.block == worker->block_number;
    if (own && !knows_phase(worker, phase))
        return false;
    thread->spins = 0;
    if (how == FA_RACE_ARRIVES_RELAXED)
        fa_race_known_add(&phase->gathering.others, thread->released[own ? FA_RACE_BLOCK : FA_RACE_DEVICE], width);
    if (how == FA_RACE_ARRIVES_RELAXED || (how == FA_RACE_ARRIVES_IN_BLOCK && !own))
        return true;
    fa_race_learn_observed(worker, thread, FA_RACE_BLOCK);
    if (own) {
        fa_race_meet(worker, &phase->gathering, thread);
        thread->clock[index]++;
        return true;
    }
    fa_race_known *known = fa_race_snapshot(worker, thread);
    fa_race_known_add(&phase->gathering.others, known, width);
    fa_race_known_drop(known);
    return true;
}

void fa_race_phase_complete(fa_race_phase *phase)
{
    const uint32_t width = fa_race_of(fa_emu_self)->width;
    const fa_race_meeting old = phase->complete;
    phase->complete = phase->gathering;
    phase->gathering = old;
    fa_race_meeting_reset(&phase->gathering, width);
    phase->epoch++;
}

void fa_race_phase_observed(fa_race_phase *phase)
{
    fa_race_thread *thread = fa_race_current(fa_emu_self);
    fa_race_part(fa_emu_self, &phase->complete, thread);
    thread->spins = 0;
}

void fa_race_phase_bytes_came(fa_emu_worker *worker, fa_race_phase *phase)
{
    (void)worker;
    phase->gathering.clock[phase->slot] = phase->epoch;
}

fa_race_actor fa_race_actor_of_phase(fa_emu_worker *worker, fa_emu_worker *owner, fa_race_phase *phase, const void *pc)
{
    if (worker->race == NULL)
        return (fa_race_actor){0};
    const uint32_t first = threads_of(worker) + FA_EMU_MAX_WARPS + 2 * FA_RACE_STORING_THREADS;
    const fa_race_fences *fences = owner->race->thread[phase->init.thread].fences;
    const uint32_t known = fa_race_reached(worker, phase->init.block, phase->init.thread);
    if (!fa_race_fence_after(&fences[FA_RACE_BARRIER_INIT], phase->init.epoch, known) &&
        !fa_race_fence_after(&fences[FA_RACE_PROXY_SHARED], phase->init.epoch, known)) {
        const fa_race_access now = fa_race_access_now(worker, FA_RACE_ASYNC, pc);
        fa_race_found(worker, "missing fence.mbarrier_init",
                      "no such fence of that thread after its initialisation:", &now, &phase->init);
    }
    if (phase->slot == 0) {
        phase->slot = first + owner->race->phases;
        owner->race->phases += owner->race->phases + 1 < FA_RACE_PHASES;
    }
    return (fa_race_actor){phase->slot, fa_race_index(worker), phase->epoch, owner->block_number};
}

static uint32_t store_slot(fa_emu_worker *worker, fa_race_store which)
{
    fa_race_team *team = worker->race;
    const uint16_t self = (uint16_t)fa_race_index(worker);
    uint32_t at = 0;
    while (at < team->storing_threads && team->storing[at] != self)
        at++;
    if (at == FA_RACE_STORING_THREADS)
        at--;
    else if (at == team->storing_threads)
        team->storing[team->storing_threads++] = self;
    return threads_of(worker) + FA_EMU_MAX_WARPS + 2 * at + (which == FA_RACE_STORE_WRITES);
}

fa_race_actor fa_race_actor_of_group(fa_emu_worker *worker, uint32_t group, fa_race_store which)
{
    if (worker->race == NULL)
        return (fa_race_actor){0};
    return (fa_race_actor){store_slot(worker, which), fa_race_index(worker), group + 1, worker->block_number};
}

fa_race_actor fa_race_actor_of_products(fa_emu_worker *worker, uint32_t warp, uint32_t group)
{
    return (fa_race_actor){threads_of(worker) + warp, warp * FA_EMU_WARP, group + 1, worker->block_number};
}

void fa_race_actor_touch(fa_emu_worker *worker, const fa_race_actor *actor, const fa_emu_worker *owner,
                         const void *place, size_t size, int kind, const void *pc)
{
    if (worker->race != NULL)
        fa_race_touch_by(worker, actor, fa_race_shadow_address(owner, (uint64_t)(uintptr_t)place), size,
                         FA_RACE_ASYNC | kind, pc);
}

void fa_race_actor_reads_map(fa_emu_worker *worker, const fa_race_actor *actor, const void *map, const void *pc)
{
    const fa_emu_fibre *fibre = worker->current;
    const bool parameter = (uintptr_t)map - (uintptr_t)fibre->stack < fibre->stack_size;
    if (worker->race != NULL && !parameter)
        fa_race_touch_by(worker, actor, (uint64_t)(uintptr_t)map, sizeof(fa_tensor_map), FA_RACE_ASYNC | FA_RACE_MAP,
                         pc);
}

void fa_race_group_waited(fa_emu_worker *worker, uint32_t group, fa_race_store which)
{
    if (worker->race == NULL)
        return;
    uint32_t *known = &fa_race_current(worker)->clock[store_slot(worker, which)];
    *known = *known > group + 1 ? *known : group + 1;
}

void fa_race_products_waited(fa_emu_worker *worker, uint32_t warp, uint32_t group)
{
    for (uint32_t lane = 0; lane < FA_EMU_WARP; lane++) {
        uint32_t *known = &worker->race->thread[warp * FA_EMU_WARP + lane].clock[threads_of(worker) + (warp & ~3u)];
        for (int i = 0; i < 4; i++)
            known[i] = known[i] > group + 1 ? known[i] : group + 1;
    }
}
