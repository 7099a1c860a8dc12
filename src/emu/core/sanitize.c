/* fa_bench is built without a sanitizer, so their interface is looked up in the running process. */
#include "emu/core/sanitize.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emu/core/preload.h"
#include "emu/core/where.h"

fa_emu_sanitizer fa_emu_san;

/* Called when a sanitizer ends the process: adds the CUDA thread and the tensor to its report. */
static void on_death(void)
{
    const fa_emu_worker *worker = fa_emu_self;
    const char *log = getenv(FA_EMU_SANITIZER_LOG);
    char path[600], text[600];
    if (!worker || !worker->current || !log)
        return;
    const fa_emu_thread *t = &worker->current->thread;
    int length = snprintf(text, sizeof text, "EMULATOR: block (%u,%u,%u), thread (%u,%u,%u), warp.lane %u.%u\n",
                          t->block.x, t->block.y, t->block.z, t->thread.x, t->thread.y, t->thread.z, t->warp, t->lane);
    const void *address = fa_emu_san.report_address ? fa_emu_san.report_address() : NULL;
    char where[256];
    if (address && fa_emu_where(worker->launch->params, address, where, sizeof where))
        length += snprintf(text + length, sizeof text - (size_t)length, "EMULATOR: %s\n", where);
    snprintf(path, sizeof path, "%s.%d", log, (int)getpid());
    const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0 && write(file, text, (size_t)length) == length)
        close(file);
}

void fa_emu_sanitizer_find(const fa_emu_build_info *build)
{
    fa_emu_san = (fa_emu_sanitizer){0};
#define FIND(field, symbol) *(void **)&fa_emu_san.field = dlsym(RTLD_DEFAULT, symbol)
    if (build->asan) {
        FIND(start_switch, "__sanitizer_start_switch_fiber");
        FIND(finish_switch, "__sanitizer_finish_switch_fiber");
        FIND(poison, "__asan_poison_memory_region");
        FIND(unpoison, "__asan_unpoison_memory_region");
        FIND(report_address, "__asan_get_report_address");
    }
    FIND(on_death, "__sanitizer_set_death_callback");
#undef FIND
    if (fa_emu_san.on_death)
        fa_emu_san.on_death(on_death);
}
