/* cp.async as the kernel's object calls it, and the copies that were never waited for. */
#ifndef FA_EMU_PTX_CP_ASYNC_H
#define FA_EMU_PTX_CP_ASYNC_H

#include "emu/core/state.h"

void fa_emu_cp_async(void *dst, const void *src, int32_t size, int32_t bytes, const char *file, int32_t line);
void fa_emu_cp_async_commit(void);
void fa_emu_cp_async_wait(int32_t groups_left, int32_t everything);
/* Forgets the pending copies. Returns the first of them, for the report; NULL when there was none. */
const fa_emu_copy *fa_emu_async_drop(fa_emu_async *async);

#endif
