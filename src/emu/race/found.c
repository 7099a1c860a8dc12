#include "emu/race/found.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emu/core/report.h"
#include "emu/core/where.h"

/* address: in the shadow */
static void name_shared(fa_race_finding *f, const fa_emu_worker *worker, uint64_t address)
{
    const fa_emu_launch *launch = worker->launch;
    const char *begin = launch->image->build->static_smem_begin;
    for (uint32_t rank = 0; rank < worker->cluster->count && f->memory == NULL; rank++) {
        const fa_emu_worker *block = worker->cluster->block[rank];
        f->offset = address - (uint64_t)(uintptr_t)block->smem;
        if (f->offset < launch->grid->smem_bytes)
            f->memory = block == worker ? "dynamic shared memory" : "dynamic shared memory of another block";
    }
    if (f->memory == NULL && address >> FA_RACE_SEAT_SHIFT != 0) {
        const bool own = address >> FA_RACE_SEAT_SHIFT == worker->seat + 1;
        f->memory = own ? "static shared memory" : "static shared memory of another block";
        f->offset = (address & (((uint64_t)1 << FA_RACE_SEAT_SHIFT) - 1)) - (uint64_t)(uintptr_t)begin;
    }
}

static void name_memory(fa_race_finding *f, const fa_emu_worker *worker, uint64_t address)
{
    const fa_params *p = worker->launch->params;
    const struct {
        const char *name;
        const void *begin;
    } known[] = {{"q", p->q}, {"k", p->k}, {"v", p->v}, {"o", p->o}, {"lse", p->lse}, {"workspace", p->workspace}};
    char where[256];
    f->memory = NULL;
    name_shared(f, worker, address);
    const uint64_t in_workspace = address - (uint64_t)(uintptr_t)p->workspace;
    if (f->memory != NULL || (in_workspace >= (uint64_t)p->workspace_bytes &&
                              !fa_emu_where(p, (const void *)(uintptr_t)address, where, sizeof where)))
        return; /* shared memory, a variable of the file */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const uint64_t offset = address - (uint64_t)(uintptr_t)known[i].begin;
        if (known[i].begin != NULL && (int64_t)offset >= 0 && (f->memory == NULL || offset < f->offset)) {
            f->memory = known[i].name;
            f->offset = offset;
        }
    }
}

static bool same_access(const fa_race_access *a, const fa_race_access *b)
{
    return a->place == b->place && a->stack == b->stack && a->kind == b->kind;
}

/* By the same instructions, in either order. */
static bool same(const fa_race_finding *a, const fa_race_finding *b)
{
    return a->class == b->class && ((same_access(&a->now, &b->now) && same_access(&a->before, &b->before)) ||
                                    (same_access(&a->now, &b->before) && same_access(&a->before, &b->now)));
}

/* Where it is in the list, or is to be; FA_RACE_FOUND: there is no room. One that differs takes that of one that does
 * not. */
static uint32_t place_of(const fa_race *race, const fa_race_finding *what)
{
    for (uint32_t i = 0; i < race->found_count; i++)
        if (same(&race->found[i], what))
            return i;
    if (race->found_count < FA_RACE_FOUND || !what->differs)
        return race->found_count;
    uint32_t last = FA_RACE_FOUND;
    while (last > 0 && race->found[last - 1].differs)
        last--;
    return last > 0 ? last - 1 : FA_RACE_FOUND;
}

/* The store's bytes now, before it is done. */
static void watch_store(fa_race *race, uint32_t finding)
{
    if (race->store.findings == 0) {
        race->store.at = race->storing;
        race->store.size = race->storing_size;
        memcpy(race->store.bytes, race->storing, race->storing_size);
    }
    race->store.findings |= (uint64_t)1 << finding;
}

void fa_race_store_settle(fa_race *race)
{
    uint64_t findings = race->store.findings;
    race->store.findings = 0;
    if (findings == 0 || memcmp(race->store.at, race->store.bytes, race->store.size) == 0)
        return;
    race->differs = true;
    for (; findings != 0; findings &= findings - 1)
        race->found[__builtin_ctzll(findings)].differs = true;
}

void fa_race_found_at(fa_emu_worker *worker, const fa_race_finding *what, uint64_t address)
{
    fa_race *race = fa_race_of(worker);
    const uint32_t at = place_of(race, what);
    race->differs |= what->differs;
    race->found_more |= at == FA_RACE_FOUND;
    if (at == FA_RACE_FOUND)
        return;
    fa_race_finding *f = &race->found[at];
    if (at == race->found_count || !same(f, what)) {
        race->found_more |= at < race->found_count;
        race->found_count += at == race->found_count;
        race->store.findings &= ~((uint64_t)1 << at);
        *f = *what;
        name_memory(f, worker, address);
        if (f->now.kind & FA_RACE_MAP) {
            f->memory = "a tensor map";
            f->offset = 0;
        }
    }
    f->differs |= what->differs;
    if (!what->differs)
        watch_store(race, at);
}

void fa_race_found(fa_emu_worker *worker, const char *class, const char *between, const fa_race_access *now,
                   const fa_race_access *before)
{
    const fa_race_finding what = {.class = class, .between = between, .now = *now, .before = *before, .differs = true};
    fa_race_found_at(worker, &what, 0);
}

void fa_race_note(fa_emu_worker *worker, const fa_race_access *now, const char *format, ...)
{
    fa_race_finding what = {.class = FA_EMU_ABSENT_BLOCK, .now = *now, .differs = true};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what.note, sizeof what.note, format, arguments);
    va_end(arguments);
    fa_race_found_at(worker, &what, 0);
    fa_emu_report(worker, FA_EMU_RACE, NULL, NULL, 0, "%s", what.note);
}
