#include "ptx/scalar.h"

#include "ptx/bits.h"
#include "ptx/compare.h"
#include "ptx/convert.h"
#include "ptx/formats.h"
#include "ptx/integer.h"
#include "ptx/real.h"

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

static bool at_least_zero(const fa_ptx_instr *i, uint64_t c)
{
    if (i->type[1] == FA_PTX_F32)
        return fa_ptx_float(c) >= 0;
    return (int32_t)c >= 0;
}

static bool move_family(const fa_ptx_instr *i, uint64_t *r)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    switch (i->op) {
    case FA_PTX_OP_MOV:
        move(i, r);
        return true;
    case FA_PTX_OP_SELP:
        fa_ptx_out(i, r, fa_ptx_fit(fa_ptx_in(i, 3, r) ? fa_ptx_in(i, 1, r) : fa_ptx_in(i, 2, r), type));
        return true;
    case FA_PTX_OP_SLCT:
        fa_ptx_out(i, r,
                   fa_ptx_fit(at_least_zero(i, fa_ptx_in(i, 3, r)) ? fa_ptx_in(i, 1, r) : fa_ptx_in(i, 2, r), type));
        return true;
    default:
        fa_ptx_out(i, r, fa_ptx_prmt(i, fa_ptx_in(i, 1, r), fa_ptx_in(i, 2, r), fa_ptx_in(i, 3, r)));
        return true;
    }
}

bool fa_ptx_scalar(const fa_ptx_instr *i, uint64_t *r, unsigned *carry, const char **why)
{
    switch ((fa_ptx_family)i->family) {
    case FA_PTX_MOVE:
        return move_family(i, r);
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
        fa_ptx_compare(i, r);
        return true;
    default:
        fa_ptx_convert(i, r);
        return true;
    }
}
