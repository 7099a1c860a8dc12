/* The parser of inline PTX, the meaning of scalar instructions, and the pass that finds asm statements in C++. */
#include "compile/asm.h"
#include "ptx/formats.h"
#include "ptx/parse.h"
#include "ptx/scalar.h"
#include "unit.h"

/* %0 after running the text on the operands. Only scalar instructions and branches. */
static uint64_t run(const char *text, const uint64_t values[4])
{
    fa_ptx_error error;
    fa_ptx_program *p = fa_ptx_parse(text, 4, &error);
    if (p == NULL)
        fail_msg("%s: %s (%s)", text, error.why, error.statement);
    uint64_t *r = calloc((size_t)p->registers + 1, sizeof *r);
    unsigned carry = 0;
    const char *why = "";
    memcpy(r, values, 4 * sizeof *r);
    for (int at = 0; at < p->count;) {
        const fa_ptx_instr *i = &p->instr[at++];
        if (i->guard >= 0 && (r[i->guard] != 0) == i->guard_negated)
            continue;
        if (i->op == FA_PTX_OP_BRA)
            at = i->target;
        else
            assert_true(fa_ptx_scalar(i, r, &carry, &why));
    }
    const uint64_t first = r[0];
    free(r);
    fa_ptx_free(p);
    return first;
}

typedef struct row {
    const char *text;
    uint64_t a, b, c, want;
} row;

static void check_rows(const row *rows, size_t count)
{
    for (const row *r = rows; r < rows + count; r++) {
        const uint64_t got = run(r->text, (uint64_t[]){0, r->a, r->b, r->c});
        if (got != r->want)
            fail_msg("%s: got 0x%llx, want 0x%llx", r->text, (unsigned long long)got, (unsigned long long)r->want);
    }
}

