#include "ptx/integer.h"

#include "ptx/formats.h"

typedef unsigned __int128 wide;

static bool is_signed(const fa_ptx_instr *i, int at) { return fa_ptx_type_of(i, at)->kind == FA_PTX_S; }

/* The product of two numbers of the type, in 128 bits. */
static wide product(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    return is_signed(i, 0) ? (wide)((__int128)(int64_t)a * (int64_t)b) : (wide)a * b;
}

static uint64_t pick_product(const fa_ptx_instr *i, wide p)
{
    const unsigned bits = fa_ptx_type_of(i, 0)->bits;
    return fa_ptx_has(i, FA_PTX_W_HI) ? (uint64_t)(p >> bits) : (uint64_t)p;
}

static uint64_t multiply_24(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    int64_t p;
    if (is_signed(i, 0))
        p = ((int64_t)(a << 40) >> 40) * ((int64_t)(b << 40) >> 40);
    else
        p = (int64_t)((a & 0xffffff) * (b & 0xffffff));
    return fa_ptx_has(i, FA_PTX_W_HI) ? (uint64_t)(p >> 16) : (uint64_t)p;
}

static uint64_t smaller(const fa_ptx_instr *i, uint64_t a, uint64_t b, bool larger)
{
    const bool less = is_signed(i, 0) ? (int64_t)a < (int64_t)b : a < b;
    return less != larger ? a : b;
}

static uint64_t divide(const fa_ptx_instr *i, uint64_t a, uint64_t b)
{
    const bool rest = i->op == FA_PTX_OP_REM;
    if (!is_signed(i, 0))
        return rest ? a % b : a / b;
    if ((int64_t)b == -1) /* the smallest number by -1 overflows */
        return rest ? 0 : 0 - a;
    return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static uint64_t clamp_32(int64_t x) { return (uint64_t)(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x); }

/* add, sub, addc, subc and their condition code */
static uint64_t sum(const fa_ptx_instr *i, uint64_t a, uint64_t b, unsigned *carry)
{
    const bool minus = i->op == FA_PTX_OP_SUB || i->op == FA_PTX_OP_SUBC;
    const uint64_t mask = fa_ptx_mask(fa_ptx_type_of(i, 0)->bits);
    const unsigned in = i->op == FA_PTX_OP_ADDC || i->op == FA_PTX_OP_SUBC ? *carry : 0;
    if (fa_ptx_has(i, FA_PTX_W_SAT) && fa_ptx_type_of(i, 0)->bits == 32)
        return clamp_32(minus ? (int64_t)a - (int64_t)b : (int64_t)a + (int64_t)b);
    const wide x = a & mask, y = b & mask, full = minus ? x - y - in : x + y + in;
    if (fa_ptx_has(i, FA_PTX_W_CC))
        *carry = (full & ~(wide)mask) != 0;
    return (uint64_t)full;
}

/* mad, madc and their condition code */
static uint64_t product_and(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c, unsigned *carry)
{
    const uint64_t picked = pick_product(i, product(i, a, b)), mask = fa_ptx_mask(fa_ptx_type_of(i, 0)->bits);
    if (fa_ptx_has(i, FA_PTX_W_SAT))
        return clamp_32((int64_t)fa_ptx_fit(picked, fa_ptx_type_of(i, 0)) + (int64_t)c);
    const wide full = (wide)(picked & mask) + (c & mask) + (i->op == FA_PTX_OP_MADC ? *carry : 0);
    if (fa_ptx_has(i, FA_PTX_W_CC))
        *carry = (full & ~(wide)mask) != 0;
    return fa_ptx_has(i, FA_PTX_W_WIDE) ? picked + c : (uint64_t)full;
}

static uint64_t dot(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c)
{
    const bool pairs = i->op == FA_PTX_OP_DP2A;
    const unsigned base = pairs && fa_ptx_has(i, FA_PTX_W_HI) ? 16 : 0;
    for (unsigned k = 0; k < (pairs ? 2 : 4); k++) {
        const uint64_t x = pairs ? a >> (16 * k) & 0xffff : a >> (8 * k) & 0xff, y = b >> (base + 8 * k) & 0xff;
        const int64_t xs = !is_signed(i, 0) ? (int64_t)x : pairs ? (int16_t)x : (int8_t)x;
        const int64_t ys = is_signed(i, 1) ? (int8_t)y : (int64_t)y;
        c += (uint64_t)(xs * ys);
    }
    return c;
}

static uint64_t compute(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c, unsigned *carry)
{
    switch (i->op) {
    case FA_PTX_OP_ADD:
    case FA_PTX_OP_SUB:
    case FA_PTX_OP_ADDC:
    case FA_PTX_OP_SUBC:
        return sum(i, a, b, carry);
        FA_PTX_ON(MUL, pick_product(i, product(i, a, b)));
    case FA_PTX_OP_MAD:
    case FA_PTX_OP_MADC:
        return product_and(i, a, b, c, carry);
        FA_PTX_ON(MUL24, multiply_24(i, a, b));
        FA_PTX_ON(MAD24, multiply_24(i, a, b) + c);
        FA_PTX_ON(SAD, smaller(i, a, b, true) - smaller(i, a, b, false) + c);
    case FA_PTX_OP_DIV:
    case FA_PTX_OP_REM:
        return divide(i, a, b);
        FA_PTX_ON(ABS, (int64_t)a < 0 ? 0 - a : a);
        FA_PTX_ON(NEG, 0 - a);
    case FA_PTX_OP_MIN:
    case FA_PTX_OP_MAX:
        return smaller(i, a, b, i->op == FA_PTX_OP_MAX);
    default:
        return dot(i, a, b, c);
    }
}

/* u16x2, s16x2: the same on both halves. */
static uint64_t in_pairs(const fa_ptx_instr *i, uint64_t a, uint64_t b, unsigned *carry)
{
    fa_ptx_instr one = *i;
    uint64_t result = 0;
    one.type[0] = (uint8_t)fa_ptx_element(i->type[0]);
    const fa_ptx_type_info *type = &fa_ptx_types[one.type[0]];
    for (unsigned shift = 0; shift < 32; shift += 16)
        result |= (compute(&one, fa_ptx_fit(a >> shift, type), fa_ptx_fit(b >> shift, type), 0, carry) & 0xffff)
                  << shift;
    return result;
}

bool fa_ptx_integer(const fa_ptx_instr *i, uint64_t *r, unsigned *carry)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const bool doubled = fa_ptx_has(i, FA_PTX_W_WIDE);
    const uint64_t a = fa_ptx_fit(fa_ptx_in(i, 1, r), type), b = i->args > 2 ? fa_ptx_fit(fa_ptx_in(i, 2, r), type) : 0;
    if (type->elements == 2) {
        fa_ptx_out(i, r, in_pairs(i, fa_ptx_in(i, 1, r), fa_ptx_in(i, 2, r), carry));
        return true;
    }
    if ((i->op == FA_PTX_OP_DIV || i->op == FA_PTX_OP_REM) && b == 0)
        return false;
    uint64_t c = i->args > 3 ? fa_ptx_in(i, 3, r) : 0;
    if (!doubled)
        c = fa_ptx_fit(c, type);
    const uint64_t d = compute(i, a, b, c, carry);
    const fa_ptx_type_info twice = {"", (uint8_t)(2 * type->bits), type->kind, 1};
    fa_ptx_out(i, r, fa_ptx_fit(d, doubled ? &twice : type));
    return true;
}

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

