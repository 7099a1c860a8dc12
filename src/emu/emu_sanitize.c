/* The sanitizers' runtime interface, looked up at run time: fa_bench itself is built without any. */
#include "emu_core.h"

#include <dlfcn.h>

fa_emu_sanitizer fa_emu_san;

void fa_emu_sanitizer_find(const fa_emu_build_info *build) {
    fa_emu_san = (fa_emu_sanitizer){0};
#define FIND(field, symbol) *(void **)&fa_emu_san.field = dlsym(RTLD_DEFAULT, symbol)
    if (build->asan) {
        FIND(start_switch, "__sanitizer_start_switch_fiber");
        FIND(finish_switch, "__sanitizer_finish_switch_fiber");
        FIND(poison, "__asan_poison_memory_region");
        FIND(unpoison, "__asan_unpoison_memory_region");
    }
    if (build->tsan) {
        FIND(tsan_current, "__tsan_get_current_fiber");
        FIND(tsan_create, "__tsan_create_fiber");
        FIND(tsan_destroy, "__tsan_destroy_fiber");
        FIND(tsan_switch, "__tsan_switch_to_fiber");
        FIND(tsan_acquire, "__tsan_acquire");
        FIND(tsan_release, "__tsan_release");
    }
#undef FIND
}