TEST(scalars)
{
    static const row rows[] = {
        {"add.u32 %0, %1, %2;", 0xffffffff, 2, 0, 1},
        {"add.s16 %0, %1, -3;", 1, 0, 0, (uint64_t)-2},
        {"add.sat.s32 %0, %1, %2;", 0x7fffffff, 5, 0, 0x7fffffff},
        {"add.u16x2 %0, %1, %2;", 0xffff0001, 0x00010002, 0, 0x00000003},
        {"sub.u64 %0, %1, %2;", 1, 2, 0, ~(uint64_t)0},
        {"mul.lo.u32 %0, %1, %2;", 0x10001, 0x10001, 0, 0x20001},
        {"mul.hi.u32 %0, %1, %2;", 0x80000000, 6, 0, 3},
        {"mul.hi.s32 %0, %1, %2;", 0x80000000, 6, 0, (uint64_t)-3},
        {"mul.hi.u64 %0, %1, %2;", (uint64_t)1 << 63, 6, 0, 3},
        {"mul.wide.s32 %0, %1, %2;", 0xffffffff, 5, 0, (uint64_t)-5},
        {"mul.wide.u16 %0, %1, %2;", 0xffff, 0xffff, 0, 0xfffe0001},
        {"mad.lo.s32 %0, %1, %2, %3;", 3, 4, 0xfffffff0, (uint64_t)-4},
        {"mad.wide.u32 %0, %1, %2, %3;", 0xffffffff, 2, (uint64_t)1 << 40, 0x101fffffffe},
        {"div.s32 %0, %1, %2;", (uint32_t)-7, 2, 0, (uint64_t)-3},
        {"rem.s32 %0, %1, %2;", (uint32_t)-7, 2, 0, (uint64_t)-1},
        {"abs.s32 %0, %1;", (uint32_t)-7, 0, 0, 7},
        {"min.s32 %0, %1, %2;", (uint32_t)-7, 2, 0, (uint64_t)-7},
        {"min.u32 %0, %1, %2;", (uint32_t)-7, 2, 0, 2},
        {"sad.u32 %0, %1, %2, %3;", 3, 10, 100, 107},
        {"dp4a.s32.s32 %0, %1, %2, %3;", 0xff020304, 0x01010101, 10, 18},
        {"and.b32 %0, %1, 0xff;", 0x1234, 0, 0, 0x34},
        {"not.b16 %0, %1;", 0x00ff, 0, 0, 0xff00},
        {"shl.b32 %0, %1, %2;", 3, 32, 0, 0},
        {"shr.s32 %0, %1, %2;", 0x80000000, 40, 0, ~(uint64_t)0},
        {"shr.u32 %0, %1, 4;", 0x80000000, 0, 0, 0x08000000},
        {"shf.l.wrap.b32 %0, %1, %2, %3;", 0x80000000, 1, 33, 3},
        {"shf.r.clamp.b32 %0, %1, %2, %3;", 7, 5, 40, 5},
        {"lop3.b32 %0, %1, %2, %3, 0x96;", 0xc, 0xa, 0x6, 0},
        {"lop3.b32 %0, %1, %2, %3, 0xea;", 0xf0, 0x3c, 1, 0x31},
        {"prmt.b32 %0, %1, %2, 0x5410;", 0x33221100, 0x77665544, 0, 0x55441100},
        {"prmt.b32 %0, %1, %2, 0x000b;", 0x80000000, 0, 0, 0x000000ff},
        {"bfe.u32 %0, %1, 8, 4;", 0xabcd, 0, 0, 0xb},
        {"bfe.s32 %0, %1, 8, 4;", 0xabcd, 0, 0, (uint64_t)-5},
        {"bfi.b32 %0, %1, %2, 4, 8;", 0xff, 0, 0, 0xff0},
        {"popc.b32 %0, %1;", 0xf0f, 0, 0, 8},
        {"clz.b32 %0, %1;", 1, 0, 0, 31},
        {"bfind.u32 %0, %1;", 0x100, 0, 0, 8},
        {"brev.b32 %0, %1;", 1, 0, 0, 0x80000000},
        {"selp.b32 %0, %1, %2, %3;", 5, 6, 0, 6},
        {"mov.b32 %0, {%1, %2};", 0x1111, 0x2222, 0, 0x22221111},
        {"{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }", 0x12345678, 0, 0, 0x56781234},
        {"{ .reg .u32 x<3>; mov.u32 x2, 7; add.u32 %0, x2, %1; }", 1, 0, 0, 8},
        {"{ .reg .u32 %%r1; mov.u32 %%r1, 0b101; mov.u32 %0, %%r1; }", 0, 0, 0, 5},
        {"{ .reg .pred p; setp.gt.s32 p, %1, %2; selp.u32 %0, 1, 0, p; }", 1, 0xffffffff, 0, 1},
        {"{ .reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, 1; @q mov.u32 %0, 3; @p mov.u32 %0, 4; }", 1, 2, 0, 4},
        {"{ .reg .pred p; setp.eq.u32 p, %1, 0; @!p mov.u32 %0, 9; @p mov.u32 %0, 8; }", 1, 0, 0, 9},
        {"{ .reg .pred p; mov.u32 %0, 0; L: add.u32 %0, %0, 2; setp.lt.u32 p, %0, %1; @p bra L; }", 9, 0, 0, 10},
        {"{ .reg.u32 x; mov.u32 x, WARP_SZ; add.u32 %0, x, %1; }", 1, 0, 0, 33},
        {"{ .reg .u32 c; add.cc.u32 c, %1, %2; addc.u32 %0, 0, 0; }", 0xffffffff, 1, 0, 1},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(floats)
{
    static const row rows[] = {
        {"add.f32 %0, %1, 0f3f800000;", 0x40000000, 0, 0, 0x40400000},
        {"mul.f32 %0, %1, 0.5;", 0x40000000, 0, 0, 0x3f800000},
        {"add.rz.f32 %0, %1, %2;", 0x3f800000, 0x33ffffff, 0, 0x3f800000},
        {"add.rp.f32 %0, %1, %2;", 0x3f800000, 0x33000000, 0, 0x3f800001},
        {"add.ftz.f32 %0, %1, %2;", 1, 1, 0, 0},
        {"fma.rn.f32 %0, %1, %2, %3;", 0x40400000, 0x40400000, 0xc1100000, 0},
        {"max.f32 %0, %1, %2;", 0x7fc00000, 0x3f800000, 0, 0x3f800000},
        {"max.NaN.f32 %0, %1, %2;", 0x7fc00000, 0x3f800000, 0, 0x7fffffff},
        {"ex2.approx.ftz.f32 %0, %1;", 0xff800000, 0, 0, 0},
        {"rcp.approx.f32 %0, %1;", 0x40800000, 0, 0, 0x3e800000},
        {"neg.f16x2 %0, %1;", 0x3c00bc00, 0, 0, 0xbc003c00},
        {"add.f16x2 %0, %1, %2;", 0x3c003c00, 0x40003c00, 0, 0x42004000},
        {"fma.rn.f16 %0, %1, %2, %3;", 0x3c01, 0x3c01, 0xbc02, 0x0010},
        {"mul.bf16x2 %0, %1, %2;", 0x40004040, 0x40004040, 0, 0x40804110},
        {"add.f64 %0, %1, 1.5;", 0x3ff0000000000000, 0, 0, 0x4004000000000000},
        {"cvt.rn.f16x2.f32 %0, %1, %2;", 0x40000000, 0x3f800000, 0, 0x40003c00},
        {"cvt.rz.f16.f32 %0, %1;", 0x477fffff, 0, 0, 0x7bff},
        {"cvt.rn.f16.f32 %0, %1;", 0x477fffff, 0, 0, 0x7c00},
        {"cvt.rn.bf16.f32 %0, %1;", 0x3f808000, 0, 0, 0x3f80},
        {"cvt.rna.tf32.f32 %0, %1;", 0x3f801000, 0, 0, 0x3f802000},
        {"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", 0x43fa0000, 0x3f800000, 0, 0x7e38},
        {"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;", 0x3f800000, 0xc0000000, 0, 0x3cc0},
        {"cvt.rn.f16x2.e4m3x2 %0, %1;", 0x38b8, 0, 0, 0x3c00bc00},
        {"cvt.f32.f16 %0, %1;", 0x0001, 0, 0, 0x33800000},
        {"cvt.rzi.s32.f32 %0, %1;", 0xc02ccccd, 0, 0, (uint64_t)-2},
        {"cvt.rni.u32.f32 %0, %1;", 0xc0000000, 0, 0, 0},
        {"cvt.rni.s32.f32 %0, %1;", 0x7f800000, 0, 0, 0x7fffffff},
        {"cvt.rn.f32.s32 %0, %1;", 0xffffffff, 0, 0, 0xbf800000},
        {"cvt.rn.f32.u64 %0, %1;", ~(uint64_t)0, 0, 0, 0x5f800000},
        {"cvt.rz.f32.u32 %0, %1;", 0xffffffff, 0, 0, 0x4f7fffff},
        {"cvt.sat.u8.s32 %0, %1;", 0x1ff, 0, 0, 0xff},
        {"cvt.s32.s8 %0, %1;", 0x80, 0, 0, (uint64_t)-128},
        {"cvt.rmi.f32.f32 %0, %1;", 0xbfc00000, 0, 0, 0xc0000000},
        {"set.lt.f16x2.f16x2 %0, %1, %2;", 0x3c004000, 0x40003c00, 0, 0x3c000000},
        {"{ .reg .pred p; setp.ltu.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }", 0x7fc00000, 0, 0, 1},
        {"{ .reg .pred p; setp.ge.f32 p, %1, %2; selp.u32 %0, 1, 0, p; }", 0x7fc00000, 0, 0, 0},
        {"{ .reg .pred p; testp.infinite.f32 p, %1; selp.u32 %0, 1, 0, p; }", 0x7f800000, 0, 0, 1},
        {"copysign.f32 %0, %1, %2;", 0xbf800000, 0x40000000, 0, 0xc0000000},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

/* Every half, bfloat and 8-bit float comes back from double as it was. */
TEST(formats_come_back)
{
    static const struct {
        fa_ptx_type type;
        uint32_t count;
    } types[] = {{FA_PTX_F16, 1 << 16}, {FA_PTX_BF16, 1 << 16}, {FA_PTX_E4M3, 256}, {FA_PTX_E5M2, 256}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (uint32_t bits = 0; bits < types[t].count; bits++) {
            const double value = fa_ptx_to_double(bits, types[t].type);
            if (value == value)
                assert_int_equal(fa_ptx_from_double(value, types[t].type, FA_PTX_NEAREST, false), bits);
        }
}

/* Rounding to half agrees with the compiler's own, at every boundary between two halves. */
TEST(halves_round_right)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const double low = fa_ptx_to_double(bits, FA_PTX_F16), high = fa_ptx_to_double(bits + 1, FA_PTX_F16);
        const double middle = bits + 1 < 0x7c00 ? (low + high) / 2 : 65520;
        const _Float16 half = (_Float16)middle;
        uint16_t want;
        memcpy(&want, &half, sizeof want);
        assert_int_equal(fa_ptx_from_double(middle, FA_PTX_F16, FA_PTX_NEAREST, false), want);
        assert_int_equal(fa_ptx_from_double(middle, FA_PTX_F16, FA_PTX_ZERO, false), bits);
        assert_int_equal(fa_ptx_from_double(middle, FA_PTX_F16, FA_PTX_UP, false), bits + 1);
        assert_int_equal(fa_ptx_from_double(-middle, FA_PTX_F16, FA_PTX_UP, false), bits | 0x8000);
    }
}

TEST(refusals)
{
    static const struct {
        const char *text, *why, *statement;
    } rows[] = {
        {"mov.u32 %0, 1; tcgen05.fence::before_thread_sync;", "no such instruction",
         "tcgen05.fence::before_thread_sync"},
        {"add.f32x2 %0, %1, %1;", "add without .f32x2", "add.f32x2 %0, %1, %1"},
        {"add.u32 %0, %1, %7;", "%7: there are 4 operands", "add.u32 %0, %1, %7"},
        {"add.u32 %0, x, %1;", "x is not declared, nor a special register the emulator has", "add.u32 %0, x, %1"},
        {"add.u32 %0, %1;", "add takes 3 to 3 operands", "add.u32 %0, %1"},
        {"bra nowhere;", "no label nowhere in this text", "bra nowhere"},
        {"{ mov.u32 %0, 1;", "'}' is wanted", "mov.u32 %0, 1"},
        {".shared .b32 x;", "no such directive", ".shared .b32 x"},
        {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};", "no such shape and types of mma"},
        {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};",
         "the number of registers is not that of the shape"},
        {"ld.global.v4.u32 {%0, %1}, [%2];", "ld wants as many registers as its vector, and [address]"},
        {"cp.async.bulk.shared.global [%0], [%1], 16, [%2];", "a bulk copy ends at a barrier or in a bulk_group"},
        {"cp.async.bulk.global.shared::cta.bulk_group.multicast::cluster [%0], [%1], 16, %2;",
         "what comes from global memory to shared::cluster is multicast"},
        {"mbarrier.init.shared::cluster.b64 [%0], 1;",
         "a barrier of another block is no operand of init, inval and waits"},
        {"barrier.cluster.sync.aligned;", "barrier.cluster.arrive, .release or .relaxed, or .wait, .acquire"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1}, %2, %3, 1, 1, 1, 0, 0;",
         "the number of accumulators is not that of the shape"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f32.e4m3.e5m2 {%0, %1, %2, %3}, %0, %1, 1, 1, 1;",
         "a product of FP8 is 32 deep, one of 16 bits 16"},
        {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0, %1, %2, %3}, %0, %1, 1, 1, 1, 0, 0;",
         "the number of operands"},
        {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0, %1, %2, %3}, %0, %1, 1, 1, 1;",
         "wgmma without .m64n8k8"},
        {"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %0, %1, %2, 0, 1, 1, 1, 0, 0;",
         "wgmma without .sp"},
        {"cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
         "[%1, {%2, %2, %2, %2}], [%3], {%2, %2};",
         "cp without .im2col"},
        {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%0], [%1], 16, [%2];",
         "a reduction into shared memory is one of integers out of shared memory"},
        {"cp.async.mbarrier.arrive.b64 %0, [%1];", "cp.async.mbarrier.arrive.b64 wants [barrier]"},
        {"st.async.shared::cluster.u32 [%0], %1, [%2];",
         "st.async and red.async go to .shared::cluster and complete on a barrier"},
        {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%0], {%1, %1, %1, %1}, [%2];",
         "st.async and red.async want [to], value, [barrier], of 4 to 16 bytes"},
        {"tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%0], 0;", "tensormap without .swizzle_atomicity"},
        {"tensormap.replace.tile.global.b1024.b32 [%0], 0;", "tensormap.replace.tile wants a field and .b1024"},
        {"tensormap.replace.tile.global_address.global.b1024.b32 [%0], %1;",
         "addresses and strides are .b64, the other fields .b32"},
        {"tensormap.replace.tile.box_dim.global.b1024.b32 [%0], %1;",
         "tensormap.replace wants [map], dimension, value"},
        {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu [%0], [%1], 128;",
         "tensormap.cp_fenceproxy wants [to], [from], 128"},
        {"fence.proxy.tensormap::generic.acquire.gpu;", "the acquire of a tensor map wants [map], 128"},
        {"fence.proxy.tensormap::generic.release;",
         "a fence takes no operand; of tensor maps it is one of release or acquire, with a scope"},
        {"multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];", "no such instruction"},
        {"cvt.rn.f16x2.f32 %0, %1;", "cvt to two elements takes two operands"},
        {"vote.ballot.b32 %0, %1, %2;", "only with .sync"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fa_ptx_error error;
        assert_null(fa_ptx_parse(rows[i].text, 4, &error));
        assert_string_equal(error.why, rows[i].why);
        if (rows[i].statement != NULL)
            assert_string_equal(error.statement, rows[i].statement);
    }
}

