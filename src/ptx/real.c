/* F32 and F64 in the processor's own arithmetic; halves and bfloats in double, rounded once. The approximate functions
 * (ex2, lg2, rcp.approx, ...) are computed in full precision: a device's last bits differ. */
#include "ptx/real.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#include "ptx/formats.h"

static bool directed(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_RZ) || fa_ptx_has(i, FA_PTX_W_RM) || fa_ptx_has(i, FA_PTX_W_RP);
}

static void set_rounding(const fa_ptx_instr *i)
{
    fesetround(fa_ptx_has(i, FA_PTX_W_RZ) ? FE_TOWARDZERO : fa_ptx_has(i, FA_PTX_W_RM) ? FE_DOWNWARD : FE_UPWARD);
}

/* min, max: a NaN loses against a number, with .NaN it wins; -0 < +0. */
static double pick(const fa_ptx_instr *i, double a, double b)
{
    const bool larger = i->op == FA_PTX_OP_MAX;
    double d;
    if (isnan(a) || isnan(b))
        d = fa_ptx_has(i, FA_PTX_W_NAN_) || (isnan(a) && isnan(b)) ? (double)NAN : isnan(a) ? b : a;
    else if (fa_ptx_has(i, FA_PTX_W_XORSIGN))
        d = copysign(larger ? fmax(fabs(a), fabs(b)) : fmin(fabs(a), fabs(b)), signbit(a) != signbit(b) ? -1.0 : 1.0);
    else if (a == b)
        d = (signbit(a) != 0) == larger ? b : a;
    else
        d = (a < b) != larger ? a : b;
    return d;
}

static float single_only(const fa_ptx_instr *i, float a, float b)
{
    switch (i->op) {
        FA_PTX_ON(SIN, sinf(a));
        FA_PTX_ON(COS, cosf(a));
        FA_PTX_ON(LG2, log2f(a));
        FA_PTX_ON(EX2, exp2f(a));
        FA_PTX_ON(TANH, tanhf(a));
    default:
        return (float)pick(i, (double)a, (double)b);
    }
}

/* volatile: the compiler must not compute across a change of the rounding mode */
#define ARITHMETIC(name, T, fma, sqrt_, copysign_, other) \
    static T name(const fa_ptx_instr *i, T x, T y, T z)   \
    {                                                     \
        volatile T a = x, b = y, c = z;                   \
        switch (i->op) {                                  \
            FA_PTX_ON(ADD, a + b);                        \
            FA_PTX_ON(SUB, a - b);                        \
        case FA_PTX_OP_MUL:                               \
            return a * b;                                 \
        case FA_PTX_OP_FMA:                               \
        case FA_PTX_OP_MAD:                               \
            return fma(a, b, c);                          \
            FA_PTX_ON(DIV, a / b);                        \
            FA_PTX_ON(RCP, (T)1 / a);                     \
            FA_PTX_ON(SQRT, sqrt_(a));                    \
            FA_PTX_ON(RSQRT, (T)(1.0 / sqrt((double)a))); \
            FA_PTX_ON(COPYSIGN, copysign_(b, a));         \
        default:                                          \
            return other(i, a, b);                        \
        }                                                 \
    }
ARITHMETIC(single, float, fmaf, sqrtf, copysignf, single_only)
ARITHMETIC(twice, double, fma, sqrt, copysign, pick)

/* A half or bfloat in double, so that one rounding gives the exact result's. */
static double small(const fa_ptx_instr *i, double a, double b, double c)
{
    switch (i->op) {
        FA_PTX_ON(ADD, fa_ptx_add_odd(a, b));
        FA_PTX_ON(SUB, fa_ptx_add_odd(a, -b));
        FA_PTX_ON(MUL, a * b);
        FA_PTX_ON(FMA, fa_ptx_add_odd(a * b, c));
        FA_PTX_ON(EX2, exp2(a));
        FA_PTX_ON(TANH, tanh(a));
    default:
        return pick(i, a, b);
    }
}

static float flush(const fa_ptx_instr *i, float x)
{
    return fa_ptx_has(i, FA_PTX_W_FTZ) && fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static uint64_t run_single(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const float x = flush(i, fa_ptx_float(a)), y = flush(i, fa_ptx_float(b)), z = flush(i, fa_ptx_float(c));
    const bool change = directed(i);
    if (change)
        set_rounding(i);
    volatile float result = single(i, x, y, z);
    if (change)
        fesetround(FE_TONEAREST);
    float d = flush(i, result);
    if (fa_ptx_has(i, FA_PTX_W_SAT))
        d = isnan(d) || d <= 0 ? 0.0f : d > 1 ? 1.0f : d;
    return isnan(d) ? 0x7fffffff : fa_ptx_float_bits(d);
}

static uint64_t run_double(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const bool change = directed(i);
    if (change)
        set_rounding(i);
    volatile double d = twice(i, fa_ptx_double(a), fa_ptx_double(b), fa_ptx_double(c));
    if (change)
        fesetround(FE_TONEAREST);
    return fa_ptx_double_bits(d);
}

static uint64_t run_small(const fa_ptx_instr *i, fa_ptx_type type, uint64_t a, uint64_t b, uint64_t c)
{
    double d = small(i, fa_ptx_to_double(a & 0xffff, type), fa_ptx_to_double(b & 0xffff, type),
                     fa_ptx_to_double(c & 0xffff, type));
    if (fa_ptx_has(i, FA_PTX_W_SAT))
        d = isnan(d) || d <= 0 ? 0 : d > 1 ? 1 : d;
    if (fa_ptx_has(i, FA_PTX_W_RELU) && d <= 0)
        d = 0;
    uint64_t bits = fa_ptx_from_double(d, type, FA_PTX_NEAREST, false);
    if (fa_ptx_has(i, FA_PTX_W_FTZ) && type == FA_PTX_F16 && (bits & 0x7c00) == 0)
        bits &= 0x8000;
    return bits;
}

/* Sign bits of all elements: abs and neg keep a NaN's bits. */
static uint64_t change_sign(const fa_ptx_instr *i, uint64_t a)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    uint64_t sign = (uint64_t)1 << (type->bits - 1);
    if (type->elements == 2)
        sign |= sign >> 16;
    if (i->type[0] == FA_PTX_F32)
        a = fa_ptx_has(i, FA_PTX_W_FTZ) && (a & 0x7f800000) == 0 ? a & 0x80000000 : a;
    return (i->op == FA_PTX_OP_ABS ? a & ~sign : a ^ sign) & fa_ptx_mask(type->bits);
}

void fa_ptx_real(const fa_ptx_instr *i, uint64_t *r)
{
    const uint64_t a = fa_ptx_in(i, 1, r), b = i->args > 2 ? fa_ptx_in(i, 2, r) : 0,
                   c = i->args > 3 ? fa_ptx_in(i, 3, r) : 0;
    const fa_ptx_type type = (fa_ptx_type)i->type[0], one = fa_ptx_element(type);
    uint64_t d;
    if (i->op == FA_PTX_OP_ABS || i->op == FA_PTX_OP_NEG)
        d = change_sign(i, a);
    else if (type == FA_PTX_F32)
        d = run_single(i, a, b, c);
    else if (type == FA_PTX_F64)
        d = run_double(i, a, b, c);
    else if (fa_ptx_types[type].elements == 1)
        d = run_small(i, one, a, b, c);
    else
        d = run_small(i, one, a, b, c) | run_small(i, one, a >> 16, b >> 16, c >> 16) << 16;
    fa_ptx_out(i, r, d);
}
