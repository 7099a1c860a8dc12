/* cuda_pipeline.h's primitives on the emulator's cp.async. */
#pragma once

#include "fa_emu.h"

static inline void __pipeline_memcpy_async(void *dst_s, const void *src_g, size_t size, size_t zeros = 0, FA_EMU_HERE)
{
    fa_emu_aligned(dst_s, size, "__pipeline_memcpy_async: the shared address is not aligned to the size", FA_EMU_THERE);
    fa_emu_aligned(src_g, size, "__pipeline_memcpy_async: the global address is not aligned to the size", FA_EMU_THERE);
    fa_emu_cp_async(dst_s, src_g, (int)size, (int)(size - zeros), FA_EMU_THERE);
}
static inline void __pipeline_commit() { fa_emu_now()->api->cp_async_commit(); }
static inline void __pipeline_wait_prior(int groups) { fa_emu_now()->api->cp_async_wait(groups, 0); }