static uint64_t combine_bits(const fa_ptx_instr *i, const uint64_t *r, uint64_t a, uint64_t b)
{
    const uint64_t c = i->args > 3 ? fa_ptx_in(i, 3, r) : 0;
    switch (i->op) {
        FA_PTX_ON(AND, a & b);
        FA_PTX_ON(OR, a | b);
        FA_PTX_ON(XOR, a ^ b);
        FA_PTX_ON(NOT, ~a);
        FA_PTX_ON(CNOT, a == 0);
        FA_PTX_ON(LOP3, lop3(a, b, c, fa_ptx_in(i, 4, r)));
    case FA_PTX_OP_SHL:
    case FA_PTX_OP_SHR:
        return shift(i, a, b);
        FA_PTX_ON(SHF, funnel(i, a, b, c));
        FA_PTX_ON(BFE, extract(i, a, b, c));
        FA_PTX_ON(BFI, insert(i, a, b, c, fa_ptx_in(i, 4, r)));
        FA_PTX_ON(POPC, (unsigned)__builtin_popcountll(a));
        FA_PTX_ON(CLZ, leading_zeros(a, fa_ptx_type_of(i, 0)->bits));
        FA_PTX_ON(BFIND, leading_bit(i, a));
        FA_PTX_ON(BMSK, bit_mask(i, a, b));
        FA_PTX_ON(SZEXT, extend(i, a, b & 0xffffffff));
        FA_PTX_ON(FNS, nth_one((uint32_t)a, (uint32_t)b, (int32_t)c));
    default:
        return reverse(a, fa_ptx_type_of(i, 0)->bits);
    }
}

void fa_ptx_bits(const fa_ptx_instr *i, uint64_t *r)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const bool count = i->op == FA_PTX_OP_SHL || i->op == FA_PTX_OP_SHR || i->op == FA_PTX_OP_BFE;
    const uint64_t a = fa_ptx_fit(fa_ptx_in(i, 1, r), type), more = i->args > 2 ? fa_ptx_in(i, 2, r) : 0;
    const uint64_t d = fa_ptx_fit(combine_bits(i, r, a, count ? more : fa_ptx_fit(more, type)), type);
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
    return fa_ptx_has(i, FA_PTX_W_F4E)    ? n + k
           : fa_ptx_has(i, FA_PTX_W_B4E)  ? ((n - k) & 7)
           : fa_ptx_has(i, FA_PTX_W_RC8)  ? n
           : fa_ptx_has(i, FA_PTX_W_ECL)  ? (k > n ? k : n)
           : fa_ptx_has(i, FA_PTX_W_ECR)  ? (k < n ? k : n)
           : fa_ptx_has(i, FA_PTX_W_RC16) ? ((n & 1) * 2 + (k & 1))
                                          : (c >> (4 * k) & 15);
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
