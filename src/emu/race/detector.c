#include "emu/race/detector.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/race/map.h"
#include "emu/race/thread.h"

fa_race *fa_race_begin(const fa_emu_launch *launch)
{
    fa_race *race = fa_alloc(sizeof *race);
    Dl_info info = {.dli_fbase = NULL};
    dladdr(*(void *const *)&launch->image->call, &info);
    race->launch = launch;
    race->width = launch->threads + (launch->image->hopper ? FA_RACE_ACTORS : 0);
    race->module = (uint64_t)(uintptr_t)info.dli_fbase;
    snprintf(race->file, sizeof race->file, "%s", info.dli_fname != NULL ? info.dli_fname : "");
    return race;
}

void fa_race_end(fa_race *race)
{
    if (race == NULL)
        return;
    for (size_t i = 0; i < race->place_capacity; i++) {
        for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
            fa_race_known_drop(race->places[i].known[scope]);
        free(race->places[i].readings);
    }
    free(race->places);
    fa_race_map_forget(race);
    fa_race_shadow_free(&race->shadow);
    fa_race_stacks_free(&race->stacks);
    free(race);
}

void fa_race_team_make(fa_emu_worker *worker)
{
    const size_t threads = worker->launch->threads, width = fa_race_of(worker)->width;
    fa_race_team *team = fa_alloc(sizeof *team);
    uint32_t *next = team->clocks = fa_alloc((threads + FA_EMU_BARRIERS + 4) * width * sizeof *next);
    for (size_t i = 0; i < threads; i++, next += width)
        team->thread[i].clock = next;
    for (int id = 0; id < FA_EMU_BARRIERS; id++, next += width)
        team->barrier[id].clock = next;
    team->warp.clock = next;
    team->ended.clock = next + width;
    team->released.clock = next + 2 * width;
    team->reached.clock = next + 3 * width;
    worker->race = team;
}

void fa_race_meeting_reset(fa_race_meeting *meeting, uint32_t width)
{
    memset(meeting->clock, 0, width * sizeof *meeting->clock);
    fa_race_forget(&meeting->others);
    fa_race_forget(&meeting->met);
    for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
        fa_race_forget(&meeting->released[scope]);
}

static void team_reset(fa_race_team *team, uint32_t threads, uint32_t width)
{
    for (uint32_t i = 0; i < threads; i++) {
        fa_race_thread *thread = &team->thread[i];
        uint32_t *clock = thread->clock;
        fa_race_forget(&thread->others);
        fa_race_forget(&thread->reached);
        for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
            fa_race_forget(&thread->released[scope]);
        for (int scope = 0; scope < FA_RACE_OBSERVED; scope++)
            fa_race_forget(&thread->observed[scope]);
        memset(clock, 0, width * sizeof *clock);
        clock[i] = 1;
        fa_race_fences_forget(thread);
        *thread = (fa_race_thread){.clock = clock};
    }
    for (int id = 0; id < FA_EMU_BARRIERS; id++)
        fa_race_meeting_reset(&team->barrier[id], width);
    fa_race_meeting_reset(&team->warp, width);
    fa_race_meeting_reset(&team->ended, width);
    fa_race_meeting_reset(&team->released, width);
    fa_race_meeting_reset(&team->reached, width);
    team->storing_threads = team->phases = team->visit_count = 0;
    fa_race_map_forget_block(team);
}

void fa_race_team_free(fa_emu_worker *worker)
{
    if (worker->race == NULL)
        return;
    team_reset(worker->race, worker->launch->threads, fa_race_of(worker)->width);
    free(worker->race->clocks);
    free(worker->race->visits);
    free(worker->race->map_acquires);
    free(worker->race);
    worker->race = NULL;
}

