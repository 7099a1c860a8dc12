/* Device functions on integers and words: conversions with a rounding, sums of differences, halves of doubles. */
#ifndef FA_EMU_INTEGER_H
#define FA_EMU_INTEGER_H

/* from a number to an integer, in the four roundings, and back to the nearest */
#define FA_EMU_CONVERT(fa_F, f, fa_I, i)                                                                \
    static inline fa_I __##f##2##i##_rn(fa_F x) { return fa_emu_integer_of<fa_I>(::rint((double)x)); }  \
    static inline fa_I __##f##2##i##_rz(fa_F x) { return fa_emu_integer_of<fa_I>(::trunc((double)x)); } \
    static inline fa_I __##f##2##i##_rd(fa_F x) { return fa_emu_integer_of<fa_I>(::floor((double)x)); } \
    static inline fa_I __##f##2##i##_ru(fa_F x) { return fa_emu_integer_of<fa_I>(::ceil((double)x)); }  \
    static inline fa_F __##i##2##f##_rn(fa_I x) { return (fa_F)x; }
#define FA_EMU_CONVERTS(fa_F, f)            \
    FA_EMU_CONVERT(fa_F, f, int, int)       \
    FA_EMU_CONVERT(fa_F, f, unsigned, uint) \
    FA_EMU_CONVERT(fa_F, f, long long, ll)  \
    FA_EMU_CONVERT(fa_F, f, unsigned long long, ull)
FA_EMU_CONVERTS(float, float)
FA_EMU_CONVERTS(double, double)
#undef FA_EMU_CONVERTS
#undef FA_EMU_CONVERT

static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __drcp_rn(double x) { return 1 / x; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline float normcdff(float x) { return (float)(0.5 * erfc((double)x * -0.70710678118654752440)); }

static inline double normcdf(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }

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
static inline unsigned fa_emu_dp2a(unsigned a, unsigned b, unsigned c, int first)
{
    for (int i = 0; i < 2; i++)
        c += (a >> 16 * i & 0xffff) * (b >> 8 * (first + i) & 0xff);
    return c;
}
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return fa_emu_dp2a(a, b, c, 0); }
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return fa_emu_dp2a(a, b, c, 2); }
static inline int __dp2a_lo(short2 a, char4 b, int c) { return __dp2a_lo(fa_emu_bits<int>(a), fa_emu_bits<int>(b), c); }
static inline int __dp2a_hi(short2 a, char4 b, int c) { return __dp2a_hi(fa_emu_bits<int>(a), fa_emu_bits<int>(b), c); }
static inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(fa_emu_bits<int>(a), fa_emu_bits<int>(b), c); }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c)
{
    return __dp4a(fa_emu_bits<unsigned>(a), fa_emu_bits<unsigned>(b), c);
}

/* The position of the n-th set bit of mask. Counting starts at bit `base`, itself included. It goes upwards for n > 0,
 * downwards for n < 0; n = 0 asks for bit `base` alone. */
static inline unsigned __fns(unsigned mask, unsigned base, int n)
{
    if (n == 0)
        return mask >> (base & 31) & 1 ? base : ~0u;
    for (int at = (int)base; at >= 0 && at<32; at += n> 0 ? 1 : -1)
        if (mask >> at & 1 && (n > 0 ? --n : ++n) == 0)
            return (unsigned)at;
    return ~0u;
}

#endif
