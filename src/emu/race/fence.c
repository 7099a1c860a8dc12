#include "emu/race/fence.h"

#include <stdlib.h>
#include <string.h>

bool fa_race_fence_after(const fa_race_fences *fences, uint32_t epoch, uint32_t known_epoch)
{
    uint32_t low = 0, high = fences->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (fences->at[middle] < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    return low < fences->count && fences->at[low] <= known_epoch;
}

static bool is_shared(const fa_emu_worker *worker, uint64_t address)
{
    bool shared = address >> FA_RACE_SEAT_SHIFT != 0;
    for (uint32_t rank = 0; rank < worker->cluster->count && !shared; rank++)
        shared = address - (uint64_t)(uintptr_t)worker->cluster->block[rank]->smem < worker->launch->grid->smem_bytes;
    return shared;
}

bool fa_race_fence_between(const fa_emu_worker *worker, const fa_race_access *access, uint32_t knower, uint64_t address)
{
    const fa_emu_worker *block = fa_race_peer(worker, access->block);
    const fa_race_fences *fences = block->race->thread[access->thread].fences;
    const fa_race_thread *self = &worker->race->thread[knower];
    const uint32_t known = block == worker ? self->clock[access->thread]
                                           : fa_race_known_epoch(self->others, access->block, access->thread);
    return fa_race_fence_after(&fences[is_shared(worker, address) ? FA_RACE_PROXY_SHARED : FA_RACE_PROXY_GLOBAL],
                               access->epoch, known);
}

void fa_race_note_fence(int kind)
{
    fa_emu_worker *worker = fa_emu_self;
    if (worker->race == NULL)
        return;
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_fences *fences = &thread->fences[kind];
    uint32_t *epoch = &thread->clock[fa_race_index(worker)];
    if (fences->count == fences->capacity) {
        fences->capacity = fences->capacity ? 2 * fences->capacity : 8;
        fences->at = realloc(fences->at, fences->capacity * sizeof *fences->at);
        FA_ASSERT(fences->at != NULL);
    }
    fences->at[fences->count++] = (*epoch)++;
}

void fa_race_fences_forget(fa_race_thread *thread)
{
    for (int kind = 0; kind < FA_RACE_FENCE_KINDS; kind++)
        free(thread->fences[kind].at);
    memset(thread->fences, 0, sizeof thread->fences);
}
