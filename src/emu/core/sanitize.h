/* The runtime of the sanitizers, found at run time. */
#ifndef FA_EMU_CORE_SANITIZE_H
#define FA_EMU_CORE_SANITIZE_H

#include "emu/core/state.h"

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

#endif
