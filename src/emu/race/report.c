#include "emu/race/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "emu/core/frame.h"
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

enum { FRAME = 512 };

/* The first of addr2line's lines, FILE:LINE. Returns the following lines; NULL: none. */
static const char *read_frame(const char *lines, char frame[FRAME])
{
    const size_t length = strcspn(lines, "\n");
    snprintf(frame, FRAME, "%.*s", (int)length, lines);
    char *more = strstr(frame, " (discriminator ");
    if (more != NULL)
        *more = '\0';
    return lines[length] == '\n' && lines[length + 1] != '\0' ? lines + length + 1 : NULL;
}

static const char *name_of(const char *frame)
{
    const char *slash = strrchr(frame, '/');
    return slash != NULL ? slash + 1 : frame;
}

/* The lines of the kernel's files that are among the frames, innermost first. The line of an instruction
 * (kernels/shared/prims.cuh) stands behind that of its caller. */
static void put_lines(writer *w, const char *frames)
{
    char previous[FRAME] = "", instruction[FRAME] = "", frame[FRAME];
    for (const char *rest = frames; rest != NULL;) {
        rest = read_frame(rest, frame);
        if (!fa_emu_frame_in_kernel(frame) || strcmp(frame, previous) == 0)
            continue;
        memcpy(previous, frame, sizeof frame);
        if (fa_emu_frame_is_instruction(frame)) {
            snprintf(instruction, sizeof instruction, " (%.500s)", name_of(frame));
        } else {
            put(w, "\n    at %s%s", name_of(frame), instruction);
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

static const char MARK = '\x1b';

size_t fa_race_mark_calls(const fa_emu_worker *worker, const fa_emu_fibre *fibre, const char *file, int line,
                          char *text, size_t size)
{
    const fa_race_thread *thread = worker->race != NULL ? &worker->race->thread[fibre - worker->fibres] : NULL;
    if (thread == NULL || thread->asm_pc == NULL || size < 32 || thread->asm_at->line != line ||
        strcmp(thread->asm_at->file, file) != 0) /* asm_at belongs to an earlier statement */
        return 0;
    const uint32_t place = fa_race_place_of(worker->launch->race, thread->asm_pc);
    return (size_t)snprintf(text, size, "%c%" PRIx32 ",%" PRIx32 "%c", MARK, place, thread->stack, MARK);
}

/* " (called at FILE:LINE, ...)" without repeating the text's last line. */
static void put_calls(writer *w, const char *frames)
{
    char previous[FRAME] = "", frame[FRAME];
    const char *before = " (called at ";
    for (const char *rest = frames; rest != NULL;) {
        rest = read_frame(rest, frame);
        const char *name = name_of(frame);
        const size_t length = strlen(name);
        const bool repeated = w->used >= length && memcmp(w->text + w->used - length, name, length) == 0;
        if (!fa_emu_frame_in_kernel(frame) || fa_emu_frame_is_instruction(frame) || repeated ||
            strcmp(frame, previous) == 0)
            continue;
        memcpy(previous, frame, sizeof frame);
        put(w, "%s%s", before, name);
        before = ", ";
    }
    if (previous[0] != '\0')
        put(w, ")");
}

void fa_race_name_calls(const fa_race *race, char *text, size_t size)
{
    char *from = fa_format("%s", text), *rest = from, *mark;
    writer w = {.text = text, .size = size};
    for (uint32_t place, stack; (mark = strchr(rest, MARK)) != NULL; rest = mark + strcspn(mark + 1, "\x1b") + 2) {
        put(&w, "%.*s", (int)(mark - rest), rest);
        char *frames =
            sscanf(mark + 1, "%" SCNx32 ",%" SCNx32, &place, &stack) == 2 ? read_frames(race, place, stack) : NULL;
        if (frames != NULL)
            put_calls(&w, frames);
        free(frames);
        if (strchr(mark + 1, MARK) == NULL) {
            rest = mark + strlen(mark); /* the text is truncated here */
            break;
        }
    }
    put(&w, "%s", rest);
    free(from);
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

void fa_race_explain(const fa_race *race, char *text, size_t size)
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
