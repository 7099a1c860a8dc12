#include "emu/race/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "emu/core/frame.h"
#include "emu/core/report.h"
#include "emu/race/thread.h"

enum { DEPTH = 16 };

typedef struct writer {
    char *text;
    size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int wrote = vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
    w->used = w->used + (size_t)wrote < w->size ? w->used + (size_t)wrote : w->size - 1;
}

/* The lines of the kernel's files that are among the frames, innermost first. The line of an instruction
 * (kernels/shared/prims.cuh) stands behind that of its caller. */
static void put_lines(writer *w, const char *frames)
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
            put(w, "\n    at %s%s", fa_emu_frame_name(frame), instruction);
            instruction[0] = '\0';
        }
    }
}

/* addr2line's output for a place and the calls that it is in; NULL: there is no addr2line. */
static char *read_frames(const fa_race *race, uint32_t place, uint32_t stack)
{
    uint32_t places[DEPTH] = {place};
    char words[DEPTH][16], *output = NULL;
    const char *command[DEPTH + 6] = {"addr2line", "-i", "-e", race->file};
    const size_t count = 1 + fa_race_stack_places(&race->stacks, stack, places + 1, DEPTH - 1);
    for (size_t i = 0; i < count; i++) {
        snprintf(words[i], sizeof words[i], "0x%" PRIx32, places[i]);
        command[4 + i] = words[i];
    }
    if (fa_run(command, &output) == 0)
        return output;
    free(output);
    return NULL;
}

static void put_frames(writer *w, const fa_race *race, const fa_race_access *access)
{
    char *frames = read_frames(race, access->place, access->stack);
    if (frames != NULL)
        put_lines(w, frames);
    else
        put(w, "\n    at byte 0x%" PRIx32 " of the object (addr2line of binutils names the line)", access->place);
    free(frames);
}

static void put_access(writer *w, const fa_race *race, const fa_race_access *access)
{
    const fa_emu_uint3 grid = race->launch->grid->grid;
    const uint32_t block = access->block;
    const bool actor = access->thread >= race->launch->threads;
    const char *what = access->kind & FA_RACE_ATOMIC
                           ? access->kind & FA_RACE_SCOPE_BLOCK ? "atomic in its block, " : "atomic "
                       : access->kind & FA_RACE_VOLATILE ? "volatile "
                                                         : "";
    if (actor) {
        put(w, "%s by a %s of block (%u,%u,%u)", access->kind & FA_RACE_WRITE ? "write" : "read",
            access->thread < race->launch->threads + FA_EMU_MAX_WARPS ? "product" : "bulk copy", block % grid.x,
            block / grid.x % grid.y, block / (grid.x * grid.y));
        put_frames(w, race, access);
        return;
    }
    put(w, "%s%s by block (%u,%u,%u), CUDA thread %u, warp.lane %u.%u", what,
        access->kind & FA_RACE_WRITE ? "write" : "read", block % grid.x, block / grid.x % grid.y,
        block / (grid.x * grid.y), access->thread, access->thread / FA_EMU_WARP, access->thread % FA_EMU_WARP);
    put_frames(w, race, access);
}

static void explain(const fa_race *race, char *text, size_t size)
{
    writer w = {.text = text, .size = size};
    if (race->class != NULL)
        put(&w, "%s%s%s:\n  ", race->class, race->size > 0 ? " of " : "",
            race->size == 0        ? ""
            : race->memory != NULL ? race->memory
                                   : "global memory");
    else if (race->memory != NULL)
        put(&w, "data race in %s, byte %" PRIu64 " (%u bytes):\n  ", race->memory, race->offset, race->size);
    else
        put(&w, "data race in global memory (%u bytes):\n  ", race->size);
    put_access(&w, race, &race->now);
    if (race->note[0] != '\0') {
        put(&w, "\n  %s", race->note);
        return;
    }
    put(&w, "\n  %s ", race->between != NULL ? race->between : "not ordered after:");
    put_access(&w, race, &race->before);
}

void fa_race_explain(const fa_race *race, fa_findings *found)
{
    fa_finding one = {.text = ""};
    snprintf(one.fault, sizeof one.fault, "%s", race->class != NULL ? race->class : FA_EMU_RACE);
    explain(race, one.text, sizeof one.text);
    fa_findings_add(found, &one);
}
