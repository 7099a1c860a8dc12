/* Device functions on integers and words: conversions with a rounding, sums of differences, the SIMD functions on the
 * halves and bytes of a word (CUDA Math API, "SIMD Intrinsics"), rounded float arithmetic. */
#ifndef FA_EMU_INTEGER_H
#define FA_EMU_INTEGER_H

/* from a number to an integer, in the four roundings, and back to the nearest */
#define FA_EMU_CONVERT(F, f, I, i, nearest)                                 \
    static inline I __##f##2##i##_rn(F x) { return (I)nearest(x); }         \
    static inline I __##f##2##i##_rz(F x) { return (I)::trunc((double)x); } \
    static inline I __##f##2##i##_rd(F x) { return (I)::floor((double)x); } \
    static inline I __##f##2##i##_ru(F x) { return (I)::ceil((double)x); }  \
    static inline F __##i##2##f##_rn(I x) { return (F)x; }
#define FA_EMU_CONVERTS(F, f)                      \
    FA_EMU_CONVERT(F, f, int, int, ::llrint)       \
    FA_EMU_CONVERT(F, f, unsigned, uint, ::llrint) \
    FA_EMU_CONVERT(F, f, long long, ll, ::llrint)  \
    FA_EMU_CONVERT(F, f, unsigned long long, ull, ::rint)
FA_EMU_CONVERTS(float, float)
FA_EMU_CONVERTS(double, double)
#undef FA_EMU_CONVERTS
#undef FA_EMU_CONVERT

/* The float next to the nearest one where that lies on the wrong side of x. */
static inline float fa_emu_round_down(double x)
{
    const float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}
static inline float fa_emu_round_up(double x)
{
    const float near = (float)x;
    return (double)near < x ? nextafterf(near, INFINITY) : near;
}
static inline float fa_emu_round_zero(double x) { return x < 0 ? fa_emu_round_up(x) : fa_emu_round_down(x); }
#define FA_EMU_ROUNDED(name, op)                                                                               \
    static inline float __f##name##_rd(float x, float y) { return fa_emu_round_down((double)x op(double) y); } \
    static inline float __f##name##_ru(float x, float y) { return fa_emu_round_up((double)x op(double) y); }   \
    static inline float __f##name##_rz(float x, float y) { return fa_emu_round_zero((double)x op(double) y); } \
    static inline double __d##name##_rn(double x, double y) { return x op y; }
FA_EMU_ROUNDED(add, +)
FA_EMU_ROUNDED(sub, -)
FA_EMU_ROUNDED(mul, *)
FA_EMU_ROUNDED(div, /)
#undef FA_EMU_ROUNDED
static inline float __double2float_rn(double x) { return (float)x; }
static inline float __double2float_rd(double x) { return fa_emu_round_down(x); }
static inline float __double2float_ru(double x) { return fa_emu_round_up(x); }
static inline float __double2float_rz(double x) { return fa_emu_round_zero(x); }
static inline float normcdff(float x) { return (float)(0.5 * erfc((double)x * -0.70710678118654752440)); }

static inline unsigned __sad(int x, int y, unsigned z) { return z + (unsigned)(x < y ? y - x : x - y); }
static inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x < y ? y - x : x - y); }
static inline int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
static inline int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
static inline unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
static inline unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int hi, int lo)
{
    return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo));
}
/* Two shorts of a times bytes 0 and 1, or 2 and 3, of b. */
static inline int fa_emu_dp2a(int a, int b, int c, int first)
{
    for (int i = 0; i < 2; i++)
        c += (int)(short)(a >> 16 * i) * (signed char)(b >> 8 * (first + i));
    return c;
}
static inline int __dp2a_lo(int a, int b, int c) { return fa_emu_dp2a(a, b, c, 0); }
static inline int __dp2a_hi(int a, int b, int c) { return fa_emu_dp2a(a, b, c, 2); }

/* n parts of a word, read as T, written as U. */
#define FA_EMU_SIMD(name, n, U, T, expression)                            \
    static inline unsigned name##n(unsigned a, unsigned b)                \
    {                                                                     \
        unsigned r = 0;                                                   \
        for (int i = 0; i < n; i++) {                                     \
            const int x = (T)(a >> 32 / n * i), y = (T)(b >> 32 / n * i); \
            r |= (unsigned)(U)(expression) << 32 / n * i;                 \
        }                                                                 \
        return r;                                                         \
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
#undef FA_EMU_SIMD_COMPARE
#undef FA_EMU_SIMD_U
#undef FA_EMU_SIMD_S
#undef FA_EMU_SIMD_BOTH
#undef FA_EMU_SIMD

#endif
