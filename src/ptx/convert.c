#include "ptx/convert.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#include "ptx/formats.h"

static fa_ptx_rounding rounding_of(const fa_ptx_instr *i)
{
    if (fa_ptx_has(i, FA_PTX_W_RZ) || fa_ptx_has(i, FA_PTX_W_RZI))
        return FA_PTX_ZERO;
    if (fa_ptx_has(i, FA_PTX_W_RM) || fa_ptx_has(i, FA_PTX_W_RMI))
        return FA_PTX_DOWN;
    if (fa_ptx_has(i, FA_PTX_W_RP) || fa_ptx_has(i, FA_PTX_W_RPI))
        return FA_PTX_UP;
    return fa_ptx_has(i, FA_PTX_W_RNA) ? FA_PTX_NEAREST_AWAY : FA_PTX_NEAREST;
}

static double whole(const fa_ptx_instr *i, double x)
{
    const fa_ptx_rounding way = rounding_of(i);
    return way == FA_PTX_ZERO ? trunc(x) : way == FA_PTX_DOWN ? floor(x) : way == FA_PTX_UP ? ceil(x) : nearbyint(x);
}

/* Out of range: the nearest representable number. NaN: 0; 64 bits: the top bit. */
static uint64_t float_to_integer(const fa_ptx_instr *i, double x, const fa_ptx_type_info *to)
{
    const double top = ldexp(1.0, to->bits - (to->kind == FA_PTX_S));
    if (isnan(x))
        return to->bits == 64 ? (uint64_t)1 << 63 : 0;
    x = whole(i, x);
    if (to->kind == FA_PTX_S)
        return x >= top ? fa_ptx_mask(to->bits - 1u) : x <= -top ? ~fa_ptx_mask(to->bits - 1u) : (uint64_t)(int64_t)x;
    return x >= top ? fa_ptx_mask(to->bits) : x <= 0 ? 0 : (uint64_t)x;
}

/* 64-bit integers exceed a double: the last kept bit is set where lower bits are lost, so that the final rounding is
 * right. */
static double integer_to_double(uint64_t x, bool is_signed)
{
    const bool negative = is_signed && (int64_t)x < 0;
    uint64_t size = negative ? 0 - x : x;
    if (size >> 53 != 0) {
        const unsigned extra = 64 - (unsigned)__builtin_clzll(size) - 53;
        const bool lost = (size & fa_ptx_mask(extra)) != 0;
        size = (size >> extra | lost) << extra;
    }
    return negative ? -(double)size : (double)size;
}

/* Rounded once: to double by the processor in that mode. */
static uint64_t integer_to_f64(const fa_ptx_instr *i, uint64_t x, bool is_signed)
{
    static const int modes[] = {[FA_PTX_NEAREST] = FE_TONEAREST,
                                [FA_PTX_NEAREST_AWAY] = FE_TONEAREST,
                                [FA_PTX_ZERO] = FE_TOWARDZERO,
                                [FA_PTX_DOWN] = FE_DOWNWARD,
                                [FA_PTX_UP] = FE_UPWARD};
    volatile uint64_t value = x;
    fesetround(modes[rounding_of(i)]);
    volatile double d = is_signed ? (double)(int64_t)value : (double)value;
    fesetround(FE_TONEAREST);
    return fa_ptx_double_bits(d);
}

static uint64_t saturate_integer(const fa_ptx_instr *i, uint64_t x, const fa_ptx_type_info *from,
                                 const fa_ptx_type_info *to)
{
    if (!fa_ptx_has(i, FA_PTX_W_SAT))
        return x;
    const __int128 wide = from->kind == FA_PTX_S ? (__int128)(int64_t)x : (__int128)x;
    const __int128 most = (__int128)fa_ptx_mask(to->bits - (to->kind == FA_PTX_S)),
                   least = to->kind == FA_PTX_S ? -most - 1 : 0;
    return (uint64_t)(wide > most ? most : wide < least ? least : wide);
}

static uint64_t to_float(const fa_ptx_instr *i, double x, fa_ptx_type from, fa_ptx_type to)
{
    const bool to_whole = fa_ptx_has(i, FA_PTX_W_RNI) || fa_ptx_has(i, FA_PTX_W_RZI) || fa_ptx_has(i, FA_PTX_W_RMI) ||
                          fa_ptx_has(i, FA_PTX_W_RPI);
    if (to_whole)
        x = whole(i, x);
    if (fa_ptx_has(i, FA_PTX_W_FTZ) && from == FA_PTX_F32 && fabs(x) < (double)FLT_MIN)
        x = copysign(0.0, x);
    if (fa_ptx_has(i, FA_PTX_W_RELU) && !isnan(x) && x <= 0)
        x = 0;
    if (fa_ptx_has(i, FA_PTX_W_SAT))
        x = isnan(x) || x <= 0 ? 0 : x > 1 ? 1 : x;
    uint64_t bits = fa_ptx_from_double(x, to, rounding_of(i), fa_ptx_has(i, FA_PTX_W_SATFINITE));
    if (fa_ptx_has(i, FA_PTX_W_FTZ) && to == FA_PTX_F32 && (bits & 0x7f800000) == 0)
        bits &= 0x80000000;
    return bits;
}

static uint64_t convert_one(const fa_ptx_instr *i, uint64_t a, fa_ptx_type from, fa_ptx_type to)
{
    const fa_ptx_type_info *in = &fa_ptx_types[from], *out = &fa_ptx_types[to];
    if (in->kind != FA_PTX_F) {
        a = fa_ptx_fit(a, in);
        if (out->kind != FA_PTX_F)
            return fa_ptx_fit(saturate_integer(i, a, in, out), out);
        if (to == FA_PTX_F64)
            return integer_to_f64(i, a, in->kind == FA_PTX_S);
        return to_float(i, integer_to_double(a, in->kind == FA_PTX_S), from, to);
    }
    if (from == to && isnan(fa_ptx_to_double(a & fa_ptx_mask(in->bits), from)))
        return a & fa_ptx_mask(in->bits); /* a NaN stays */
    double x = fa_ptx_to_double(a & fa_ptx_mask(in->bits), from);
    if (out->kind == FA_PTX_F)
        return to_float(i, x, from, to);
    if (fa_ptx_has(i, FA_PTX_W_FTZ) && from == FA_PTX_F32 && fabs(x) < (double)FLT_MIN)
        x = 0;
    return fa_ptx_fit(float_to_integer(i, x, out), out);
}

void fa_ptx_convert(const fa_ptx_instr *i, uint64_t *r)
{
    const fa_ptx_type to = (fa_ptx_type)i->type[0], from = (fa_ptx_type)i->type[1];
    const uint64_t a = fa_ptx_in(i, 1, r);
    if (fa_ptx_types[to].elements == 1) {
        fa_ptx_out(i, r, convert_one(i, a, from, to));
        return;
    }
    /* d = {a in the high half, b in the low one}; from a packed type both of a */
    const fa_ptx_type one = fa_ptx_element(to), source = fa_ptx_element(from);
    const unsigned width = fa_ptx_types[one].bits, source_width = fa_ptx_types[source].bits;
    const bool packed = fa_ptx_types[from].elements == 2;
    const uint64_t high = packed ? a >> source_width : a, low = packed ? a : fa_ptx_in(i, 2, r);
    fa_ptx_out(i, r, convert_one(i, high, source, one) << width | convert_one(i, low, source, one));
}
