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
    case FA_PTX_OP_MUL:
        return pick_product(i, product(i, a, b));
    case FA_PTX_OP_MAD:
    case FA_PTX_OP_MADC:
        return product_and(i, a, b, c, carry);
    case FA_PTX_OP_MUL24:
        return multiply_24(i, a, b);
    case FA_PTX_OP_MAD24:
        return multiply_24(i, a, b) + c;
    case FA_PTX_OP_SAD:
        return smaller(i, a, b, true) - smaller(i, a, b, false) + c;
    case FA_PTX_OP_DIV:
    case FA_PTX_OP_REM:
        return divide(i, a, b);
    case FA_PTX_OP_ABS:
        return (int64_t)a < 0 ? 0 - a : a;
    case FA_PTX_OP_NEG:
        return 0 - a;
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
