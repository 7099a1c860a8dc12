#include "emu/race/map.h"

#include <stdlib.h>

#include "base/status.h"

static bool knows(const fa_emu_worker *worker, const fa_race_thread *thread, uint32_t block, uint32_t of,
                  uint32_t epoch)
{
    return epoch <=
           (block == worker->block_number ? thread->clock[of] : fa_race_known_epoch(thread->others, block, of));
}

static fa_race_map_release_note *release_at(fa_race_maps *maps, uint32_t number)
{
    return &maps->releases[number % FA_RACE_MAP_RELEASES];
}

static uint32_t oldest(const fa_race_maps *maps)
{
    return maps->count < FA_RACE_MAP_RELEASES ? 0 : maps->count - FA_RACE_MAP_RELEASES;
}

void fa_race_map_release(fa_race_map_scope scope)
{
    fa_emu_worker *worker = fa_emu_self;
    if (worker->race == NULL)
        return;
    fa_race_maps *maps = &fa_race_of(worker)->maps;
    fa_race_thread *thread = fa_race_current(worker);
    const uint32_t index = fa_race_index(worker);
    if (maps->releases == NULL)
        maps->releases = fa_alloc(FA_RACE_MAP_RELEASES * sizeof *maps->releases);
    fa_race_map_release_note *note = release_at(maps, maps->count++);
    fa_race_known_add(&maps->forgotten, note->known, fa_race_of(worker)->width);
    fa_race_forget(&note->known);
    note->block = worker->block_number;
    note->thread = index;
    note->epoch = thread->clock[index];
    note->scope = scope;
    note->known = fa_race_snapshot(worker, thread);
}

static bool reaches(const fa_emu_worker *worker, const fa_race_map_release_note *release, fa_race_map_scope scope)
{
    const fa_race_map_scope narrow = release->scope < scope ? release->scope : scope;
    if (release->block == worker->block_number)
        return true;
    return narrow == FA_RACE_MAP_DEVICE ||
           (narrow == FA_RACE_MAP_CLUSTER && fa_race_peer(worker, release->block) != NULL);
}

void fa_race_map_acquire(const void *map, fa_race_map_scope scope)
{
    fa_emu_worker *worker = fa_emu_self;
    if (worker->race == NULL)
        return;
    fa_race_maps *maps = &fa_race_of(worker)->maps;
    fa_race_team *team = worker->race;
    fa_race_thread *thread = fa_race_current(worker);
    const uint32_t index = fa_race_index(worker);
    if (team->map_acquires == NULL)
        team->map_acquires = fa_alloc(FA_RACE_MAP_ACQUIRES * sizeof *team->map_acquires);
    fa_race_map_acquire_note *note = &team->map_acquires[team->map_acquire_count++ % FA_RACE_MAP_ACQUIRES];
    if (team->map_acquire_count > FA_RACE_MAP_ACQUIRES && note->until > team->map_acquired_until)
        team->map_acquired_until = note->until;
    *note = (fa_race_map_acquire_note){
        .address = (uint64_t)(uintptr_t)map, .thread = index, .epoch = thread->clock[index]++, .until = maps->count};
    for (uint32_t n = oldest(maps); n < maps->count; n++) {
        const fa_race_map_release_note *release = release_at(maps, n);
        if (reaches(worker, release, scope) && knows(worker, thread, release->block, release->thread, release->epoch))
            note->seen[n % FA_RACE_MAP_RELEASES / 64] |= (uint64_t)1 << n % 64;
    }
}

/* Whether some thread of the block has acquired the map after that release, and thread `knower` knows it. */
static bool is_acquired(const fa_emu_worker *worker, uint32_t knower, uint64_t address, uint32_t release)
{
    const fa_race_team *team = worker->race;
    if (release < team->map_acquired_until)
        return true;
    const uint32_t slot = release % FA_RACE_MAP_RELEASES, count = team->map_acquire_count;
    for (uint32_t back = 1; back <= count && back <= FA_RACE_MAP_ACQUIRES; back++) {
        const fa_race_map_acquire_note *note = &team->map_acquires[(count - back) % FA_RACE_MAP_ACQUIRES];
        if (note->address == address && release < note->until && (note->seen[slot / 64] >> slot % 64 & 1) != 0 &&
            note->epoch <= team->thread[knower].clock[note->thread])
            return true;
    }
    return false;
}

const char *fa_race_map_missing(const fa_emu_worker *worker, const fa_race_access *write, uint32_t knower,
                                uint64_t address)
{
    fa_race_maps *maps = &fa_race_of(worker)->maps;
    const fa_race_thread *user = &worker->race->thread[knower];
    bool released = false;
    if (fa_race_known_epoch(maps->forgotten, write->block, write->thread) >= write->epoch)
        return NULL;
    for (uint32_t n = maps->count; n-- > oldest(maps);) {
        const fa_race_map_release_note *release = release_at(maps, n);
        if (fa_race_known_epoch(release->known, write->block, write->thread) < write->epoch)
            continue;
        released |= knows(worker, user, release->block, release->thread, release->epoch);
        if (is_acquired(worker, knower, address, n))
            return NULL;
    }
    return released ? "no fence.proxy.tensormap::generic.acquire of the map, in a wide enough scope, after the released"
                    : "no fence.proxy.tensormap::generic.release after the";
}

void fa_race_map_forget_block(fa_race_team *team) { team->map_acquire_count = team->map_acquired_until = 0; }

void fa_race_map_forget(fa_race *race)
{
    for (uint32_t n = 0; race->maps.releases != NULL && n < FA_RACE_MAP_RELEASES; n++)
        fa_race_forget(&race->maps.releases[n].known);
    free(race->maps.releases);
    fa_race_forget(&race->maps.forgotten);
}
