/* The SIMD functions on the halves and bytes of a word (CUDA Math API, "SIMD Intrinsics"): sums, differences, maxima,
 * minima, equality. */
#pragma once

/* n parts of a word, read as T, written as U. */
#define FA_EMU_SIMD(name, n, fa_U, fa_T, expression)                            \
    static inline unsigned name##n(unsigned a, unsigned b)                      \
    {                                                                           \
        unsigned r = 0;                                                         \
        for (int i = 0; i < n; i++) {                                           \
            const int x = (fa_T)(a >> 32 / n * i), y = (fa_T)(b >> 32 / n * i); \
            r |= (unsigned)(fa_U)(expression) << 32 / n * i;                    \
        }                                                                       \
        return r;                                                               \
    }
#define FA_EMU_SIMD_BOTH(name, two, four, expression)     \
    FA_EMU_SIMD(name, 2, unsigned short, two, expression) \
    FA_EMU_SIMD(name, 4, unsigned char, four, expression)
#define FA_EMU_SIMD_S(name, expression) FA_EMU_SIMD_BOTH(name, short, signed char, expression)
#define FA_EMU_SIMD_U(name, expression) FA_EMU_SIMD_BOTH(name, unsigned short, unsigned char, expression)
FA_EMU_SIMD_U(__vadd, x + y)
FA_EMU_SIMD_U(__vsub, x - y)
FA_EMU_SIMD_S(__vmaxs, x > y ? x : y)
FA_EMU_SIMD_U(__vmaxu, x > y ? x : y)
FA_EMU_SIMD_S(__vmins, x < y ? x : y)
FA_EMU_SIMD_U(__vminu, x < y ? x : y)
FA_EMU_SIMD_U(__vcmpeq, x == y ? -1 : 0)
FA_EMU_SIMD_U(__vcmpne, x != y ? -1 : 0)
#undef FA_EMU_SIMD_U
#undef FA_EMU_SIMD_S
#undef FA_EMU_SIMD_BOTH
#undef FA_EMU_SIMD

/* DPX: the larger or smaller of numbers and sums. */
#define FA_EMU_DPX(fa_T, word, which, pick, sum)                                                     \
    static inline fa_T __vi##which##3_##word(fa_T a, fa_T b, fa_T c) { return pick(pick(a, b), c); } \
    static inline fa_T __viadd##which##_##word(fa_T a, fa_T b, fa_T c) { return pick((fa_T)sum(a, b), c); }
static inline unsigned fa_emu_sum(unsigned a, unsigned b) { return a + b; }
FA_EMU_DPX(int, s32, max, max, fa_emu_sum)
FA_EMU_DPX(int, s32, min, min, fa_emu_sum)
FA_EMU_DPX(unsigned, u32, max, max, fa_emu_sum)
FA_EMU_DPX(unsigned, u32, min, min, fa_emu_sum)
FA_EMU_DPX(unsigned, s16x2, max, __vmaxs2, __vadd2)
FA_EMU_DPX(unsigned, s16x2, min, __vmins2, __vadd2)
FA_EMU_DPX(unsigned, u16x2, max, __vmaxu2, __vadd2)
FA_EMU_DPX(unsigned, u16x2, min, __vminu2, __vadd2)
#undef FA_EMU_DPX
