/* Inline PTX: what the compiler's pass (src/compile/asm.c) writes in place of an asm statement. The core runs the text. */
#ifndef FA_EMU_PTX_H
#define FA_EMU_PTX_H

#include <type_traits>

/* The bits of an operand, by its constraint: r 32, l 64, h 16 bits, f float, d double, n a constant. */
template <char C, typename T>
static inline __attribute__((always_inline)) uint64_t fa_emu_ptx_bits(T x)
{
    static_assert(C != 'r' || sizeof(T) <= 4, "an operand of constraint r has 32 bits");
    static_assert((C != 'l' && C != 'd') || sizeof(T) == 8, "an operand of constraint l or d has 64 bits");
    uint64_t bits = 0;
    if constexpr (C == 'f') {
        const float f = (float)x;
        memcpy(&bits, &f, sizeof f);
    } else if constexpr (C == 'd') {
        memcpy(&bits, &x, sizeof x);
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
        bits = C == 'r' ? (uint32_t)x : C == 'h' ? (uint16_t)x : (uint64_t)x;
    } else {
        memcpy(&bits, (const void *)&x, sizeof x < 8 ? sizeof x : 8);
    }
    return bits;
}

/* An output; with In its value before, too. */
template <char C, bool In, typename T>
struct fa_emu_ptx_place {
    T *to;
    inline __attribute__((always_inline)) uint64_t load() const
    {
        if constexpr (In)
            return fa_emu_ptx_bits<C, std::remove_cv_t<T>>(*to);
        return 0;
    }
    inline __attribute__((always_inline)) void store(uint64_t bits) const
    {
        if constexpr (std::is_integral_v<T>)
            *to = (T)bits;
        else
            memcpy((void *)to, &bits, sizeof(T) < 8 ? sizeof(T) : 8);
    }
};
struct fa_emu_ptx_value {
    uint64_t bits;
    inline __attribute__((always_inline)) uint64_t load() const { return bits; }
    inline __attribute__((always_inline)) void store(uint64_t) const {}
};

template <char C, typename T>
static inline __attribute__((always_inline)) fa_emu_ptx_place<C, false, T> fa_emu_ptx_out(T &x)
{
    return {&x};
}
template <char C, typename T>
static inline __attribute__((always_inline)) fa_emu_ptx_place<C, true, T> fa_emu_ptx_inout(T &x)
{
    return {&x};
}
template <char C, typename T>
static inline __attribute__((always_inline)) fa_emu_ptx_value fa_emu_ptx_in(T x)
{
    return {fa_emu_ptx_bits<C, T>(x)};
}

template <typename... Operands>
static inline __attribute__((always_inline)) void fa_emu_ptx(fa_emu_ptx_site &site, const Operands &...operands)
{
    uint64_t values[sizeof...(Operands) + 1] = {operands.load()...};
    int at = 0;
    fa_emu_now()->api->ptx(&site, values, FA_EMU_ASAN ? __builtin_frame_address(0) : nullptr);
    (operands.store(values[at++]), ...);
}
/* asm volatile("" : "+r"(x)): nothing but a word to the optimizer */
template <typename... Operands>
static inline __attribute__((always_inline)) void fa_emu_ptx_nothing(const Operands &...)
{
}

static inline size_t __cvta_generic_to_shared(const void *p)
{
    return fa_emu_shared_address(p, fa_emu_now()->smem, &fa_emu_build);
}
static inline void *__cvta_shared_to_generic(size_t address)
{
    return fa_emu_shared_place((uint32_t)address, fa_emu_now()->smem, &fa_emu_build);
}
static inline size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
static inline void *__cvta_global_to_generic(size_t address) { return (void *)address; }
static inline unsigned __isShared(const void *p)
{
    return fa_emu_is_shared(p, fa_emu_now()->smem, fa_emu_now()->smem_bytes, &fa_emu_build);
}
static inline unsigned __isGlobal(const void *p) { return !__isShared(p); }

#endif
