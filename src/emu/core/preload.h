/* A sanitizer's runtime must be in the process from its first instruction on: fa_bench starts itself again with it. */
#pragma once

#include "device/findings.h"
#include "emu/core/state.h"
#include "input/options.h"

#define FA_EMU_SANITIZER_EXIT 66 /* exit code of a process that a sanitizer ended */

/* Environment variable, set for the second start: reports go to the file "<its value>.<pid>". */
#define FA_EMU_SANITIZER_LOG "FA_BENCH_SANITIZER_LOG"

/* Starts this binary again with the runtime of the sanitizer and the same arguments. Call it in main before any
 * thread or fork. Returns when there is nothing to do: no sanitizer, the runtime is here already, or g++ has no such
 * runtime. */
void fa_emu_preload(fa_sanitize sanitize, char *const argv[]);

/* The sanitizer's report on the process `pid`, which ended with FA_EMU_SANITIZER_EXIT: what happened, and where in
 * the kernel. The result is the whole report, to be freed; NULL when there is none. */
char *fa_emu_sanitizer_report(int pid, fa_finding *found);

/* The runtime of the sanitizers, found at run time. */

/* Entry points of the runtime; NULL where it is not loaded. */
typedef struct fa_emu_sanitizer {
    void (*start_switch)(void **fake_stack, const void *bottom, size_t size);
    void (*finish_switch)(void *fake_stack, const void **bottom, size_t *size);
    void (*poison)(const volatile void *address, size_t size);
    void (*unpoison)(const volatile void *address, size_t size);
    void (*on_death)(void (*callback)(void));
    void *(*report_address)(void);
} fa_emu_sanitizer;
extern fa_emu_sanitizer fa_emu_san;
/* Looks up the entry points that an object built like this needs. */
void fa_emu_sanitizer_find(const fa_emu_build_info *build);
