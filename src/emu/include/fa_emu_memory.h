/* What the shim itself needs of memory: accesses that the sanitizers do not see, asynchronous copies. */
#pragma once

#if FA_EMU_TSAN
extern "C" void __tsan_read_range(void *address, unsigned long size);
extern "C" void __tsan_write_range(void *address, unsigned long size);
#endif
#if FA_EMU_ASAN
extern "C" void *__asan_region_is_poisoned(void *begin, size_t size);
#endif

/* The core's own accesses are invisible to the sanitizers: these say, in the kernel's place, what it will touch. */
static inline __attribute__((always_inline)) void fa_emu_touch(const void *address, size_t size, bool write)
{
    (void)address, (void)size, (void)write;
#if FA_EMU_ASAN
    volatile char *bad = size ? (volatile char *)__asan_region_is_poisoned((void *)address, size) : nullptr;
    if (bad && write)
        *bad = 0;
    else if (bad)
        (void)*bad;
#endif
#if FA_EMU_TSAN
    if (size && write)
        __tsan_write_range((void *)address, size);
    else if (size)
        __tsan_read_range((void *)address, size);
#endif
}

#if FA_EMU_TSAN
/* g++ puts neither a call nor a hook where it copies or sets a constant size in line, unless one register holds it. */
static inline __attribute__((always_inline)) void fa_emu_touch_block(const void *address, size_t size, bool write)
{
    if (!__builtin_constant_p(size) || size > 16 || (size & (size - 1)))
        fa_emu_touch(address, size, write);
}
extern "C" inline __attribute__((always_inline, gnu_inline)) void *memcpy(void *to, const void *from,
                                                                          size_t size) noexcept
{
    fa_emu_touch_block(from, size, false);
    fa_emu_touch_block(to, size, true);
    return __builtin_memcpy(to, from, size);
}
extern "C" inline __attribute__((always_inline, gnu_inline)) void *memset(void *to, int byte, size_t size) noexcept
{
    fa_emu_touch_block(to, size, true);
    return __builtin_memset(to, byte, size);
}
#endif

static inline void fa_emu_aligned(const void *address, size_t align, const char *what, const char *file, int line)
{
    if ((uintptr_t)address % align)
        fa_emu_now()->api->fail("misaligned", what, file, line);
}

static inline __attribute__((always_inline)) void fa_emu_cp_async(void *dst_s, const void *src_g, int size, int bytes,
                                                                  const char *file, int line)
{
    fa_emu_touch(src_g, bytes > 0 ? bytes : 0, false);
    fa_emu_touch(dst_s, size, true);
    fa_emu_now()->api->cp_async(dst_s, src_g, size, bytes, file, line);
}
