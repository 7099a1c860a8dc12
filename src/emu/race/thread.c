#include "emu/race/thread.h"

#include <stdlib.h>
#include <string.h>

uint64_t fa_race_shadow_address(const fa_emu_worker *worker, uint64_t address)
{
    const fa_emu_build_info *build = worker->launch->image->build;
    const uint64_t begin = (uint64_t)(uintptr_t)build->static_smem_begin;
    const size_t size = fa_emu_static_bytes(build);
    if (address - begin < size)
        return address | (uint64_t)(worker->seat + 1) << FA_RACE_SEAT_SHIFT;
    for (uint32_t rank = 0; size > 0 && rank < worker->cluster->count; rank++) {
        const fa_emu_worker *peer = worker->cluster->block[rank];
        const uint64_t offset = address - (uint64_t)(uintptr_t)peer->static_copy;
        if (peer != worker && offset < size)
            return (begin + offset) | (uint64_t)(peer->seat + 1) << FA_RACE_SEAT_SHIFT;
    }
    return address;
}

void fa_race_forget(fa_race_known **known)
{
    fa_race_known_drop(*known);
    *known = NULL;
}

void fa_race_learn(const fa_emu_worker *worker, fa_race_thread *thread, fa_race_known *known)
{
    const fa_race_epochs *own = fa_race_known_block(known, worker->block_number);
    if (own != NULL)
        fa_race_epochs_join(thread->clock, own->of, fa_race_of(worker)->width);
    if (known != NULL && known->count > (own != NULL))
        fa_race_known_add(&thread->others, known, fa_race_of(worker)->width);
}

void fa_race_learn_observed(const fa_emu_worker *worker, fa_race_thread *thread, int scope)
{
    fa_race_learn(worker, thread, thread->observed[scope]);
    fa_race_forget(&thread->observed[scope]);
}

fa_race_known *fa_race_snapshot(const fa_emu_worker *worker, fa_race_thread *thread)
{
    const uint32_t threads = fa_race_of(worker)->width;
    fa_race_known *known = fa_race_known_of_block(worker->block_number, thread->clock, threads);
    fa_race_known_add(&known, thread->others, threads);
    thread->clock[fa_race_index(worker)]++;
    return known;
}

fa_race_access fa_race_access_now(const fa_emu_worker *worker, int kind, const void *pc)
{
    const uint32_t index = fa_race_index(worker);
    const fa_race_thread *thread = fa_race_current(worker);
    return (fa_race_access){.epoch = thread->clock[index],
                            .block = worker->block_number,
                            .place = fa_race_place_of(fa_race_of(worker), pc),
                            .stack = thread->stack,
                            .thread = (uint16_t)index,
                            .bytes = 0xff,
                            .kind = (uint8_t)kind};
}

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
    fences->at = fa_grow(fences->at, fences->count, &fences->capacity, 8, sizeof *fences->at);
    fences->at[fences->count++] = (*epoch)++;
}

void fa_race_fences_forget(fa_race_thread *thread)
{
    for (int kind = 0; kind < FA_RACE_FENCE_KINDS; kind++)
        free(thread->fences[kind].at);
    memset(thread->fences, 0, sizeof thread->fences);
}
