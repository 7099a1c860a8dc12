#include "ptx/scalar.h"

#include <float.h>
#include <math.h>

#include "ptx/convert.h"
#include "ptx/formats.h"
#include "ptx/integer.h"
#include "ptx/real.h"

static bool integers(const fa_ptx_instr *i, const fa_ptx_type_info *type, uint64_t a, uint64_t b)
{
    const bool is_signed = type->kind == FA_PTX_S && !fa_ptx_has(i, FA_PTX_W_LO) && !fa_ptx_has(i, FA_PTX_W_LS) &&
                           !fa_ptx_has(i, FA_PTX_W_HI) && !fa_ptx_has(i, FA_PTX_W_HS);
    const bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    return fa_ptx_has(i, FA_PTX_W_EQ)                                   ? (a == b)
           : fa_ptx_has(i, FA_PTX_W_NE)                                 ? a != b
           : (fa_ptx_has(i, FA_PTX_W_LT) || fa_ptx_has(i, FA_PTX_W_LO)) ? less
           : (fa_ptx_has(i, FA_PTX_W_LE) || fa_ptx_has(i, FA_PTX_W_LS)) ? (less || a == b)
           : (fa_ptx_has(i, FA_PTX_W_GT) || fa_ptx_has(i, FA_PTX_W_HI)) ? (!less && a != b)
                                                                        : !less;
}

/* Words of two letters are false for NaN, those with a u after them true. */
static bool floats(const fa_ptx_instr *i, double a, double b)
{
    const bool nan = isnan(a) || isnan(b);
    if (fa_ptx_has(i, FA_PTX_W_NUM) || fa_ptx_has(i, FA_PTX_W_ISNAN))
        return nan == fa_ptx_has(i, FA_PTX_W_ISNAN);
    const bool unordered = fa_ptx_has(i, FA_PTX_W_EQU) || fa_ptx_has(i, FA_PTX_W_NEU) || fa_ptx_has(i, FA_PTX_W_LTU) ||
                           fa_ptx_has(i, FA_PTX_W_LEU) || fa_ptx_has(i, FA_PTX_W_GTU) || fa_ptx_has(i, FA_PTX_W_GEU);
    return nan                                                           ? unordered
           : (fa_ptx_has(i, FA_PTX_W_EQ) || fa_ptx_has(i, FA_PTX_W_EQU)) ? (a == b)
           : (fa_ptx_has(i, FA_PTX_W_NE) || fa_ptx_has(i, FA_PTX_W_NEU)) ? a != b
           : (fa_ptx_has(i, FA_PTX_W_LT) || fa_ptx_has(i, FA_PTX_W_LTU)) ? (a < b)
           : (fa_ptx_has(i, FA_PTX_W_LE) || fa_ptx_has(i, FA_PTX_W_LEU)) ? (a <= b)
           : (fa_ptx_has(i, FA_PTX_W_GT) || fa_ptx_has(i, FA_PTX_W_GTU)) ? (a > b)
                                                                         : (a >= b);
}

static double flushed(const fa_ptx_instr *i, fa_ptx_type type, uint64_t bits)
{
    const double value = fa_ptx_to_double(bits, type);
    return type == FA_PTX_F32 && fa_ptx_has(i, FA_PTX_W_FTZ) && fabs(value) < (double)FLT_MIN ? 0.0 : value;
}

static bool compare_one(const fa_ptx_instr *i, fa_ptx_type type, uint64_t a, uint64_t b)
{
    const fa_ptx_type_info *info = &fa_ptx_types[type];
    if (info->kind == FA_PTX_F)
        return floats(i, flushed(i, type, a), flushed(i, type, b));
    return integers(i, info, fa_ptx_fit(a, info), fa_ptx_fit(b, info));
}

static bool combine(const fa_ptx_instr *i, bool x, const uint64_t *r)
{
    if (i->args < 4)
        return x;
    const bool c = fa_ptx_in(i, 3, r) != 0;
    return fa_ptx_has(i, FA_PTX_W_AND_) ? x && c : fa_ptx_has(i, FA_PTX_W_OR_) ? x || c : x != c;
}

static bool is_kind(const fa_ptx_instr *i, double x)
{
    const double least = i->type[0] == FA_PTX_F32 ? (double)FLT_MIN : DBL_MIN;
    return fa_ptx_has(i, FA_PTX_W_FINITE)       ? isfinite(x)
           : fa_ptx_has(i, FA_PTX_W_INFINITE)   ? isinf(x)
           : fa_ptx_has(i, FA_PTX_W_NUMBER)     ? !isnan(x)
           : fa_ptx_has(i, FA_PTX_W_NOTANUMBER) ? isnan(x)
           : fa_ptx_has(i, FA_PTX_W_NORMAL)     ? (isfinite(x) && fabs(x) >= least)
                                                : (x != 0 && fabs(x) < least);
}

