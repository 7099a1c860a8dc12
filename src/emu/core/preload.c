#include "emu/core/preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "emu/core/where.h"

static bool find_runtime(const char *name, char path[512])
{
    char *output = NULL, *option = fa_format("-print-file-name=%s", name);
    const char *const command[] = {"g++", option, NULL};
    const bool found = fa_run(command, &output) == 0 && output[0] == '/';
    if (found)
        snprintf(path, 512, "%.*s", (int)strcspn(output, "\n"), output);
    free(output);
    free(option);
    return found;
}

/* The sanitizer's environment variable: the user's options, then ours. Later ones win: a user can add options, but not
 * switch off what reports need. */
static void set_options(const char *name, const char *ours, const char *log)
{
    const char *theirs = getenv(name);
    char *all = fa_format("%s%slog_path=\"%s\":exitcode=%d:halt_on_error=1:suppressions=\"\":log_to_syslog=0:%s",
                          theirs != NULL ? theirs : "", theirs != NULL ? ":" : "", log, FA_EMU_SANITIZER_EXIT, ours);
    setenv(name, all, 1);
    free(all);
}

/* Whether a program starts in the environment as it is now: options that the runtime refuses, or a limit on memory,
 * end it before main. */
static bool starts(void)
{
    static const char *const command[] = {"true", NULL};
    return fa_run(command, NULL) == 0;
}

void fa_emu_preload(fa_sanitize sanitize, char *const argv[])
{
    static const char *const runtime[] = {
        [FA_SANITIZE_ADDRESS] = "libasan.so", [FA_SANITIZE_UNDEFINED] = "libubsan.so"};
    char path[512];
    if (sanitize != FA_SANITIZE_ADDRESS && sanitize != FA_SANITIZE_UNDEFINED)
        return;
    if (getenv(FA_EMU_SANITIZER_LOG) != NULL) {
        unsetenv("LD_PRELOAD"); /* the compilers that this process starts must not load it */
        return;
    }
    /* A binary built with AddressSanitizer cannot load another runtime; fa_compile_emu refuses the run. */
    if (sanitize != FA_SANITIZE_ADDRESS && dlsym(RTLD_DEFAULT, "__asan_init") != NULL)
        return;
    if (!find_runtime(runtime[sanitize], path))
        return;
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[strcspn(folder, "\"\n")] != '\0') /* the runtime could not read a quote */
        folder = "/tmp";
    char *log = fa_format("%s/fa_bench-sanitizer-%d", folder, (int)getpid());
    setenv(FA_EMU_SANITIZER_LOG, log, 1);
    setenv("LD_PRELOAD", path, 1);
    set_options("ASAN_OPTIONS",
                "detect_leaks=0:detect_stack_use_after_return=0:poison_heap=1:allow_user_poisoning=1:report_globals=1:"
                "handle_segv=1:handle_sigbus=1:replace_intrin=1:redzone=64",
                log);
    set_options("UBSAN_OPTIONS", "print_stacktrace=1", log);
    free(log);
    if (starts())
        execv("/proc/self/exe", argv);
    unsetenv("LD_PRELOAD"); /* fa_compile_emu says that the runtime is missing */
}

/* How much of a line to keep: addresses are left out, they differ from run to run. */
static int kept_length(const char *line)
{
    static const char *const cut[] = {" (pid=", " on address 0x", " on unknown address 0x", " at 0x", " (BuildId"};
    size_t length = strlen(line);
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        const char *at = strstr(line, cut[i]);
        if (at != NULL && (size_t)(at - line) < length)
            length = (size_t)(at - line);
    }
    return (int)length;
}

/* Keeps the headline and the frames in the kernel's files. */
static void pick_lines(const char *report, char *text, size_t size)
{
    size_t used = 0;
    bool headline = false;
    text[0] = '\0';
    for (const char *line = report; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", (int)length, line);
        const char *start = copy + strspn(copy, " =0123456789");
        const bool what = strstr(copy, "ERROR: ") || strstr(copy, "WARNING: ") || strstr(copy, "runtime error: ");
        const bool kind = strncasecmp(start, "read of size", 12) == 0 || strncasecmp(start, "write of size", 13) == 0 ||
                          strncmp(start, "EMULATOR: ", 10) == 0;
        const bool frame = *start == '#' && fa_emu_frame_in_kernel(copy) && !fa_emu_frame_is_instruction(copy);
        if ((what && !headline) || kind || frame) {
            if (frame && strstr(start, " in ") != NULL)
                start = strstr(start, " in ") + 1; /* "#0 0x7f... in function file:line" */
            const int wrote =
                snprintf(text + used, size - used, "%s%.*s", used > 0 ? "\n  " : "", kept_length(start), start);
            used = used + (size_t)wrote < size ? used + (size_t)wrote : size - 1;
            headline |= what;
        }
        line = line[length] == '\n' ? line + length + 1 : NULL;
    }
}

/* "ERROR: AddressSanitizer: heap-buffer-overflow": the word; else what the arithmetic's sanitizer finds. */
static void name_class(fa_finding *found)
{
    static const char name[] = "AddressSanitizer: ";
    const char *word = strstr(found->text, name);
    if (word != NULL)
        word += strlen(name);
    snprintf(found->fault, sizeof found->fault, "%.*s", word != NULL ? (int)strcspn(word, " :\n") : 32,
             word != NULL                                        ? word
             : strstr(found->text, "misaligned address") != NULL ? "misaligned"
                                                                 : "undefined behaviour");
}

char *fa_emu_sanitizer_report(int pid, fa_finding *found)
{
    const char *log = getenv(FA_EMU_SANITIZER_LOG);
    char *report = NULL;
    size_t bytes = 0;
    fa_reason ignored;
    if (log == NULL)
        return NULL;
    char *path = fa_format("%s.%d", log, pid);
    if (fa_read_file(path, &report, &bytes, &ignored) == FA_PASS) {
        *found = (fa_finding){.text = ""};
        pick_lines(report, found->text, sizeof found->text);
        name_class(found);
        unlink(path);
    }
    free(path);
    return report;
}

/* fa_bench is built without a sanitizer, so their interface is looked up in the running process. */
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
