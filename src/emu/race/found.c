#include "emu/race/found.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/core/report.h"
#include "emu/core/where.h"

/* address: in the shadow */
static void name_shared(fa_race *race, const fa_emu_worker *worker, uint64_t address)
{
    const char *begin = race->launch->image->build->static_smem_begin;
    for (uint32_t rank = 0; rank < worker->cluster->count && race->memory == NULL; rank++) {
        const fa_emu_worker *block = worker->cluster->block[rank];
        race->offset = address - (uint64_t)(uintptr_t)block->smem;
        if (race->offset < race->launch->grid->smem_bytes)
            race->memory = block == worker ? "dynamic shared memory" : "dynamic shared memory of another block";
    }
    if (race->memory == NULL && address >> FA_RACE_SEAT_SHIFT != 0) {
        const bool own = address >> FA_RACE_SEAT_SHIFT == worker->seat + 1;
        race->memory = own ? "static shared memory" : "static shared memory of another block";
        race->offset = (address & (((uint64_t)1 << FA_RACE_SEAT_SHIFT) - 1)) - (uint64_t)(uintptr_t)begin;
    }
}

static void name_memory(fa_race *race, const fa_emu_worker *worker, uint64_t address)
{
    const fa_params *p = race->launch->params;
    const struct {
        const char *name;
        const void *begin;
    } known[] = {{"q", p->q}, {"k", p->k}, {"v", p->v}, {"o", p->o}, {"lse", p->lse}, {"workspace", p->workspace}};
    char where[256];
    race->memory = NULL;
    name_shared(race, worker, address);
    const uint64_t in_workspace = address - (uint64_t)(uintptr_t)p->workspace;
    if (race->memory != NULL || (in_workspace >= (uint64_t)p->workspace_bytes &&
                                 !fa_emu_where(p, (const void *)(uintptr_t)address, where, sizeof where)))
        return; /* shared memory, a variable of the file */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const uint64_t offset = address - (uint64_t)(uintptr_t)known[i].begin;
        if (known[i].begin != NULL && (int64_t)offset >= 0 && (race->memory == NULL || offset < race->offset)) {
            race->memory = known[i].name;
            race->offset = offset;
        }
    }
}

void fa_race_found_at(fa_emu_worker *worker, const fa_race_access *now, uint64_t address, size_t size)
{
    fa_race *race = fa_race_of(worker);
    race->found = true;
    race->now = *now;
    race->address = address;
    race->size = (uint32_t)size;
    name_memory(race, worker, address);
    if (now->kind & FA_RACE_MAP) {
        race->memory = "a tensor map";
        race->offset = 0;
    }
    fa_emu_fail(FA_EMU_RACE, "", NULL, 0);
}

void fa_race_found(fa_emu_worker *worker, const char *class, const char *between, const fa_race_access *now,
                   const fa_race_access *before)
{
    fa_race *race = fa_race_of(worker);
    race->class = class;
    race->between = between;
    race->before = *before;
    fa_race_found_at(worker, now, 0, 0);
}

void fa_race_note(fa_emu_worker *worker, const fa_race_access *now, const char *format, ...)
{
    fa_race *race = fa_race_of(worker);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(race->note, sizeof race->note, format, arguments);
    va_end(arguments);
    race->found = true;
    race->class = FA_EMU_ABSENT_BLOCK;
    race->now = *now;
    race->size = 0;
    fa_emu_report(worker, FA_EMU_ABSENT_BLOCK, NULL, NULL, 0, "%s", race->note);
}
