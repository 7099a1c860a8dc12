#include "emu/core/window.h"

fa_emu_worker *fa_emu_window_block(const fa_emu_worker *worker, uint32_t rank)
{
    return rank < worker->cluster->count ? worker->cluster->block[rank] : NULL;
}

unsigned char *fa_emu_window_place(const fa_emu_worker *worker, uint32_t address, fa_emu_worker **owner)
{
    const uint32_t above = address >> FA_EMU_CLUSTER_SHIFT, mask = ((uint32_t)1 << FA_EMU_CLUSTER_SHIFT) - 1;
    *owner = fa_emu_window_block(worker, above == 0 ? worker->rank : above - 1);
    if (*owner == NULL)
        return NULL;
    return fa_emu_shared_place(address & mask, (*owner)->smem, worker->launch->image->build);
}

unsigned char *fa_emu_window_now(const fa_emu_worker *owner, unsigned char *place)
{
    const size_t offset = (size_t)((char *)place - owner->launch->image->build->static_smem_begin);
    return owner == fa_emu_self || offset >= fa_emu_static_bytes(owner->launch->image->build)
               ? place
               : owner->static_copy + offset;
}

fa_emu_worker *fa_emu_window_owner(const fa_emu_worker *worker, const void *p, unsigned char **place)
{
    const fa_emu_build_info *build = worker->launch->image->build;
    const uint32_t bytes = worker->launch->grid->smem_bytes;
    const uintptr_t at = (uintptr_t)p;
    *place = (unsigned char *)at;
    if (fa_emu_is_shared(p, worker->smem, bytes, build))
        return worker->cluster->block[worker->rank];
    for (uint32_t rank = 0; rank < worker->cluster->count; rank++) {
        fa_emu_worker *peer = worker->cluster->block[rank];
        if (at - (uintptr_t)peer->smem < bytes)
            return peer;
        const uintptr_t offset = at - (uintptr_t)peer->static_copy;
        if (peer == worker || offset >= fa_emu_static_bytes(peer->launch->image->build))
            continue;
        *place = (unsigned char *)build->static_smem_begin + offset;
        return peer;
    }
    return NULL;
}

void *fa_emu_window_map(const void *p, uint32_t rank)
{
    unsigned char *place;
    const fa_emu_worker *self = fa_emu_self, *from = fa_emu_window_owner(self, p, &place);
    const fa_emu_worker *to = fa_emu_window_block(self, rank);
    if (from == NULL || to == NULL)
        return NULL;
    const uintptr_t offset = (uintptr_t)place - (uintptr_t)from->smem;
    return offset < self->launch->grid->smem_bytes ? to->smem + offset : fa_emu_window_now(to, place);
}

int32_t fa_emu_window_rank(const void *p)
{
    unsigned char *place;
    const fa_emu_worker *owner = fa_emu_window_owner(fa_emu_self, p, &place);
    return owner != NULL ? (int32_t)owner->rank : -1;
}

uint32_t fa_emu_window_address(const void *p)
{
    unsigned char *place;
    const fa_emu_worker *self = fa_emu_self, *owner = fa_emu_window_owner(self, p, &place);
    if (owner == NULL)
        return 0;
    const uint32_t address = fa_emu_shared_address(place, owner->smem, self->launch->image->build);
    return self->cluster->count == 1 ? address : address | (owner->rank + 1) << FA_EMU_CLUSTER_SHIFT;
}
