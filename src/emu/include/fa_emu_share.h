/* Copies that the threads of a group share out among them, by cp.async where the alignment allows it. */
#pragma once

#include "fa_emu.h"

#include <stddef.h>

static inline void fa_emu_share(size_t rank, size_t threads, void *dst_s, const void *src_g, size_t bytes,
                                const char *file, int line)
{
    const uintptr_t both = (uintptr_t)dst_s | (uintptr_t)src_g | bytes;
    const size_t chunk = both % 16 == 0 ? 16 : both % 8 == 0 ? 8 : 4;
    for (size_t at = rank * chunk; at < bytes; at += threads * chunk)
        if (both % 4 == 0)
            fa_emu_cp_async((char *)dst_s + at, (const char *)src_g + at, (int)chunk, (int)chunk, file, line);
        else
            for (size_t i = at; i < at + chunk && i < bytes; i++)
                ((char *)dst_s)[i] = ((const char *)src_g)[i];
}

namespace cuda
{
/* A size that is a multiple of the alignment. */
template <size_t fa_Alignment>
struct aligned_size_t {
    static constexpr size_t align = fa_Alignment;
    size_t value;
    explicit constexpr aligned_size_t(size_t size) : value(size) {}
    constexpr operator size_t() const { return value; }
};
} // namespace cuda