TEST(division_by_zero_is_said)
{
    fa_ptx_error error;
    uint64_t r[3] = {0, 1, 0};
    unsigned carry = 0;
    const char *why = "";
    fa_ptx_program *p = fa_ptx_parse("div.u32 %0, %1, %2;", 3, &error);
    assert_non_null(p);
    assert_false(fa_ptx_scalar(&p->instr[0], r, &carry, &why));
    assert_string_equal(why, "integer division by zero");
    fa_ptx_free(p);
}

static void each_is_known(const fa_ptx_row *op, const char *list, const char *what, int (*find)(const char *, size_t))
{
    for (const char *at = list; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        if (length > 0 && find(at, length) < 0)
            fail_msg("%s: %.*s is no %s", op->name, (int)length, at, what);
        at += length + strspn(at + length, " ");
    }
}

TEST(table_is_whole)
{
    for (int i = 0; i < FA_PTX_OPS; i++) {
        const fa_ptx_row *op = &fa_ptx_rows[i];
        assert_int_equal(fa_ptx_find_op(op->name, strlen(op->name)), i);
        each_is_known(op, op->types, "type", fa_ptx_find_type);
        each_is_known(op, op->words, "word", fa_ptx_find_word);
    }
}

/* Statements are found wherever they may stand; strings, labels of declarations and system headers are left alone. */
TEST(statements_are_found)
{
    static const char source[] = "# 1 \"/usr/include/x.h\" 1 3 4\n"
                                 "extern int f(int) __asm__(\"g\"); void h() { __asm__ volatile(\"nop;\"); }\n"
                                 "# 1 \"k.cu\" 2\n"
                                 "extern int f(int) __asm__ (\"\" \"g\");\n"
                                 "const char *s = \"asm volatile(\\\"trap;\\\")\"; int n = 1'000'000;\n"
                                 "void k(unsigned x, unsigned *p) {\n"
                                 "  if (x) asm(\"trap;\"); else asm volatile(R\"(trap;)\");\n"
                                 "  asm volatile(\"mov.u32 %0, %1;\\n\"\n"
                                 "      : \"=r\"(p[(x, 1)])\n"
                                 "      : \"r\"(x)\n"
                                 "      : \"memory\"); asm(\"\" : \"+r\"(x));\n"
                                 "  int line = __LINE__;\n"
                                 "  asm volatile(\"mov.u32 %0, 1;\\n\"\n"
                                 "               \"tcgen05.fence;\" :: \"r\"(x));\n"
                                 "}\n";
    CLEANUP(fa_asm_free) fa_asm_result r = fa_asm_rewrite(source);
    assert_int_equal(r.sites, 5);
    assert_int_equal(r.lack_count, 1);
    assert_string_equal(r.lacks[0].text,
                        "k.cu:11: the emulator does not run this PTX: tcgen05.fence (no such instruction)");
    holds(r.text, "__asm__ volatile(\"nop;\")");
    holds(r.text, "__asm__ (\"\" \"g\")");
    holds(r.text, "\"asm volatile(\\\"trap;\\\")\"");
    holds(r.text, "if (x) fa_emu_ptx([]");
    holds(r.text, "{R\"(trap;)\" , {\"k.cu\", 4}, 0, nullptr}");
    holds(r.text, "fa_emu_ptx_out<'r'>((p[(x, 1)])), fa_emu_ptx_in<'r'>((x)))\n");
    holds(r.text, "fa_emu_ptx_nothing(fa_emu_ptx_inout<'r'>((x)))");
    holds(r.text, "fa_emu_ptx_lacks_0(fa_emu_ptx_in<'r'>((x)))\n;\n}");
    holds(r.text, "extern \"C\" void fa_emu_ptx_lacks_0(...);\n");
    /* as many lines as before, but for the declaration on top */
    int before = 0, after = 0;
    for (const char *c = source; *c != '\0'; c++)
        before += *c == '\n';
    for (const char *c = r.text; *c != '\0'; c++)
        after += *c == '\n';
    assert_int_equal(after, before + 1);
}

