/* Sanitizers need their runtime in the process from its first instruction on: fa_bench starts itself again with it. */
#ifndef FA_EMU_PRELOAD_H
#define FA_EMU_PRELOAD_H

#include "input/options.h"

#define FA_EMU_SANITIZER_EXIT 66 /* exit code of a process that a sanitizer ended */

/* Environment variable of the second start: where reports go, "<this>.<pid>". */
#define FA_EMU_SANITIZER_LOG "FA_BENCH_SANITIZER_LOG"

/* Call first thing in main, before any thread or fork. Returns at once for FA_SANITIZE_NONE, and in the process that
 * has the runtime; otherwise execs this binary with the same arguments. Also returns when there is no such runtime. */
void fa_emu_preload(fa_sanitize sanitize, char *const argv[]);

/* What the sanitizer said in the process `pid`, which ended with FA_EMU_SANITIZER_EXIT: the report's lines up to the
 * frame of the kernel in `text`, all of it on stderr. False when there is none. */
bool fa_emu_sanitizer_report(int pid, char *text, size_t size);

#endif
