#include "emu/core/calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "emu/core/fibre.h"
#include "emu/core/where.h"

enum { DEPTH = 32, CALLS = 12, KNOWN = 8 };
static const char MARK = '\x1b';

/* back: the thread that asks; NULL: the worker's own stack */
typedef struct fa_emu_calls {
    void *pc[DEPTH];
    int count;
    fa_emu_fibre *back;
} fa_emu_calls;

void fa_emu_calls_answer(fa_emu_worker *worker)
{
    while (worker->asked != NULL) {
        fa_emu_calls *calls = worker->asked;
        worker->asked = NULL;
        calls->count = backtrace(calls->pc, DEPTH);
        fa_emu_switch(worker, calls->back, false);
    }
}

static const void *base_of(const void *code)
{
    Dl_info info;
    return dladdr(code, &info) != 0 ? info.dli_fbase : NULL;
}

size_t fa_emu_calls_mark(fa_emu_worker *worker, const fa_emu_fibre *fibre, char *text, size_t size)
{
    fa_emu_calls calls = {.back = worker->current};
    const void *base = base_of((const void *)(uintptr_t)worker->launch->image->call);
    size_t used = 0;
    if (fibre == worker->current) {
        calls.count = backtrace(calls.pc, DEPTH);
    } else if (fibre->op != NULL) {
        worker->asked = &calls;
        fa_emu_switch(worker, &worker->fibres[fibre - worker->fibres], false);
    }
    for (int i = 0, kept = 0; i < calls.count && kept < CALLS && used + 24 < size; i++)
        if (base_of(calls.pc[i]) == base && ++kept > 0) /* a return address lies behind the call */
            used += (size_t)snprintf(text + used, size - used, "%c%zx", kept > 1 ? ',' : MARK,
                                     (size_t)((const char *)calls.pc[i] - (const char *)base) - 1);
    return used > 0 ? used + (size_t)snprintf(text + used, size - used, "%c", MARK) : 0;
}

/* addr2line's output for addresses with commas between; NULL: there is none. */
static char *read_frames(const fa_emu_image *image, char *addresses)
{
    Dl_info info;
    char *output = NULL, *rest = NULL;
    const char *command[CALLS + 5] = {"addr2line", "-i", "-e"};
    int count = 4;
    if (dladdr((const void *)(uintptr_t)image->call, &info) == 0)
        return NULL;
    command[3] = info.dli_fname;
    for (char *word = strtok_r(addresses, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        command[count++] = word;
    if (fa_run(command, &output) == 0)
        return output;
    free(output);
    return NULL;
}

/* The kernel's lines among the frames, without the one that the text ends with. */
static void put_calls(FILE *out, const char *before, size_t length, const char *frames)
{
    char previous[FA_EMU_FRAME] = "", frame[FA_EMU_FRAME];
    const bool first = length >= 4 && memcmp(before + length - 4, " at ", 4) == 0;
    int count = 0;
    for (const char *rest = frames; rest != NULL;) {
        rest = fa_emu_frame_read(rest, frame);
        const char *name = fa_emu_frame_name(frame);
        const size_t size = strlen(name);
        const bool repeated = length >= size && memcmp(before + length - size, name, size) == 0;
        if (!fa_emu_frame_in_kernel(frame) || fa_emu_frame_is_instruction(frame) || repeated ||
            strcmp(frame, previous) == 0)
            continue;
        memcpy(previous, frame, sizeof frame);
        fprintf(out, "%s%s", count == 0 && first ? "" : count == first ? " (called at " : ", ", name);
        count++;
    }
    fputs(count > first ? ")" : count == 0 && first ? "?" : "", out);
}

void fa_emu_calls_name(const fa_emu_image *image, char *text, size_t size)
{
    struct {
        char *mark, *frames;
    } known[KNOWN] = {{NULL, NULL}}; /* most threads wait at a few places */
    char *from = fa_format("%s", text), *rest = from, *mark, *named = NULL;
    FILE *out = fa_open_text(&named, NULL);
    while ((mark = strchr(rest, MARK)) != NULL) {
        fwrite(rest, 1, (size_t)(mark - rest), out);
        char *end = mark + 1 + strcspn(mark + 1, "\x1b");
        const char *before = rest;
        rest = *end != '\0' ? end + 1 : end; /* the text may be truncated here */
        *end = '\0';
        int at = 0;
        while (at < KNOWN - 1 && known[at].mark != NULL && strcmp(known[at].mark, mark + 1) != 0)
            at++;
        if (known[at].mark == NULL || strcmp(known[at].mark, mark + 1) != 0) {
            free(known[at].mark);
            free(known[at].frames);
            known[at].mark = fa_format("%s", mark + 1);
            known[at].frames = read_frames(image, mark + 1);
        }
        put_calls(out, before, (size_t)(mark - before), known[at].frames);
    }
    fputs(rest, out);
    fclose(out);
    for (int i = 0; i < KNOWN; i++) {
        free(known[i].mark);
        free(known[i].frames);
    }
    snprintf(text, size, "%s", named);
    free(named);
    free(from);
}