/* NAN of <math.h> leaves line markers inside an operand: what follows keeps its line. */
TEST(markers_in_an_operand_keep_the_line)
{
    CLEANUP(fa_asm_free)
    fa_asm_result r = fa_asm_rewrite("# 1 \"k.cu\"\n"
                                     "void k(float f) {\n"
                                     "  asm(\"max.f32 %0, %0, %1;\" : \"+f\"(f) : \"f\"(\n"
                                     "# 2 \"k.cu\" 3 4\n"
                                     "  (__builtin_nanf (\"\"))\n"
                                     "# 2 \"k.cu\"\n"
                                     "  ));\n"
                                     "  asm(\"tcgen05.fence;\");\n"
                                     "}\n");
    assert_int_equal(r.lack_count, 1);
    holds(r.lacks[0].text, "k.cu:3: ");
}

/* As a macro leaves them, which nvcc takes; a directive of a line of its own stays. */
TEST(pragmas_inside_a_line_go)
{
    CLEANUP(fa_asm_free)
    fa_asm_result r = fa_asm_rewrite("#pragma unroll 2\n  f(\"#pragma unroll\"); #pragma unroll 4 for (;;) g();\n"
                                     "  #pragma unroll\n  for (;;) h(); #pragma once\n");
    assert_string_equal(r.text, "#pragma unroll 2\n  f(\"#pragma unroll\");  for (;;) g();\n"
                                "  \n  for (;;) h(); #pragma once\n");
}
