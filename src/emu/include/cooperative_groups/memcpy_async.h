/* cg::memcpy_async on the emulator's cp.async: the threads of the group share the bytes out among them. */
#pragma once

#include "../cooperative_groups.h"
#include "../fa_emu_share.h"

namespace cooperative_groups
{

template <typename fa_G>
static inline void memcpy_async(const fa_G &group, void *dst_s, const void *src_g, size_t bytes, FA_EMU_HERE)
{
    fa_emu_share(group.thread_rank(), group.size(), dst_s, src_g, bytes, FA_EMU_THERE);
    fa_emu_now()->api->cp_async_commit();
}
template <typename fa_G, typename fa_T>
static inline void memcpy_async(const fa_G &group, fa_T *dst_s, size_t dst_count, const fa_T *src_g, size_t src_count,
                                FA_EMU_HERE)
{
    memcpy_async(group, (void *)dst_s, (const void *)src_g,
                 (dst_count < src_count ? dst_count : src_count) * sizeof(fa_T), FA_EMU_THERE);
}
template <typename fa_G>
static inline void wait(const fa_G &group, FA_EMU_HERE)
{
    fa_emu_now()->api->cp_async_wait(0, 1);
    group.sync(FA_EMU_THERE);
}
template <unsigned fa_N, typename fa_G>
static inline void wait_prior(const fa_G &group, FA_EMU_HERE)
{
    fa_emu_now()->api->cp_async_wait((int)fa_N, 0);
    group.sync(FA_EMU_THERE);
}

} // namespace cooperative_groups
