/* The functions that g++ -fsanitize=thread calls in a kernel. They replace ThreadSanitizer's runtime; the kernel's
 * object finds them in this process. The compiler decides their names and arguments. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
void __tsan_read_range_pc(void *address, unsigned long size, void *pc);
void __tsan_write_range_pc(void *address, unsigned long size, void *pc);
void __tsan_vptr_update(void **pointer, void *value);
void __tsan_vptr_read(void **pointer);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

/* memcpy, memmove and memset of the kernel (the linker's --wrap) */
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int byte, size_t size);

/* Called by the shim: fences and atomics of block scope. */
void fa_emu_race_fence_block(void);
void fa_emu_race_scope_block(int on);

#define FA_RACE_ACCESS_HOOKS(n)                            \
    void __tsan_read##n(void *address);                    \
    void __tsan_write##n(void *address);                   \
    void __tsan_unaligned_read##n(void *address);          \
    void __tsan_unaligned_write##n(void *address);         \
    void __tsan_volatile_read##n(void *address);           \
    void __tsan_volatile_write##n(void *address);          \
    void __tsan_unaligned_volatile_read##n(void *address); \
    void __tsan_unaligned_volatile_write##n(void *address);
FA_RACE_ACCESS_HOOKS(1)
FA_RACE_ACCESS_HOOKS(2)
FA_RACE_ACCESS_HOOKS(4)
FA_RACE_ACCESS_HOOKS(8)
FA_RACE_ACCESS_HOOKS(16)

#define FA_RACE_ATOMIC_HOOKS(bits, T)                                                                                \
    T __tsan_atomic##bits##_load(const volatile T *at, int order);                                                   \
    void __tsan_atomic##bits##_store(volatile T *at, T value, int order);                                            \
    T __tsan_atomic##bits##_exchange(volatile T *at, T value, int order);                                            \
    T __tsan_atomic##bits##_fetch_add(volatile T *at, T value, int order);                                           \
    T __tsan_atomic##bits##_fetch_sub(volatile T *at, T value, int order);                                           \
    T __tsan_atomic##bits##_fetch_and(volatile T *at, T value, int order);                                           \
    T __tsan_atomic##bits##_fetch_or(volatile T *at, T value, int order);                                            \
    T __tsan_atomic##bits##_fetch_xor(volatile T *at, T value, int order);                                           \
    T __tsan_atomic##bits##_fetch_nand(volatile T *at, T value, int order);                                          \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *at, T *expected, T value, int order, int failure); \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *at, T *expected, T value, int order, int failure);   \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T expected, T value, int order, int failure);
FA_RACE_ATOMIC_HOOKS(8, uint8_t)
FA_RACE_ATOMIC_HOOKS(16, uint16_t)
FA_RACE_ATOMIC_HOOKS(32, uint32_t)
FA_RACE_ATOMIC_HOOKS(64, uint64_t)
