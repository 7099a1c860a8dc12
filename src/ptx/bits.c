#include "ptx/bits.h"

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
    uint64_t d = 0;
    for (int k = 0; k < 8; k++)
        if (table >> k & 1)
            d |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return d & 0xffffffff;
}

static uint64_t shift(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const bool over = (b & 0xffffffff) >= type->bits;
    if (i->op == FA_PTX_OP_SHL)
        return over ? 0 : a << b;
    if (type->kind == FA_PTX_S)
        return (uint64_t)((int64_t)a >> (over ? 63 : b));
    return over ? 0 : a >> b;
}

static uint64_t funnel(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t both = (b & 0xffffffff) << 32 | (a & 0xffffffff);
    const unsigned by = fa_ptx_has(i, FA_PTX_W_CLAMP) ? ((uint32_t)c > 32 ? 32 : (unsigned)c) : (unsigned)(c & 31);
    return fa_ptx_has(i, FA_PTX_W_L) ? (both << by) >> 32 : (both >> by) & 0xffffffff;
}

static uint64_t extract(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const unsigned from = b & 0xff, length = c & 0xff, top = type->bits - 1u;
    uint64_t d = from > top ? 0 : (a & fa_ptx_mask(type->bits)) >> from & fa_ptx_mask(length);
    if (type->kind == FA_PTX_S && length > 0) {
        const unsigned last = from + length - 1 < top ? from + length - 1 : top; /* where the sign stands */
        if (a >> last & 1)
            d |= last < from ? ~(uint64_t)0 : ~fa_ptx_mask(last - from + 1);
    }
    return d;
}

static uint64_t insert(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const unsigned from = c & 0xff, length = d & 0xff, bits = fa_ptx_type_of(i, 0)->bits;
    if (from >= bits || length == 0)
        return b;
    const uint64_t mask = fa_ptx_mask(length) << from;
    return (b & ~mask) | (a << from & mask);
}

static uint64_t leading_zeros(uint64_t a, unsigned bits)
{
    return a == 0 ? bits : (unsigned)__builtin_clzll(a) - (64 - bits);
}

static uint64_t leading_bit(const fa_ptx_instr *i, uint64_t a)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    if (type->kind == FA_PTX_S && (int64_t)a < 0)
        a = ~a;
    a &= fa_ptx_mask(type->bits);
    if (a == 0)
        return 0xffffffff;
    const uint64_t zeros = leading_zeros(a, type->bits);
    return fa_ptx_has(i, FA_PTX_W_SHIFTAMT) ? zeros : type->bits - 1 - zeros;
}

static uint64_t bit_mask(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    const bool clamp = fa_ptx_has(i, FA_PTX_W_CLAMP);
    if (clamp && a >= 32)
        return 0;
    const unsigned count = clamp && b >= 32 ? 32 : b & 31;
    return fa_ptx_mask(count) << (a & 31);
}

static uint64_t extend(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    const unsigned bits = fa_ptx_has(i, FA_PTX_W_CLAMP) && b >= 32 ? 32 : b & 31;
    const uint64_t low = a & fa_ptx_mask(bits);
    const bool minus = fa_ptx_type_of(i, 0)->kind == FA_PTX_S && bits > 0 && low >> (bits - 1) & 1;
    return minus ? low | ~fa_ptx_mask(bits) : low;
}

/* fns: c = 0 asks for bit b itself, c < 0 goes down. */
static uint64_t nth_one(uint32_t a, uint32_t b, int32_t c)
{
    const int step = c < 0 ? -1 : 1;
    int32_t left = c == 0 ? 1 : c * step;
    for (int64_t at = b; at >= 0 && at < 32; at += step) {
        left -= a >> at & 1;
        if (left == 0)
            return (uint64_t)at;
        if (c == 0)
            break;
    }
    return 0xffffffff;
}

static uint64_t reverse(uint64_t a, unsigned bits)
{
    uint64_t d = 0;
    for (unsigned k = 0; k < bits; k++)
        d |= (a >> k & 1) << (bits - 1 - k);
    return d;
}

