#include "emu/race/cluster.h"

#include "base/status.h"
#include "emu/race/detector.h"
#include "emu/race/found.h"

void fa_race_cluster_arrive(fa_emu_worker *worker, bool relaxed)
{
    if (worker->race == NULL)
        return;
    const uint32_t width = fa_race_of(worker)->width;
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_meeting *reached = &worker->race->reached, *released = &worker->race->released;
    fa_race_epochs_join(reached->clock, thread->clock, width);
    fa_race_known_add(&reached->others, thread->others, width);
    fa_race_known_add(&reached->others, thread->reached, width);
    for (int scope = 0; scope < FA_RACE_OBSERVED && !relaxed; scope++)
        fa_race_learn_observed(worker, thread, scope);
    if (relaxed)
        fa_race_known_add(&released->others, thread->released[FA_RACE_DEVICE], width);
    else
        fa_race_meet(worker, released, thread);
    thread->clock[fa_race_index(worker)]++;
    thread->spins = 0;
}

static void gather(fa_race_known **all, fa_emu_worker *worker, fa_race_meeting *meeting)
{
    const uint32_t width = fa_race_of(worker)->width;
    const fa_race_meeting *ended = &worker->race->ended; /* exited threads count as arrived */
    fa_race_epochs_join(meeting->clock, ended->clock, width);
    fa_race_known *own = fa_race_known_of_block(worker->block_number, meeting->clock, width);
    fa_race_known_add(all, own, width);
    fa_race_known_add(all, meeting->others, width);
    fa_race_known_add(all, ended->others, width);
    fa_race_known_drop(own);
    fa_race_meeting_reset(meeting, width);
}

void fa_race_cluster_complete(fa_emu_cluster *cluster)
{
    if (cluster->block[0]->race == NULL)
        return;
    fa_race_cluster_forget(cluster);
    for (uint32_t rank = 0; rank < cluster->count; rank++) {
        gather(&cluster->released, cluster->block[rank], &cluster->block[rank]->race->released);
        gather(&cluster->reached, cluster->block[rank], &cluster->block[rank]->race->reached);
    }
}

void fa_race_cluster_observed(fa_emu_worker *worker)
{
    if (worker->race == NULL)
        return;
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_learn(worker, thread, worker->cluster->released);
    fa_race_known_add(&thread->reached, worker->cluster->reached, fa_race_of(worker)->width);
    thread->spins = 0;
}

void fa_race_cluster_forget(fa_emu_cluster *cluster)
{
    fa_race_forget(&cluster->released);
    fa_race_forget(&cluster->reached);
}

bool fa_race_has_begun(const fa_emu_worker *worker, const fa_emu_worker *block)
{
    const fa_race_thread *thread = fa_race_current(worker);
    return block == worker || fa_race_known_block(thread->others, block->block_number) != NULL ||
           fa_race_known_block(thread->reached, block->block_number) != NULL;
}

uint32_t fa_race_reached(const fa_emu_worker *worker, uint32_t block, uint32_t thread)
{
    const fa_race_thread *self = fa_race_current(worker);
    const uint32_t known = block == worker->block_number ? self->clock[thread]
                                                         : fa_race_known_epoch(self->others, block, thread),
                   seen = fa_race_known_epoch(self->reached, block, thread);
    return known > seen ? known : seen;
}

static bool unknown(const void *context, const fa_race_access *access)
{
    const fa_emu_worker *worker = context;
    return access->block != worker->block_number && fa_race_peer(worker, access->block) != NULL &&
           access->epoch > fa_race_known_epoch(worker->race->ended.others, access->block, access->thread);
}

void fa_race_visit(const fa_emu_worker *worker, fa_emu_worker *block, const void *pc)
{
    const fa_race_access now = fa_race_access_now(worker, FA_RACE_ATOMIC | FA_RACE_WRITE, pc);
    fa_race_team *team = block->race;
    uint32_t at = 0;
    while (at < team->visit_count && (team->visits[at].block != now.block || team->visits[at].thread != now.thread))
        at++;
    team->visits = fa_grow(team->visits, at, &team->visit_capacity, 16, sizeof *team->visits);
    team->visits[at] = now;
    team->visit_count += at == team->visit_count;
}

/* An access by another block that no thread of this block knows of. */
static bool find_unknown(fa_emu_worker *worker, fa_race_access *access)
{
    const fa_emu_build_info *build = worker->launch->image->build;
    const struct {
        uint64_t at;
        size_t size;
    } parts[] = {{(uint64_t)(uintptr_t)worker->smem, worker->launch->grid->smem_bytes},
                 {(uint64_t)(uintptr_t)build->static_smem_begin, fa_emu_static_bytes(build)}};
    const fa_race_team *team = worker->race;
    for (int i = 0; i < 2; i++)
        if (fa_race_shadow_find(&fa_race_of(worker)->shadow, fa_race_shadow_address(worker, parts[i].at), parts[i].size,
                                unknown, worker, access))
            return true;
    for (uint32_t i = 0; i < team->visit_count; i++) {
        *access = team->visits[i];
        if (unknown(worker, access))
            return true;
    }
    return false;
}

void fa_race_block_ends(fa_emu_worker *worker)
{
    fa_race_access access;
    if (!find_unknown(worker, &access))
        return;
    fa_race_note(worker, &access,
                 "block (%u,%u,%u), which owns that shared memory, may have ended before: a cluster barrier comes "
                 "before its end",
                 worker->block.x, worker->block.y, worker->block.z);
    worker->stopped = true;
}
