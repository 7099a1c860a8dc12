/* Integers: arithmetic, logic, shifts, bit fields, comparisons, carries. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

#define TWO(name, text) FUNCTION(unsigned, "=r", name, text " %0, %1, %2;", (unsigned a, unsigned b), "r"(a), "r"(b))
#define THREE(name, text)                                                                                         \
    FUNCTION(unsigned, "=r", name, text " %0, %1, %2, %3;", (unsigned a, unsigned b, unsigned c), "r"(a), "r"(b), \
             "r"(c))
TWO(add_u, "add.u32")
TWO(add_sat, "add.sat.s32")
TWO(sub_s, "sub.s32")
TWO(mul_lo, "mul.lo.u32")
TWO(mul_hi_u, "mul.hi.u32")
TWO(mul_hi_s, "mul.hi.s32")
TWO(mul_24, "mul24.lo.u32")
TWO(div_s, "div.s32")
TWO(rem_u, "rem.u32")
TWO(min_s, "min.s32")
TWO(max_u, "max.u32")
TWO(and_b, "and.b32")
TWO(or_b, "or.b32")
TWO(xor_b, "xor.b32")
TWO(shl_b, "shl.b32")
TWO(shr_s, "shr.s32")
TWO(shr_u, "shr.u32")
THREE(mad_lo, "mad.lo.u32")
THREE(mad_hi, "mad.hi.s32")
THREE(sad_s, "sad.s32")
THREE(shf_l, "shf.l.wrap.b32")
THREE(shf_r, "shf.r.clamp.b32")
THREE(prmt, "prmt.b32")
THREE(bfe_u, "bfe.u32")
THREE(bfe_s, "bfe.s32")
THREE(dp4a, "dp4a.u32.s32")

__device__ unsigned bits_of(unsigned a)
{
    unsigned ones, zeros, back, first, inverse;
    asm("popc.b32 %0, %5;\n\tclz.b32 %1, %5;\n\tbrev.b32 %2, %5;\n\tbfind.s32 %3, %5;\n\tnot.b32 %4, %5;"
        : "=r"(ones), "=r"(zeros), "=r"(back), "=r"(first), "=r"(inverse)
        : "r"(a));
    return ones ^ zeros << 6 ^ back ^ first * 5 ^ inverse * 3;
}

__device__ unsigned long long wide(unsigned a, unsigned b, unsigned long long c)
{
    unsigned long long d, e;
    asm("mad.wide.u32 %0, %2, %3, %4;\n\tmul.wide.s32 %1, %2, %3;" : "=l"(d), "=l"(e) : "r"(a), "r"(b), "l"(c));
    return d ^ e << 1;
}

/* a sum of 128 bits by carries */
__device__ unsigned carries(unsigned a, unsigned b)
{
    unsigned lo, hi;
    asm("{\n\t"
        ".reg .u32 t;\n\t"
        "add.cc.u32 %0, %2, %3;\n\t"
        "addc.u32 %1, %2, 0;\n\t"
        "sub.cc.u32 t, %2, %3;\n\t"
        "subc.u32 %1, %1, 0;\n\t"
        "}"
        : "=r"(lo), "=r"(hi)
        : "r"(a), "r"(b));
    return lo ^ hi * 7;
}