static uint64_t compute(const fa_ptx_instr *i, const uint64_t *r, uint64_t a, uint64_t b)
{
    const uint64_t c = i->args > 3 ? fa_ptx_in(i, 3, r) : 0;
    switch (i->op) {
    case FA_PTX_OP_AND:
        return a & b;
    case FA_PTX_OP_OR:
        return a | b;
    case FA_PTX_OP_XOR:
        return a ^ b;
    case FA_PTX_OP_NOT:
        return ~a;
    case FA_PTX_OP_CNOT:
        return a == 0;
    case FA_PTX_OP_LOP3:
        return lop3(a, b, c, fa_ptx_in(i, 4, r));
    case FA_PTX_OP_SHL:
    case FA_PTX_OP_SHR:
        return shift(i, a, b);
    case FA_PTX_OP_SHF:
        return funnel(i, a, b, c);
    case FA_PTX_OP_BFE:
        return extract(i, a, b, c);
    case FA_PTX_OP_BFI:
        return insert(i, a, b, c, fa_ptx_in(i, 4, r));
    case FA_PTX_OP_POPC:
        return (unsigned)__builtin_popcountll(a);
    case FA_PTX_OP_CLZ:
        return leading_zeros(a, fa_ptx_type_of(i, 0)->bits);
    case FA_PTX_OP_BFIND:
        return leading_bit(i, a);
    case FA_PTX_OP_BMSK:
        return bit_mask(i, a, b);
    case FA_PTX_OP_SZEXT:
        return extend(i, a, b & 0xffffffff);
    case FA_PTX_OP_FNS:
        return nth_one((uint32_t)a, (uint32_t)b, (int32_t)c);
    default:
        return reverse(a, fa_ptx_type_of(i, 0)->bits);
    }
}

void fa_ptx_bits(const fa_ptx_instr *i, uint64_t *r)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const bool count = i->op == FA_PTX_OP_SHL || i->op == FA_PTX_OP_SHR || i->op == FA_PTX_OP_BFE;
    const uint64_t a = fa_ptx_fit(fa_ptx_in(i, 1, r), type), more = i->args > 2 ? fa_ptx_in(i, 2, r) : 0;
    const uint64_t d = fa_ptx_fit(compute(i, r, a, count ? more : fa_ptx_fit(more, type)), type);
    fa_ptx_out(i, r, d);
    if (i->op == FA_PTX_OP_LOP3 && i->args == 6) { /* lop3.and d|p, a, b, c, immLut, q */
        const bool q = fa_ptx_in(i, 5, r) != 0, p = d != 0;
        fa_ptx_write(&i->value[1], r, fa_ptx_has(i, FA_PTX_W_AND_) ? p && q : p || q);
    }
}

/* The nibble of c for each byte of the result: which of the eight bytes, and with 8 its sign in every bit. */
static unsigned selector(const fa_ptx_instr *i, unsigned c, unsigned k)
{
    const unsigned n = c & 3;
    if (fa_ptx_has(i, FA_PTX_W_F4E))
        return n + k;
    if (fa_ptx_has(i, FA_PTX_W_B4E))
        return (n - k) & 7;
    if (fa_ptx_has(i, FA_PTX_W_RC8))
        return n;
    if (fa_ptx_has(i, FA_PTX_W_ECL))
        return k > n ? k : n;
    if (fa_ptx_has(i, FA_PTX_W_ECR))
        return k < n ? k : n;
    if (fa_ptx_has(i, FA_PTX_W_RC16))
        return (n & 1) * 2 + (k & 1);
    return c >> (4 * k) & 15;
}

uint32_t fa_ptx_prmt(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t both = (b & 0xffffffff) << 32 | (a & 0xffffffff);
    uint32_t d = 0;
    for (unsigned k = 0; k < 4; k++) {
        const unsigned pick = selector(i, (unsigned)c, k);
        uint32_t byte = both >> (8 * (pick & 7)) & 0xff;
        if (pick & 8)
            byte = byte & 0x80 ? 0xff : 0;
        d |= byte << (8 * k);
    }
    return d;
}
