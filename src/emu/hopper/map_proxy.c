#include "emu/hopper/map_proxy.h"

#include <string.h>

#include "emu/core/report.h"
#include "emu/core/tensor_map.h"
#include "emu/core/window.h"
#include "emu/ptx/memory.h"
#include "emu/race/map.h"
#include "emu/race/memory.h"
#include "ptx/hopper.h"

enum { MAP_BYTES = 128, LANE_BYTES = MAP_BYTES / FA_EMU_WARP };

static void check_aligned(const fa_emu_ptx_run *run, const unsigned char *map)
{
    if ((uintptr_t)map % MAP_BYTES != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the tensor map's address is not a multiple of 128 bytes");
}

/* Parameters and a thread's own variables lie on its stack. */
static bool is_on_stack(const unsigned char *place)
{
    const fa_emu_fibre *fibre = fa_emu_self->current;
    return (uintptr_t)place - (uintptr_t)fibre->stack < fibre->stack_size;
}

static unsigned char *global_map(const fa_emu_ptx_run *run)
{
    unsigned char *map = fa_emu_ptx_generic_place(run, 0);
    check_aligned(run, map);
    if ((uintptr_t)map < 4096 || is_on_stack(map) || fa_emu_window_rank(map) >= 0)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "the tensor map does not lie in global memory");
    return map;
}

static void check_size(const fa_emu_ptx_run *run, int arg)
{
    const uint32_t size = (uint32_t)fa_ptx_in(run->instr, arg, run->r);
    if (size != MAP_BYTES)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "the size is %u, not 128", size);
}

static fa_race_map_scope scope_of(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_CTA)       ? FA_RACE_MAP_BLOCK
           : fa_ptx_has(i, FA_PTX_W_CLUSTER) ? FA_RACE_MAP_CLUSTER
                                             : FA_RACE_MAP_DEVICE;
}

/* [map], {dimension,} value */
static void replace(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const uint64_t which = i->args > 2 ? (uint32_t)fa_ptx_in(i, 1, run->r) : 0;
    const uint64_t value = fa_ptx_in(i, i->args - 1, run->r) & fa_ptx_mask(fa_ptx_type_of(i, 0)->bits);
    if (!fa_ptx_has(i, FA_PTX_W_SHARED_CTA)) {
        unsigned char *place = fa_emu_ptx_generic_place(run, 0);
        const bool own = fa_emu_window_rank(place) == (int32_t)fa_emu_self->rank;
        if (fa_ptx_has(i, FA_PTX_W_GLOBAL) || !own)
            global_map(run);
    }
    unsigned char *map = fa_emu_ptx_access(run, 0, MAP_BYTES, MAP_BYTES, true);
    const char *wrong = fa_emu_map_replace(map, (fa_emu_map_field)fa_ptx_map_field(i), which, value);
    if (wrong != NULL)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "%s", wrong);
}

/* [to], [from], 128. Every lane copies its part; the first releases them all, and all of them know it. */
static void copy(const fa_emu_ptx_run *run)
{
    const uint32_t at = fa_emu_self->current->thread.lane * LANE_BYTES;
    fa_emu_ptx_meet(run, FA_EMU_CONVERGE, run->instr->name);
    check_size(run, 2);
    unsigned char *to = global_map(run), *from = fa_emu_ptx_window_place(run, 1);
    check_aligned(run, from);
    fa_emu_ptx_touch(run, from + at, LANE_BYTES, false);
    fa_emu_ptx_touch(run, to + at, LANE_BYTES, true);
    memcpy(to + at, from + at, LANE_BYTES);
    fa_emu_ptx_meet(run, FA_EMU_SYNCWARP, run->instr->name);
    if (fa_emu_self->current->thread.lane == 0)
        fa_race_map_release(scope_of(run->instr));
    fa_emu_ptx_meet(run, FA_EMU_SYNCWARP, run->instr->name);
    fa_race_fence(scope_of(run->instr) == FA_RACE_MAP_BLOCK);
}

void fa_emu_ptx_tensormap(const fa_emu_ptx_run *run)
{
    if (fa_ptx_has(run->instr, FA_PTX_W_CP_FENCEPROXY))
        copy(run);
    else
        replace(run);
}

/* A release to copies is a release to threads, too. */
void fa_emu_ptx_map_fence(const fa_emu_ptx_run *run)
{
    const fa_race_map_scope scope = scope_of(run->instr);
    if (!fa_ptx_has(run->instr, FA_PTX_W_ACQUIRE)) {
        fa_race_map_release(scope);
        fa_race_fence(scope == FA_RACE_MAP_BLOCK);
        return;
    }
    check_size(run, 1);
    fa_race_fence(scope == FA_RACE_MAP_BLOCK);
    fa_race_map_acquire(global_map(run), scope);
}
