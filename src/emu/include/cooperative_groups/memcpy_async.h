/* cg::memcpy_async on the emulator's cp.async: the threads of the group share the bytes out among them. */
#ifndef FA_EMU_CG_MEMCPY_H
#define FA_EMU_CG_MEMCPY_H

#include "../cooperative_groups.h"

namespace cooperative_groups
{

template <typename G>
static inline void memcpy_async(const G &group, void *dst_s, const void *src_g, size_t bytes, FA_EMU_HERE)
{
    const uintptr_t both = (uintptr_t)dst_s | (uintptr_t)src_g | bytes;
    const size_t chunk = both % 16 == 0 ? 16 : both % 8 == 0 ? 8 : 4;
    for (size_t at = group.thread_rank() * chunk; at < bytes; at += group.size() * chunk)
        if (both % 4 == 0)
            fa_emu_cp_async((char *)dst_s + at, (const char *)src_g + at, (int)chunk, (int)chunk, FA_EMU_THERE);
        else
            for (size_t i = at; i < at + chunk && i < bytes; i++)
                ((char *)dst_s)[i] = ((const char *)src_g)[i];
    fa_emu_now()->api->cp_async_commit();
}
template <typename G, typename T>
static inline void memcpy_async(const G &group, T *dst_s, size_t dst_count, const T *src_g, size_t src_count,
                                FA_EMU_HERE)
{
    memcpy_async(group, (void *)dst_s, (const void *)src_g, (dst_count < src_count ? dst_count : src_count) * sizeof(T),
                 FA_EMU_THERE);
}
template <typename G>
static inline void wait(const G &group, FA_EMU_HERE)
{
    cp_async_wait_all();
    group.sync(FA_EMU_THERE);
}
template <unsigned N, typename G>
static inline void wait_prior(const G &group, FA_EMU_HERE)
{
    cp_async_wait<N>();
    group.sync(FA_EMU_THERE);
}

} // namespace cooperative_groups

#endif
