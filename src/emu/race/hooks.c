#include "emu/race/hooks.h"

#include <stdbool.h>
#include <string.h>

#include "emu/race/memory.h"
#include "emu/race/shadow.h"

#define PC __builtin_return_address(0)

static void touch(const void *address, size_t size, bool write, const void *pc)
{
    fa_race_touch(address, size, write ? FA_RACE_WRITE : 0, pc);
}
static void enter(const void *pc) { fa_race_enter(pc); }
static void leave(void) { fa_race_leave(); }

void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { enter(pc); }
void __tsan_func_exit(void) { leave(); }
void __tsan_read_range(void *address, unsigned long size) { touch(address, size, false, PC); }
void __tsan_write_range(void *address, unsigned long size) { touch(address, size, true, PC); }
void __tsan_read_range_pc(void *address, unsigned long size, void *pc) { touch(address, size, false, pc); }
void __tsan_write_range_pc(void *address, unsigned long size, void *pc) { touch(address, size, true, pc); }
void __tsan_vptr_update(void **pointer, void *value)
{
    (void)value;
    touch(pointer, sizeof *pointer, true, PC);
}
void __tsan_vptr_read(void **pointer) { touch(pointer, sizeof *pointer, false, PC); }
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    fa_race_fence(false);
}
void __tsan_atomic_signal_fence(int order) { (void)order; }

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    touch(from, size, false, PC);
    touch(to, size, true, PC);
    return memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    touch(from, size, false, PC);
    touch(to, size, true, PC);
    return memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
    touch(to, size, true, PC);
    return memset(to, byte, size);
}

void fa_emu_race_fence_block(void) { fa_race_fence(true); }
void fa_emu_race_scope_block(int on) { fa_race_scope(on != 0); }

static void volatile_read(const void *address, size_t size, const void *pc)
{
    fa_race_take_turns();
    fa_race_observe(address, __ATOMIC_RELAXED);
    fa_race_touch(address, size, FA_RACE_VOLATILE, pc);
}

static void volatile_write(const void *address, size_t size, const void *pc)
{
    fa_race_touch(address, size, FA_RACE_VOLATILE | FA_RACE_WRITE | (fa_race_fenced() ? FA_RACE_FENCED : 0), pc);
    fa_race_publish(address, __ATOMIC_RELAXED, false);
}

#define ACCESS(n)                                                                            \
    void __tsan_read##n(void *address) { touch(address, n, false, PC); }                     \
    void __tsan_write##n(void *address) { touch(address, n, true, PC); }                     \
    void __tsan_unaligned_read##n(void *address) { touch(address, n, false, PC); }           \
    void __tsan_unaligned_write##n(void *address) { touch(address, n, true, PC); }           \
    void __tsan_volatile_read##n(void *address) { volatile_read(address, n, PC); }           \
    void __tsan_volatile_write##n(void *address) { volatile_write(address, n, PC); }         \
    void __tsan_unaligned_volatile_read##n(void *address) { volatile_read(address, n, PC); } \
    void __tsan_unaligned_volatile_write##n(void *address) { volatile_write(address, n, PC); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

static int kind_of(bool write)
{
    return FA_RACE_ATOMIC | (write ? FA_RACE_WRITE : 0) | (fa_race_scope_is_block() ? FA_RACE_SCOPE_BLOCK : 0);
}

/* write: an exchange */
static void begin_read(const volatile void *at, size_t size, bool write, int order, const void *pc)
{
    fa_race_take_turns();
    fa_race_observe(at, order);
    fa_race_touch(at, size, kind_of(write), pc);
}

#define MODIFY(bits, T, name, expression)                              \
    T __tsan_atomic##bits##_##name(volatile T *at, T value, int order) \
    {                                                                  \
        begin_read(at, sizeof *at, true, order, PC);                   \
        const T old = *at;                                             \
        *at = (T)(expression);                                         \
        fa_race_publish(at, order, true);                              \
        return old;                                                    \
    }
#define EXCHANGE(bits, T, kind)                                                                                     \
    int __tsan_atomic##bits##_compare_exchange_##kind(volatile T *at, T *expected, T value, int order, int failure) \
    {                                                                                                               \
        const T wanted = *expected;                                                                                 \
        *expected = exchange_##bits(at, wanted, value, order, failure, PC);                                         \
        return *expected == wanted;                                                                                 \
    }
/* The kernel's threads are fibres of one OS thread: nothing happens between a read and a write here. */
#define ATOMIC(bits, T)                                                                                       \
    T __tsan_atomic##bits##_load(const volatile T *at, int order)                                             \
    {                                                                                                         \
        begin_read(at, sizeof *at, false, order, PC);                                                         \
        return *at;                                                                                           \
    }                                                                                                         \
    void __tsan_atomic##bits##_store(volatile T *at, T value, int order)                                      \
    {                                                                                                         \
        fa_race_touch(at, sizeof *at, kind_of(true), PC);                                                     \
        *at = value;                                                                                          \
        fa_race_publish(at, order, false);                                                                    \
    }                                                                                                         \
    MODIFY(bits, T, exchange, ((void)old, value))                                                             \
    MODIFY(bits, T, fetch_add, old + value)                                                                   \
    MODIFY(bits, T, fetch_sub, old - value)                                                                   \
    MODIFY(bits, T, fetch_and, old &value)                                                                    \
    MODIFY(bits, T, fetch_or, old | value)                                                                    \
    MODIFY(bits, T, fetch_xor, old ^ value)                                                                   \
    MODIFY(bits, T, fetch_nand, ~(old & value))                                                               \
    static T exchange_##bits(volatile T *at, T expected, T value, int order, int failure, const void *pc)     \
    {                                                                                                         \
        fa_race_checks_guess(at, &expected, sizeof expected);                                                 \
        fa_race_take_turns();                                                                                 \
        const T old = *at;                                                                                    \
        const bool same = old == expected;                                                                    \
        fa_race_observe(at, same ? order : failure);                                                          \
        fa_race_touch(at, sizeof *at, kind_of(same), pc);                                                     \
        if (same) {                                                                                           \
            *at = value;                                                                                      \
            fa_race_publish(at, order, true);                                                                 \
        }                                                                                                     \
        return old;                                                                                           \
    }                                                                                                         \
    EXCHANGE(bits, T, strong)                                                                                 \
    EXCHANGE(bits, T, weak)                                                                                   \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T expected, T value, int order, int failure) \
    {                                                                                                         \
        return exchange_##bits(at, expected, value, order, failure, PC);                                      \
    }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
