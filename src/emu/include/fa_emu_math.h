/* Device functions on numbers, integers and words that C does not have under these names. Fast variants (__expf, ...)
 * are computed in full precision: a kernel that passes here may still lose bits on the device, never the reverse. */
#pragma once

#define FA_EMU_MINMAX(fa_T)                                          \
    static inline fa_T min(fa_T a, fa_T b) { return b < a ? b : a; } \
    static inline fa_T max(fa_T a, fa_T b) { return b > a ? b : a; }
FA_EMU_MINMAX(int)
FA_EMU_MINMAX(unsigned)
FA_EMU_MINMAX(long)
FA_EMU_MINMAX(unsigned long)
FA_EMU_MINMAX(long long)
FA_EMU_MINMAX(unsigned long long)
#undef FA_EMU_MINMAX
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

static inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
static inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
static inline long long llmin(long long a, long long b) { return min(a, b); }
static inline long long llmax(long long a, long long b) { return max(a, b); }
static inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
static inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

/* Macros: glibc has hidden functions of these names. */
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log10f log10f
#define __log2f log2f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __tanhf tanhf
#define __sincosf sincosf
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fmaf_ieee_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float fdividef(float x, float y) { return x / y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float sinpif(float x) { return (float)sin(3.14159265358979323846 * (double)x); }
static inline float cospif(float x) { return (float)cos(3.14159265358979323846 * (double)x); }
static inline void sincospif(float x, float *s, float *c)
{
    *s = sinpif(x);
    *c = cospif(x);
}
static inline double sinpi(double x) { return sin(3.14159265358979323846 * x); }
static inline double cospi(double x) { return cos(3.14159265358979323846 * x); }
static inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

template <typename fa_To, typename fa_From>
static inline fa_To fa_emu_bits(fa_From from)
{
    static_assert(sizeof(fa_To) == sizeof(fa_From), "");
    fa_To to;
    memcpy((void *)&to, &from, sizeof to);
    return to;
}
static inline float __int_as_float(int x) { return fa_emu_bits<float>(x); }
static inline int __float_as_int(float x) { return fa_emu_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return fa_emu_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return fa_emu_bits<unsigned>(x); }
static inline long long __double_as_longlong(double x) { return fa_emu_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return fa_emu_bits<double>(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1u) << (31 - i);
    return r;
}
static inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++)
        c += (int)(signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 4; i++)
        c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) { return (int)((long long)(x << 8 >> 8) * (y << 8 >> 8)); }
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned pick = s >> 4 * i & 0xf, byte = (unsigned)(both >> 8 * (pick & 7)) & 0xff;
        r |= (pick & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31));
}
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift)
{
    return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift)
{
    return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}

/* Cached loads and streaming stores are plain ones here. */
#define FA_EMU_LOAD(name)                  \
    template <typename fa_T>               \
    static inline fa_T name(const fa_T *p) \
    {                                      \
        return *p;                         \
    }
#define FA_EMU_STORE(name)                              \
    template <typename fa_T>                            \
    static inline void name(fa_T *p, fa_emu_as<fa_T> v) \
    {                                                   \
        *p = v;                                         \
    }
FA_EMU_LOAD(__ldg)
FA_EMU_LOAD(__ldcg)
FA_EMU_LOAD(__ldca)
FA_EMU_LOAD(__ldcs)
FA_EMU_LOAD(__ldlu)
FA_EMU_STORE(__stcg)
FA_EMU_STORE(__stcs)
FA_EMU_STORE(__stwb)
FA_EMU_STORE(__stwt)
#undef FA_EMU_LOAD
#undef FA_EMU_STORE
template <typename fa_T>
static inline fa_T __ldcv(const fa_T *p)
{
    __asm__ volatile("" ::: "memory"); /* read again each time */
    return *p;
}

/* There is no clock worth reading: these count calls. */
static inline long long clock64()
{
    static thread_local long long now;
    return __atomic_add_fetch(&now, 1, __ATOMIC_RELAXED); /* no access of the kernel's own to the race detector */
}
#include <time.h>
#define clock() ((int)clock64()) /* <ctime> undoes this: then it is the host's */
static inline unsigned long long __globaltimer() { return (unsigned long long)clock64(); }

static inline void __trap(FA_EMU_HERE)
{
    fa_emu_now()->api->fail("trap", "__trap", FA_EMU_THERE);
    __builtin_unreachable();
}
static inline void __brkpt(FA_EMU_HERE)
{
    fa_emu_now()->api->fail("trap", "__brkpt", FA_EMU_THERE);
    __builtin_unreachable();
}
static inline void __builtin_assume(bool) {}

#include "assert.h"

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
static inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(fa_emu_bits<int>(a), fa_emu_bits<int>(b), c); }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c)
{
    return __dp4a(fa_emu_bits<unsigned>(a), fa_emu_bits<unsigned>(b), c);
}
