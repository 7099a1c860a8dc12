#include "emu/hopper/reduce.h"

#include <string.h>

#include "ptx/formats.h"

static double real(double a, double b, fa_ptx_word operation)
{
    if (operation == FA_PTX_W_ADD_)
        return a + b;
    return (operation == FA_PTX_W_MIN_) == (b < a) ? b : a;
}

static uint64_t whole(uint64_t a, uint64_t b, bool negative_counts, fa_ptx_word operation)
{
    const bool less = negative_counts ? (int64_t)b < (int64_t)a : b < a;
    return operation == FA_PTX_W_ADD_   ? a + b
           : operation == FA_PTX_W_MIN_ ? (less ? b : a)
           : operation == FA_PTX_W_MAX_ ? (less ? a : b)
           : operation == FA_PTX_W_INC  ? (a >= b ? 0 : a + 1)
           : operation == FA_PTX_W_DEC  ? (a == 0 || a > b ? b : a - 1)
           : operation == FA_PTX_W_AND_ ? (a & b)
           : operation == FA_PTX_W_OR_  ? (a | b)
                                        : a ^ b;
}

static uint64_t combine(uint64_t a, uint64_t b, fa_ptx_type type, fa_ptx_word operation)
{
    const fa_ptx_type_info *info = &fa_ptx_types[type];
    const unsigned spare = 64u - info->bits;
    if (info->kind == FA_PTX_F)
        return fa_ptx_from_double(real(fa_ptx_to_double(a, type), fa_ptx_to_double(b, type), operation), type,
                                  FA_PTX_NEAREST, false);
    if (info->kind == FA_PTX_S)
        return whole((uint64_t)((int64_t)(a << spare) >> spare), (uint64_t)((int64_t)(b << spare) >> spare), true,
                     operation);
    return whole(a, b, false, operation);
}

/* One element, at once: blocks on other OS threads reduce into the same memory. */
#define AT_ONCE(bits)                                                                                           \
    {                                                                                                           \
        uint##bits##_t old = __atomic_load_n((uint##bits##_t *)(void *)to, __ATOMIC_RELAXED), wanted;           \
        do                                                                                                      \
            wanted = (uint##bits##_t)combine(old, b, type, operation);                                          \
        while (!__atomic_compare_exchange_n((uint##bits##_t *)(void *)to, &old, wanted, true, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_RELAXED));                                                 \
    }
static void reduce_one(unsigned char *to, uint64_t b, fa_ptx_type type, fa_ptx_word operation)
{
    if (fa_ptx_types[type].bits == 16)
        AT_ONCE(16)
    else if (fa_ptx_types[type].bits == 32)
        AT_ONCE(32)
    else
        AT_ONCE(64)
}

void fa_emu_reduce_bytes(unsigned char *to, const unsigned char *from, uint32_t size, fa_ptx_type type,
                         fa_ptx_word operation)
{
    const uint32_t bytes = fa_ptx_types[type].bits / 8u;
    for (uint32_t at = 0; at + bytes <= size; at += bytes) {
        uint64_t b = 0;
        memcpy(&b, from + at, bytes);
        reduce_one(to + at, b, type, operation);
    }
}