/* p|q: of packed halves one predicate each, otherwise q is the opposite of p. */
static void setp(const fa_ptx_instr *i, uint64_t *r, uint64_t a, uint64_t b)
{
    const fa_ptx_type element = fa_ptx_element((fa_ptx_type)i->type[0]);
    const bool pair = i->arg[0].shape == FA_PTX_PAIR, packed = fa_ptx_type_of(i, 0)->elements == 2;
    const bool first = compare_one(i, element, packed ? a & 0xffff : a, packed ? b & 0xffff : b);
    const bool second = packed ? compare_one(i, element, a >> 16 & 0xffff, b >> 16 & 0xffff) : !first;
    const bool p = combine(i, first, r), q = combine(i, second, r);
    fa_ptx_write(&i->value[0], r, p);
    if (pair)
        fa_ptx_write(&i->value[1], r, q);
}

static void compare(const fa_ptx_instr *i, uint64_t *r)
{
    const uint64_t a = fa_ptx_in(i, 1, r), b = i->args > 2 ? fa_ptx_in(i, 2, r) : 0;
    if (i->op == FA_PTX_OP_SETP) {
        setp(i, r, a, b);
    } else if (i->op == FA_PTX_OP_TESTP) {
        fa_ptx_out(i, r, is_kind(i, fa_ptx_to_double(a, (fa_ptx_type)i->type[0])));
    } else { /* set.CmpOp.d.a, of f16x2 two halves */
        const fa_ptx_type to = (fa_ptx_type)i->type[0], from = (fa_ptx_type)i->type[1];
        const unsigned count = fa_ptx_types[from].elements, width = fa_ptx_types[from].bits / count;
        const fa_ptx_type to_one = fa_ptx_element(to), from_one = fa_ptx_element(from);
        const bool is_float = fa_ptx_types[to].kind == FA_PTX_F;
        const unsigned to_width = count == 1 ? fa_ptx_types[to].bits : 16;
        uint64_t d = 0;
        for (unsigned k = 0; k < count; k++) {
            const uint64_t mask = fa_ptx_mask(width);
            const bool yes = combine(i, compare_one(i, from_one, a >> (k * width) & mask, b >> (k * width) & mask), r);
            const uint64_t one =
                is_float ? fa_ptx_from_double(1.0, to_one, FA_PTX_NEAREST, false) : fa_ptx_mask(to_width);
            d |= (yes ? one : 0) << (k * to_width);
        }
        fa_ptx_out(i, r, d);
    }
}

/* mov: of one register, {a, b, ...} into one, one into {a, b, ...}; the first is the lowest part. */
static void move(const fa_ptx_instr *i, uint64_t *r)
{
    const unsigned bits = fa_ptx_type_of(i, 0)->bits;
    uint64_t whole = 0;
    const fa_ptx_arg from = i->arg[1], to = i->arg[0];
    const unsigned from_width = bits / from.count, to_width = bits / to.count;
    for (unsigned k = 0; k < from.count; k++)
        whole |= (fa_ptx_read(&i->value[from.first + k], r) & fa_ptx_mask(from_width)) << (k * from_width);
    for (unsigned k = 0; k < to.count; k++)
        fa_ptx_write(&i->value[to.first + k], r, whole >> (k * to_width) & fa_ptx_mask(to_width));
}

static void move_family(const fa_ptx_instr *i, uint64_t *r)
{
    if (i->op == FA_PTX_OP_MOV) {
        move(i, r);
        return;
    }
    const uint64_t a = fa_ptx_in(i, 1, r), b = fa_ptx_in(i, 2, r), c = fa_ptx_in(i, 3, r);
    const bool takes_a = i->op == FA_PTX_OP_SELP    ? c != 0
                         : i->type[1] == FA_PTX_F32 ? fa_ptx_float(c) >= 0
                                                    : (int32_t)c >= 0;
    fa_ptx_out(i, r,
               i->op == FA_PTX_OP_PRMT ? fa_ptx_prmt(i, a, b, c) : fa_ptx_fit(takes_a ? a : b, fa_ptx_type_of(i, 0)));
}

bool fa_ptx_scalar(const fa_ptx_instr *i, uint64_t *r, unsigned *carry, const char **why)
{
    switch ((fa_ptx_family)i->family) {
    case FA_PTX_MOVE:
        move_family(i, r);
        return true;
    case FA_PTX_INTEGER:
        *why = "integer division by zero";
        return fa_ptx_integer(i, r, carry);
    case FA_PTX_REAL:
        fa_ptx_real(i, r);
        return true;
    case FA_PTX_BITS:
        fa_ptx_bits(i, r);
        return true;
    case FA_PTX_COMPARE:
        compare(i, r);
        return true;
    default:
        fa_ptx_convert(i, r);
        return true;
    }
}