static void new_memory(fa_emu_worker *worker, const void *memory, size_t size)
{
    fa_race *race = fa_race_of(worker);
    const uint64_t address = fa_race_shadow_address(worker, (uint64_t)(uintptr_t)memory);
    fa_race_shadow_clear(&race->shadow, address, size);
    for (size_t i = 0; i < race->place_capacity; i++) {
        fa_race_place *place = &race->places[i];
        if (place->address - address >= size)
            continue;
        place->reading_count = 0;
        for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
            fa_race_forget(&place->known[scope]);
    }
}

void fa_race_block_begins(fa_emu_worker *worker)
{
    const fa_emu_build_info *build = worker->launch->image->build;
    team_reset(worker->race, worker->launch->threads, fa_race_of(worker)->width);
    new_memory(worker, worker->smem, worker->launch->grid->smem_bytes);
    new_memory(worker, build->static_smem_begin, fa_emu_static_bytes(build));
}

/* A fence of one thread before a barrier also covers threads that release after it. */
void fa_race_meet(const fa_emu_worker *worker, fa_race_meeting *meeting, const fa_race_thread *thread)
{
    const uint32_t threads = fa_race_of(worker)->width;
    fa_race_epochs_join(meeting->clock, thread->clock, threads);
    fa_race_known_add(&meeting->others, thread->others, threads);
    fa_race_known_add(&meeting->met, thread->observed[FA_RACE_DEVICE], threads);
    fa_race_known_add(&meeting->met, thread->observed[FA_RACE_MET], threads);
    for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
        fa_race_known_add(&meeting->released[scope], thread->released[scope], threads);
}

void fa_race_part(const fa_emu_worker *worker, const fa_race_meeting *meeting, fa_race_thread *thread)
{
    const uint32_t threads = fa_race_of(worker)->width;
    fa_race_epochs_join(thread->clock, meeting->clock, threads);
    fa_race_learn(worker, thread, meeting->others);
    fa_race_known_add(&thread->observed[FA_RACE_MET], meeting->met, threads);
    for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
        fa_race_known_add(&thread->released[scope], meeting->released[scope], threads);
}

void fa_race_barrier_arrive(fa_emu_worker *worker, int32_t id)
{
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_learn_observed(worker, thread, FA_RACE_BLOCK);
    fa_race_meet(worker, &worker->race->barrier[id], thread);
    thread->clock[fa_race_index(worker)]++;
    thread->spins = 0;
}

void fa_race_barrier_release(fa_emu_worker *worker, int32_t id)
{
    fa_race_meeting *meeting = &worker->race->barrier[id];
    if (!worker->barrier[id].threads) { /* exited threads count as arrived */
        fa_race_epochs_join(meeting->clock, worker->race->ended.clock, fa_race_of(worker)->width);
        fa_race_known_add(&meeting->others, worker->race->ended.others, fa_race_of(worker)->width);
    }
    for (uint32_t i = 0; i < worker->threads; i++) {
        const fa_emu_op *op = worker->fibres[i].op;
        if (op && op->kind == FA_EMU_BARRIER && op->arg == id)
            fa_race_part(worker, meeting, &worker->race->thread[i]);
    }
    fa_race_meeting_reset(meeting, fa_race_of(worker)->width);
}

void fa_race_warp_syncs(fa_emu_worker *worker, uint32_t warp, uint32_t lanes)
{
    fa_race_meeting *meeting = &worker->race->warp;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        fa_race_thread *thread = &worker->race->thread[warp * FA_EMU_WARP + (uint32_t)__builtin_ctz(rest)];
        fa_race_learn_observed(worker, thread, FA_RACE_BLOCK);
        fa_race_meet(worker, meeting, thread);
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t i = warp * FA_EMU_WARP + (uint32_t)__builtin_ctz(rest);
        fa_race_part(worker, meeting, &worker->race->thread[i]);
        worker->race->thread[i].clock[i]++;
        worker->race->thread[i].spins = 0;
    }
    fa_race_meeting_reset(meeting, fa_race_of(worker)->width);
}

void fa_race_thread_ends(fa_emu_worker *worker) { fa_race_meet(worker, &worker->race->ended, fa_race_current(worker)); }
