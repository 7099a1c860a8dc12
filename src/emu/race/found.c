#include "emu/race/found.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
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

enum { DEPTH = 16 };

/* The lines of the kernel's files that are among the frames, innermost first; `at` is the first. The line of an
 * instruction (kernels/shared/prims.cuh) stands behind that of its caller. */
static void put_lines(fa_writer *w, const char *frames, char at[FA_FINDING_AT])
{
    char previous[FA_EMU_FRAME] = "", instruction[FA_EMU_FRAME] = "", frame[FA_EMU_FRAME];
    for (const char *rest = frames; rest != NULL;) {
        rest = fa_emu_frame_read(rest, frame);
        if (!fa_emu_frame_in_kernel(frame) || strcmp(frame, previous) == 0)
            continue;
        memcpy(previous, frame, sizeof frame);
        if (fa_emu_frame_is_instruction(frame)) {
            snprintf(instruction, sizeof instruction, " (%.500s)", fa_emu_frame_name(frame));
        } else {
            if (at[0] == '\0')
                snprintf(at, FA_FINDING_AT, "%.*s", FA_FINDING_AT - 1, fa_emu_frame_name(frame));
            fa_put(w, "\n    at %s%s", fa_emu_frame_name(frame), instruction);
            instruction[0] = '\0';
        }
    }
}

/* The findings' accesses, two each, with the places of the calls that they are in, and addr2line's lines of them. */
typedef struct traces {
    size_t count[2 * FA_RACE_FOUND];       /* places */
    const char *frames[2 * FA_RACE_FOUND]; /* NULL: there is no addr2line */
    char *output;
} traces;

/* One addr2line for all: it reads the object's line table each time. An address goes before its lines (-a). */
static void read_traces(const fa_race *race, traces *t)
{
    const size_t most = 2 * FA_RACE_FOUND * DEPTH;
    const char **command = fa_alloc((most + 6) * sizeof *command);
    char(*words)[16] = fa_alloc(most * sizeof *words);
    size_t used = 0;
    command[0] = "addr2line";
    command[1] = "-a";
    command[2] = "-i";
    command[3] = "-e";
    command[4] = race->file;
    for (size_t k = 0; k < 2 * race->found_count; k++) {
        const fa_race_finding *f = &race->found[k / 2];
        const fa_race_access *access = k % 2 == 0 ? &f->now : &f->before;
        uint32_t places[DEPTH] = {access->place};
        t->count[k] = 1 + fa_race_stack_places(&race->stacks, access->stack, places + 1, DEPTH - 1);
        for (size_t i = 0; i < t->count[k]; i++, used++) {
            snprintf(words[used], sizeof words[used], "0x%" PRIx32, places[i]);
            command[5 + used] = words[used];
        }
    }
    const bool ran = fa_run(command, &t->output) == 0;
    char *at = ran ? t->output : NULL;
    for (size_t k = 0; k < 2 * race->found_count && at != NULL; k++) {
        t->frames[k] = at;
        for (size_t i = 0; i < t->count[k] && at != NULL; i++)
            at = (at = strstr(at, "\n0x")) != NULL ? at + 1 : NULL;
        if (at != NULL)
            at[-1] = '\0';
    }
    free(words);
    free(command);
}

static void put_frames(fa_writer *w, const fa_race_access *access, const char *frames, char at[FA_FINDING_AT])
{
    if (frames != NULL) {
        put_lines(w, frames, at);
        return;
    }
    snprintf(at, FA_FINDING_AT, "byte 0x%" PRIx32, access->place);
    fa_put(w, "\n    at byte 0x%" PRIx32 " of the object (addr2line of binutils names the line)", access->place);
}

static void put_access(fa_writer *w, const fa_race *race, const fa_race_access *access, const char *frames,
                       char at[FA_FINDING_AT])
{
    const fa_emu_uint3 grid = race->launch->grid->grid;
    const uint32_t block = access->block;
    const bool actor = access->thread >= race->launch->threads;
    const char *what = access->kind & FA_RACE_ATOMIC
                           ? access->kind & FA_RACE_SCOPE_BLOCK ? "atomic in its block, " : "atomic "
                       : access->kind & FA_RACE_VOLATILE ? "volatile "
                                                         : "";
    if (actor) {
        fa_put(w, "%s by a %s of block (%u,%u,%u)", access->kind & FA_RACE_WRITE ? "write" : "read",
               access->thread < race->launch->threads + FA_EMU_MAX_WARPS ? "product" : "bulk copy", block % grid.x,
               block / grid.x % grid.y, block / (grid.x * grid.y));
        put_frames(w, access, frames, at);
        return;
    }
    fa_put(w, "%s%s by block (%u,%u,%u), CUDA thread %u, warp.lane %u.%u", what,
           access->kind & FA_RACE_WRITE ? "write" : "read", block % grid.x, block / grid.x % grid.y,
           block / (grid.x * grid.y), access->thread, access->thread / FA_EMU_WARP, access->thread % FA_EMU_WARP);
    put_frames(w, access, frames, at);
}

static fa_finding explain(const fa_race *race, const fa_race_finding *f, const char *const frames[2])
{
    fa_finding one = {.text = ""};
    fa_writer w = {.text = one.text, .size = sizeof one.text};
    const char *memory = f->memory != NULL ? f->memory : "global memory", *fault = f->class != NULL ? f->class
                                                                                   : f->differs     ? FA_EMU_RACE
                                                                                                    : FA_EQUAL_STORES;
    snprintf(one.fault, sizeof one.fault, "%s", fault);
    fa_put(&w, "%s", fault);
    if (f->size > 0) {
        snprintf(one.memory, sizeof one.memory, "%s", memory);
        fa_put(&w, "%s%s", f->class != NULL ? " of " : f->differs ? " in " : " to ", memory);
    }
    if (f->class == NULL && f->memory != NULL)
        fa_put(&w, ", byte %" PRIu64, f->offset);
    if (f->class == NULL)
        fa_put(&w, " (%u bytes)", f->size);
    fa_put(&w, ":\n  ");
    put_access(&w, race, &f->now, frames[0], one.at[0]);
    if (f->note[0] != '\0') {
        fa_put(&w, "\n  %s", f->note);
        return one;
    }
    fa_put(&w, "\n  %s ", f->between != NULL ? f->between : "not ordered after:");
    put_access(&w, race, &f->before, frames[1], one.at[1]);
    return one;
}

bool fa_race_explain(fa_race *race, fa_findings *found)
{
    traces t = {.output = NULL};
    bool wrong = false;
    for (uint64_t rest = race->store.findings; rest != 0; rest &= rest - 1) /* it may not have been done */
        race->found[__builtin_ctzll(rest)].differs = true;
    if (race->found_count > 0)
        read_traces(race, &t);
    for (uint32_t i = 0; i < race->found_count; i++) {
        const fa_finding one = explain(race, &race->found[i], &t.frames[2 * i]);
        fa_findings_add(found, &one);
        wrong |= race->found[i].differs;
    }
    found->more |= race->found_more;
    free(t.output);
    return wrong;
}
