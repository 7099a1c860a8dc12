/* cp.async as the kernel's object calls it, and the copies that are not waited for. */
#pragma once

#include "emu/core/state.h"

void fa_emu_cp_async(void *dst, const void *src, int32_t size, int32_t bytes, const char *file, int32_t line);
void fa_emu_cp_async_commit(void);
void fa_emu_cp_async_wait(int32_t groups_left, int32_t everything);
/* The running thread ends. Its pending copies may write until the block ends: what others wrote there is lost, and a
 * read there is one without a wait. */
void fa_emu_cp_async_leave(void);
/* Forgets the pending copies. */
void fa_emu_async_drop(fa_emu_async *async);