/* a loop and both kinds of guards */
__device__ unsigned powers(unsigned a)
{
    unsigned d;
    asm("{\n\t"
        ".reg .pred p, q;\n\t"
        ".reg .u32 i, x<2>;\n\t"
        "mov.u32 %0, 1;\n\t"
        "and.b32 i, %1, 7;\n\t"
        "again:\n\t"
        "setp.ne.u32 p|q, i, 0;\n\t"
        "@p mul.lo.u32 %0, %0, 3;\n\t"
        "@!p add.u32 %0, %0, 1; // once\n\t"
        "@q bra done;\n\t"
        "sub.u32 i, i, 1;\n\t"
        "bra.uni again;\n\t"
        "done:\n\t"
        "mov.u32 x1, %%tid.x; /* reads */\n\t"
        "mad.lo.u32 %0, x1, 0x10000, %0;\n\t"
        "}"
        : "=r"(d)
        : "r"(a));
    return d;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (blockIdx.x > 0)
        return;
    for (unsigned i = threadIdx.x; i < 256; i += 64) {
        const unsigned a = mixed(3 * i), b = mixed(3 * i + 1), c = mixed(3 * i + 2);
        const int sa = static_cast<int>(a), sb = static_cast<int>(b);
        EXPECT(add_u(a, b) == a + b && sub_s(a, b) == a - b && mul_lo(a, b) == a * b);
        EXPECT(div_s(a, b >> 16 | 1) == static_cast<unsigned>(sa / static_cast<int>(b >> 16 | 1)));
        EXPECT(rem_u(a, b | 1) == a % (b | 1));
        EXPECT(min_s(a, b) == static_cast<unsigned>(sa < sb ? sa : sb) && max_u(a, b) == (a > b ? a : b));
        EXPECT(and_b(a, b) == (a & b) && or_b(a, b) == (a | b) && xor_b(a, b) == (a ^ b));
        EXPECT(shl_b(a, b % 32) == a << b % 32 && shl_b(a, 32) == 0 && shr_s(a, 99) == (sa < 0 ? ~0u : 0u));
        EXPECT(shr_u(a, b % 32) == a >> b % 32 && mad_lo(a, b, c) == a * b + c);
        EXPECT(mul_hi_u(a, b) == static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32));
        put(p, i, add_sat(a, b) ^ mul_hi_s(a, b) ^ mul_24(a, b));
        put(p, 256 + i, mad_hi(a, b, c) ^ sad_s(a, b, c) ^ dp4a(a, b, c));
        put(p, 512 + i, shf_l(a, b, c) ^ shf_r(a, b, c % 40) ^ prmt(a, b, c));
        put(p, 768 + i, bfe_u(a, b % 40, c % 40) ^ bfe_s(a, b % 40, c % 40) << 1);
        put(p, 1024 + i, bits_of(a) ^ carries(a, b));
        put(p, 1280 + i, static_cast<unsigned>(wide(a, b, c) >> 13) ^ powers(a));
        unsigned x, y, z;
        asm("lop3.b32 %0, %3, %4, %5, 0x96;\n\tlop3.b32 %1, %3, %4, %5, 0xe8;\n\tbfi.b32 %2, %3, %4, 5, 9;"
            : "=r"(x), "=r"(y), "=r"(z)
            : "r"(a), "r"(b), "r"(c));
        EXPECT(x == (a ^ b ^ c) && y == ((a & b) | (b & c) | (a & c)));
        EXPECT(z == ((b & ~(0x1ffu << 5)) | (a & 0x1ff) << 5));
        put(p, 1536 + i, z);
        unsigned low, high, loops;
        asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, 0;"
            : "=r"(low), "=r"(high)
            : "r"(a), "r"(b), "r"(c));
        EXPECT((static_cast<unsigned long long>(high) << 32 | low) == static_cast<unsigned long long>(a) * b + c);
        asm("bmsk.clamp.b32 %0, %3, %4;\n\tbmsk.wrap.b32 %1, %3, %4;\n\tfns.b32 %2, %5, %3, %6;"
            : "=r"(x), "=r"(y), "=r"(z)
            : "r"(b % 40), "r"(c % 40), "r"(a), "r"(static_cast<int>(c % 7) - 3));
        put(p, 1792 + i, x ^ y ^ z);
        EXPECT(y == (c % 40 % 32 == 0 ? 0 : ~0u >> (32 - c % 40 % 32) << b % 40 % 32));
        asm("szext.clamp.s32 %0, %2, %3;\n\tszext.wrap.u32 %1, %2, %3;" : "=r"(x), "=r"(y) : "r"(a), "r"(c % 40));
        EXPECT(y == (c % 40 % 32 == 0 ? 0 : a & ~0u >> (32 - c % 40 % 32)));
        EXPECT(x == (c % 40 >= 32 ? a : c % 40 == 0 ? 0 : static_cast<unsigned>(sa << (32 - c % 40) >> (32 - c % 40))));
        asm("{\n\t.reg .pred more;\n\tmov.u32 %0, 0;\nAGAIN_%=:\n\tadd.u32 %0, %0, 1;\n\t"
            "setp.lt.u32 more, %0, %1;\n\t@more bra AGAIN_%=;\n\t}"
            : "=&r"(loops)
            : "r"(i));
        EXPECT(loops == (i == 0 ? 1 : i));
    }
}
