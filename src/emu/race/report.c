#include "emu/race/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "base/text.h"
#include "emu/core/frame.h"
#include "emu/core/report.h"
#include "emu/race/thread.h"

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
