/* What __half and __nv_bfloat16 have alike beyond arithmetic: comparisons of pairs, ReLU and saturation, conversions to
 * and from integers, rounding, increments. Included by both headers, with H, H2 and their parts of names. */
#ifndef FA_EMU_HALF_MORE_H
#define FA_EMU_HALF_MORE_H

#define FA_EMU_PAIR_COMPARE(H2, op, name)                                                                      \
    static inline bool operator op(H2 a, H2 b) { return a.x op b.x && a.y op b.y; }                            \
    static inline bool __hb##name##2(H2 a, H2 b) { return a.x op b.x && a.y op b.y; }                          \
    static inline H2 __h##name##2(H2 a, H2 b) { return {a.x op b.x ? 1.0f : 0.0f, a.y op b.y ? 1.0f : 0.0f}; } \
    static inline unsigned __h##name##2_mask(H2 a, H2 b)                                                       \
    {                                                                                                          \
        return (a.x op b.x ? 0xffffu : 0u) | (a.y op b.y ? 0xffff0000u : 0u);                                  \
    }
#define FA_EMU_HALF_BOUND(H, H2, name, lower, upper)                                            \
    static inline H __h##name##_bound(H a) { return fminf(fmaxf(a, lower), upper); }            \
    static inline H __hfma_##name(H a, H b, H c) { return __h##name##_bound(__hfma(a, b, c)); } \
    static inline H2 __hfma2_##name(H2 a, H2 b, H2 c)                                           \
    {                                                                                           \
        return {__hfma_##name(a.x, b.x, c.x), __hfma_##name(a.y, b.y, c.y)};                    \
    }
#define FA_EMU_HALF_SAT(H, H2, name)                                                    \
    static inline H __h##name##_sat(H a, H b) { return __hsat_bound(__h##name(a, b)); } \
    static inline H2 __h##name##2_sat(H2 a, H2 b) { return {__h##name##_sat(a.x, b.x), __h##name##_sat(a.y, b.y)}; }
#define FA_EMU_HALF_ROUND(H, H2, name, expression) \
    static inline H h##name(H a)                   \
    {                                              \
        const float x = a;                         \
        return expression;                         \
    }                                              \
    static inline H2 h2##name(H2 a) { return {h##name(a.x), h##name(a.y)}; }

#define FA_EMU_HALF_MORE(H, H2)                                                                       \
    FA_EMU_PAIR_COMPARE(H2, ==, eq)                                                                   \
    FA_EMU_PAIR_COMPARE(H2, !=, ne)                                                                   \
    FA_EMU_PAIR_COMPARE(H2, <, lt)                                                                    \
    FA_EMU_PAIR_COMPARE(H2, <=, le)                                                                   \
    FA_EMU_PAIR_COMPARE(H2, >, gt)                                                                    \
    FA_EMU_PAIR_COMPARE(H2, >=, ge)                                                                   \
    FA_EMU_HALF_BOUND(H, H2, relu, 0.0f, INFINITY)                                                    \
    FA_EMU_HALF_BOUND(H, H2, sat, 0.0f, 1.0f)                                                         \
    FA_EMU_HALF_SAT(H, H2, add)                                                                       \
    FA_EMU_HALF_SAT(H, H2, sub)                                                                       \
    FA_EMU_HALF_SAT(H, H2, mul)                                                                       \
    FA_EMU_HALF_ROUND(H, H2, ceil, ceilf(x))                                                          \
    FA_EMU_HALF_ROUND(H, H2, floor, floorf(x))                                                        \
    FA_EMU_HALF_ROUND(H, H2, trunc, truncf(x))                                                        \
    FA_EMU_HALF_ROUND(H, H2, rint, rintf(x))                                                          \
    FA_EMU_HALF_ROUND(H, H2, sin, sinf(x))                                                            \
    FA_EMU_HALF_ROUND(H, H2, cos, cosf(x))                                                            \
    FA_EMU_HALF_ROUND(H, H2, tanh, tanhf(x))                                                          \
    FA_EMU_HALF_ROUND(H, H2, log10, log10f(x))                                                        \
    FA_EMU_HALF_ROUND(H, H2, exp10, exp10f(x))                                                        \
    static inline H2 operator-(H2 a) { return {-a.x, -a.y}; }                                         \
    static inline H2 operator+(H2 a) { return a; }                                                    \
    static inline H operator+(H a) { return a; }                                                      \
    static inline H &operator++(H &a) { return a = a + H(1.0f); }                                     \
    static inline H &operator--(H &a) { return a = a - H(1.0f); }                                     \
    static inline H operator++(H &a, int)                                                             \
    {                                                                                                 \
        const H old = a;                                                                              \
        ++a;                                                                                          \
        return old;                                                                                   \
    }                                                                                                 \
    static inline H operator--(H &a, int)                                                             \
    {                                                                                                 \
        const H old = a;                                                                              \
        --a;                                                                                          \
        return old;                                                                                   \
    }                                                                                                 \
    static inline H __hmax_nan(H a, H b) { return a != a ? a : b != b ? b : __hmax(a, b); }           \
    static inline H __hmin_nan(H a, H b) { return a != a ? a : b != b ? b : __hmin(a, b); }           \
    static inline H2 __hmax2_nan(H2 a, H2 b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; } \
    static inline H2 __hmin2_nan(H2 a, H2 b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; }

/* name: half or bfloat16; T to H and back, in the four roundings of an integer */
#define FA_EMU_HALF_INTEGER(H, name, T, word)                                    \
    static inline T __##name##2##word##_rn(H h) { return (T)llrintf((float)h); } \
    static inline T __##name##2##word##_rz(H h) { return (T)truncf((float)h); }  \
    static inline T __##name##2##word##_rd(H h) { return (T)floorf((float)h); }  \
    static inline T __##name##2##word##_ru(H h) { return (T)ceilf((float)h); }   \
    static inline H __##word##2##name##_rn(T i) { return H((double)i); }
#define FA_EMU_HALF_INTEGERS(H, name)                    \
    FA_EMU_HALF_INTEGER(H, name, int, int)               \
    FA_EMU_HALF_INTEGER(H, name, unsigned, uint)         \
    FA_EMU_HALF_INTEGER(H, name, short, short)           \
    FA_EMU_HALF_INTEGER(H, name, unsigned short, ushort) \
    FA_EMU_HALF_INTEGER(H, name, long long, ll)          \
    FA_EMU_HALF_INTEGER(H, name, unsigned long long, ull)

#endif
