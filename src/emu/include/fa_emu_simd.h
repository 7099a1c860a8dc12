/* The SIMD functions on the halves and bytes of a word (CUDA Math API, "SIMD Intrinsics"). */
#pragma once

static inline int fa_emu_clamp(int x, int least, int largest) { return max(least, min(x, largest)); }
/* n parts of a word, read as T, written as U. The expression may use the least and the largest number of T. */
#define FA_EMU_SIMD(name, n, fa_U, fa_T, expression)                            \
    static inline unsigned name##n(unsigned a, unsigned b)                      \
    {                                                                           \
        constexpr int bits = 32 / n, is_signed = (fa_T)-1 < 0;                  \
        constexpr int least = is_signed ? -(1 << (bits - 1)) : 0;               \
        constexpr int largest = (1 << (bits - is_signed)) - 1;                  \
        (void)least, (void)largest;                                             \
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
#define FA_EMU_SIMD_COMPARE(word, op)               \
    FA_EMU_SIMD_S(__vcmp##word##s, x op y ? -1 : 0) \
    FA_EMU_SIMD_U(__vcmp##word##u, x op y ? -1 : 0) \
    FA_EMU_SIMD_S(__vset##word##s, x op y)          \
    FA_EMU_SIMD_U(__vset##word##u, x op y)
FA_EMU_SIMD_U(__vadd, x + y)
FA_EMU_SIMD_U(__vsub, x - y)
FA_EMU_SIMD_S(__vmaxs, x > y ? x : y)
FA_EMU_SIMD_U(__vmaxu, x > y ? x : y)
FA_EMU_SIMD_S(__vmins, x < y ? x : y)
FA_EMU_SIMD_U(__vminu, x < y ? x : y)
FA_EMU_SIMD_S(__vabsdiffs, x > y ? x - y : y - x)
FA_EMU_SIMD_U(__vabsdiffu, x > y ? x - y : y - x)
FA_EMU_SIMD_S(__vavgs, (x + y + (x + y >= 0)) >> 1)
FA_EMU_SIMD_U(__vavgu, (x + y + 1) >> 1)
FA_EMU_SIMD_U(__vhaddu, (x + y) >> 1)
FA_EMU_SIMD_U(__vcmpeq, x == y ? -1 : 0)
FA_EMU_SIMD_U(__vcmpne, x != y ? -1 : 0)
FA_EMU_SIMD_U(__vseteq, x == y)
FA_EMU_SIMD_U(__vsetne, x != y)
FA_EMU_SIMD_COMPARE(gt, >)
FA_EMU_SIMD_COMPARE(ge, >=)
FA_EMU_SIMD_COMPARE(lt, <)
FA_EMU_SIMD_COMPARE(le, <=)
#define FA_EMU_SIMD_1(name, expression) /* of one word */                         \
    FA_EMU_SIMD_S(fa_emu_##name, expression)                                      \
    static inline unsigned name##2(unsigned a) { return fa_emu_##name##2(0, a); } \
    static inline unsigned name##4(unsigned a) { return fa_emu_##name##4(0, a); }
FA_EMU_SIMD_S(__vaddss, fa_emu_clamp(x + y, least, largest))
FA_EMU_SIMD_U(__vaddus, fa_emu_clamp(x + y, least, largest))
FA_EMU_SIMD_S(__vsubss, fa_emu_clamp(x - y, least, largest))
FA_EMU_SIMD_U(__vsubus, fa_emu_clamp(x - y, least, largest))
FA_EMU_SIMD_1(__vabs, y < 0 ? -y : y)
FA_EMU_SIMD_1(__vabsss, y == least ? largest : y < 0 ? -y : y)
FA_EMU_SIMD_1(__vneg, -y)
FA_EMU_SIMD_1(__vnegss, y == least ? largest : -y)
#undef FA_EMU_SIMD_COMPARE
#undef FA_EMU_SIMD_1
#undef FA_EMU_SIMD_U
#undef FA_EMU_SIMD_S
#undef FA_EMU_SIMD_BOTH
#undef FA_EMU_SIMD

/* The sum of the parts. */
static inline unsigned fa_emu_sum2(unsigned a) { return (a & 0xffff) + (a >> 16); }
static inline unsigned fa_emu_sum4(unsigned a) { return fa_emu_sum2((a & 0xff00ff) + (a >> 8 & 0xff00ff)); }
static inline unsigned __vsads2(unsigned a, unsigned b) { return fa_emu_sum2(__vabsdiffs2(a, b)); }
static inline unsigned __vsadu2(unsigned a, unsigned b) { return fa_emu_sum2(__vabsdiffu2(a, b)); }
static inline unsigned __vsads4(unsigned a, unsigned b) { return fa_emu_sum4(__vabsdiffs4(a, b)); }
static inline unsigned __vsadu4(unsigned a, unsigned b) { return fa_emu_sum4(__vabsdiffu4(a, b)); }

/* DPX: the larger or smaller of numbers and sums, also not below 0. */
#define FA_EMU_DPX(fa_T, word, which, pick, sum)                                                     \
    static inline fa_T __vi##which##3_##word(fa_T a, fa_T b, fa_T c) { return pick(pick(a, b), c); } \
    static inline fa_T __viadd##which##_##word(fa_T a, fa_T b, fa_T c) { return pick((fa_T)sum(a, b), c); }
#define FA_EMU_DPX_RELU(fa_T, word, which, pick, sum, larger)                                              \
    FA_EMU_DPX(fa_T, word, which, pick, sum)                                                               \
    static inline fa_T __vi##which##_##word##_relu(fa_T a, fa_T b) { return larger(pick(a, b), (fa_T)0); } \
    static inline fa_T __vi##which##3_##word##_relu(fa_T a, fa_T b, fa_T c)                                \
    {                                                                                                      \
        return larger(__vi##which##3_##word(a, b, c), (fa_T)0);                                            \
    }                                                                                                      \
    static inline fa_T __viadd##which##_##word##_relu(fa_T a, fa_T b, fa_T c)                              \
    {                                                                                                      \
        return larger(__viadd##which##_##word(a, b, c), (fa_T)0);                                          \
    }
static inline unsigned fa_emu_sum(unsigned a, unsigned b) { return a + b; }
FA_EMU_DPX_RELU(int, s32, max, max, fa_emu_sum, max)
FA_EMU_DPX_RELU(int, s32, min, min, fa_emu_sum, max)
FA_EMU_DPX(unsigned, u32, max, max, fa_emu_sum)
FA_EMU_DPX(unsigned, u32, min, min, fa_emu_sum)
FA_EMU_DPX_RELU(unsigned, s16x2, max, __vmaxs2, __vadd2, __vmaxs2)
FA_EMU_DPX_RELU(unsigned, s16x2, min, __vmins2, __vadd2, __vmaxs2)
FA_EMU_DPX(unsigned, u16x2, max, __vmaxu2, __vadd2)
FA_EMU_DPX(unsigned, u16x2, min, __vminu2, __vadd2)
#undef FA_EMU_DPX_RELU
#undef FA_EMU_DPX
/* ... and whether it is the first one. */
#define FA_EMU_DPX_WHICH(fa_T, letter, which, op, compare)                                              \
    static inline fa_T __vib##which##_##letter##32(fa_T a, fa_T b, bool *first)                         \
    {                                                                                                   \
        *first = a op b;                                                                                \
        return which(a, b);                                                                             \
    }                                                                                                   \
    static inline unsigned __vib##which##_##letter##16x2(unsigned a, unsigned b, bool *high, bool *low) \
    {                                                                                                   \
        const unsigned first = compare(a, b);                                                           \
        *high = first >> 16;                                                                            \
        *low = first & 1;                                                                               \
        return __v##which##letter##2(a, b);                                                             \
    }
FA_EMU_DPX_WHICH(int, s, max, >=, __vsetges2)
FA_EMU_DPX_WHICH(int, s, min, <=, __vsetles2)
FA_EMU_DPX_WHICH(unsigned, u, max, >=, __vsetgeu2)
FA_EMU_DPX_WHICH(unsigned, u, min, <=, __vsetleu2)
#undef FA_EMU_DPX_WHICH
