#include "emu/race_found.h"

#include <string.h>

#include "emu/report.h"

static void name_memory(fa_race *race, const fa_emu_worker *worker, uint64_t address)
{
    const fa_params *p = race->launch->params;
    const struct {
        const char *name;
        const void *begin;
    } known[] = {{"q", p->q}, {"k", p->k}, {"v", p->v}, {"o", p->o}, {"workspace", p->workspace}};
    race->memory = NULL;
    race->offset = address - (uint64_t)(uintptr_t)worker->smem;
    if (race->offset < race->launch->grid->smem_bytes)
        race->memory = "dynamic shared memory";
    else if (fa_race_in_static_memory(worker, address)) {
        race->memory = "static shared memory";
        race->offset = address - (uint64_t)(uintptr_t)race->launch->image->build->static_smem_begin;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0] && strstr(race->memory ? race->memory : "", "shared") == NULL;
         i++) {
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
    fa_emu_fail("data race", "", NULL, 0);
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
