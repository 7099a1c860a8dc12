/* The static bound: reading a listing, the linear program, and bounds that can be worked out by hand. */
#include "base/file.h"
#include "base/process.h"
#include "timing/estimate.h"
#include "timing/linear.h"
#include "unit.h"

/* Entry, a loop of one product (4096 operations) with three exponentials, exit. */
static const char LOOP[] = "\t.section\t.text.fa_kernel,\"ax\",@progbits\n"
                           "\t.sectioninfo\t@\"SHI_REGISTERS=128\"\n"
                           "fa_kernel:\n"
                           "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"
                           ".L_x_0:\n"
                           "        /*0010*/                   HMMA.16816.F32 R4, R8, R12, R4 ;\n"
                           "        /*0020*/                   MUFU.EX2 R5, R5 ;\n"
                           "        /*0030*/                   MUFU.EX2 R6, R6 ;\n"
                           "        /*0040*/                   MUFU.EX2 R7, R7 ;\n"
                           "        /*0050*/               @P0 BRA `(.L_x_0) ;\n"
                           "        /*0060*/                   EXIT ;\n"
                           ".L_x_1:\n"
                           "        /*0070*/                   BRA `(.L_x_1);\n";

/* A second path avoids the exponentials and has a dearer product: two half-size instructions. */
static const char TWO_WAYS[] = "\t.section\t.text.fa_kernel,\"ax\",@progbits\n"
                               ".L_x_0:\n"
                               "        /*0010*/              @!P1 BRA `(.L_x_2) ;\n"
                               "        /*0020*/                   HMMA.16816.F32 R4, R8, R12, R4 ;\n"
                               "        /*0030*/                   MUFU.EX2 R5, R5 ;\n"
                               "        /*0040*/                   MUFU.EX2 R6, R6 ;\n"
                               "        /*0050*/                   MUFU.EX2 R7, R7 ;\n"
                               "        /*0060*/                   BRA `(.L_x_3) ;\n"
                               ".L_x_2:\n"
                               "        /*0070*/                   HMMA.1688.F32 R4, R8, R12, R4 ;\n"
                               "        /*0080*/                   LDSM.16.M88.4 R4, [R8] ;\n"
                               "        /*0090*/                   LDSM.16.M88.4 R4, [R8] ;\n"
                               ".L_x_3:\n"
                               "        /*00a0*/               @P0 BRA `(.L_x_0) ;\n"
                               "        /*00b0*/                   EXIT ;\n";

static fa_sass parse(const char *text)
{
    fa_sass sass;
    fa_reason why;
    assert_int_equal(fa_sass_parse(fa_format("%s", text), &sass, &why), FA_PASS);
    return sass;
}

static bool goes_to(const fa_sass *sass, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < sass->block[from].successors; i++)
        if (sass->successor[sass->block[from].first_successor + i] == to)
            return true;
    return false;
}

TEST(test_blocks)
{
    CLEANUP(fa_sass_free) fa_sass sass = parse(LOOP);
    assert_int_equal(sass.instructions, 8);
    assert_int_equal(sass.blocks, 4);
    assert_true(goes_to(&sass, 0, 1) && goes_to(&sass, 1, 1) && goes_to(&sass, 1, 2));
    assert_int_equal(sass.block[1].successors, 2);
    assert_true(sass.block[2].exits);
    assert_int_equal(sass.block[2].successors, 0);
    assert_string_equal(sass.instruction[1].opcode, "HMMA.16816.F32");
    assert_true(sass.instruction[5].predicated);
}

TEST(test_reconvergence_and_calls)
{
    CLEANUP(fa_sass_free)
    fa_sass sass = parse("\t.section\t.text.fa_kernel,\"ax\",@progbits\n"
                         "        /*0000*/                   BSSY B0, `(.L_x_0) ;\n"
                         "        /*0010*/               @P0 BRA `(.L_x_1) ;\n"
                         "        /*0020*/                   CALL.REL.NOINC `(helper) ;\n"
                         "        /*0030*/                   NOP ;\n"
                         ".L_x_1:\n"
                         "        /*0040*/                   BSYNC B0 ;\n"
                         "        /*0050*/                   NOP ;\n"
                         ".L_x_0:\n"
                         "        /*0060*/                   EXIT ;\n"
                         "helper:\n"
                         "        /*0070*/                   RET.REL.NODEC R2 `(fa_kernel) ;\n");
    assert_int_equal(sass.blocks, 7);
    assert_true(goes_to(&sass, 3, 5)); /* BSYNC goes to the label of its BSSY ... */
    assert_false(goes_to(&sass, 3, 4));
    assert_true(goes_to(&sass, 1, 6)); /* the call to its function, and back behind the call */
    assert_true(goes_to(&sass, 6, 2));
}

TEST(test_unknown_jump)
{
    fa_sass sass;
    fa_reason why;
    ends_with(fa_sass_parse(fa_format("\t.section\t.text.k,\n        /*0000*/   BRX R2 -0x10 ;\n"), &sass, &why),
              FA_NOT_RUN, &why, "BRX");
    assert_int_equal(fa_sass_parse(fa_format("nothing here"), &sass, &why), FA_NOT_RUN);
}

TEST(test_costs)
{
    const fa_cost mufu = fa_cost_of(&(fa_instruction){"MUFU.EX2", "", false}, 90, 4096);
    assert_float_equal(mufu.clocks[FA_PIPE_MUFU], 2, 1e-12);
    const fa_cost wgmma = fa_cost_of(&(fa_instruction){"HGMMA.64x128x16.F32", "", false}, 90, 4096);
    assert_float_equal(4 * wgmma.clocks[FA_PIPE_TENSOR], 64, 1e-12); /* n / 2 clocks for the four warps */
    const fa_cost hmma = fa_cost_of(&(fa_instruction){"HMMA.16816.F32", "", false}, 90, 4096);
    assert_float_equal(hmma.clocks[FA_PIPE_TENSOR], 1.5, 0); /* two thirds of the peak, which only wgmma reaches */
    const fa_cost ada = fa_cost_of(&(fa_instruction){"HMMA.16816.F32", "", false}, 89, 1024);
    assert_float_equal(ada.clocks[FA_PIPE_TENSOR], 4, 1e-12);
    const fa_cost fp8 = fa_cost_of(&(fa_instruction){"QMMA.16832.F32.E4M3.E4M3", "", false}, 89, 1024);
    assert_float_equal(fp8.clocks[FA_PIPE_TENSOR], 4, 1e-12); /* twice the products in as many clocks */
    assert_float_equal(fp8.flop, 2 * ada.flop, 0);
    const fa_cost qgmma = fa_cost_of(&(fa_instruction){"QGMMA.64x128x32.F32.E4M3.E4M3", "", false}, 90, 4096);
    assert_float_equal(4 * qgmma.clocks[FA_PIPE_TENSOR], 64, 1e-12);
    assert_float_equal(qgmma.flop, 2 * wgmma.flop, 0);
    const fa_cost lds = fa_cost_of(&(fa_instruction){"LDS.128", "", false}, 90, 4096);
    assert_float_equal(lds.clocks[FA_PIPE_SHARED], 2, 0);
    const fa_cost ldsm = fa_cost_of(&(fa_instruction){"LDSM.16.MT88.4", "", false}, 89, 1024);
    assert_float_equal(ldsm.clocks[FA_PIPE_SHARED], 4, 1e-12);
    const fa_cost skipped = fa_cost_of(&(fa_instruction){"FFMA", "", true}, 89, 1024);
    assert_float_equal(skipped.clocks[FA_PIPE_FMA], 0, 0); /* perhaps not done ... */
    assert_float_equal(skipped.flop, 64, 0);               /* ... but perhaps it is */
    assert_float_equal(skipped.clocks[FA_PIPE_ISSUE], 0.25, 0);
}

/* min 2a + 3b with a + b = 4, a + c = 1: a = 1, b = 3. */
TEST(test_linear)
{
    static fa_linear program = {.rows = 2, .columns = 3, .right = {4, 1}, .cost = {2, 3, 0}};
    static double x[FA_LINEAR_COLUMNS], price[FA_LINEAR_ROWS];
    program.row[0][0] = program.row[0][1] = program.row[1][0] = program.row[1][2] = 1;
    assert_true(fa_linear_solve(&program, x, price));
    assert_float_equal(x[0], 1, 1e-9);
    assert_float_equal(x[1], 3, 1e-9);
    assert_float_equal(4 * price[0] + price[1], 11, 1e-6); /* the dual has the same value */
    program.row[0][0] = program.row[0][1] = 0;             /* nothing can reach 4 */
    assert_false(fa_linear_solve(&program, x, price));
}

static const fa_work_need NEED = {
    .flop = 4096e3, .warps = 4, .sm_count = 1, .wave_factor = 1, .cc = 89, .tensor_flop = 1024};

TEST(test_loop)
{
    CLEANUP(fa_sass_free) fa_sass sass = parse(LOOP);
    fa_bound bound = fa_bound_of(&sass, &NEED);
    assert_true(bound.known);
    assert_float_equal(bound.clocks, 6000, 6); /* 1000 products, each with three exponentials of two clocks */
    assert_int_equal(bound.binds, FA_PIPE_MUFU);
    assert_int_equal(bound.second, FA_PIPE_TENSOR);
    assert_float_equal(bound.pipe_clocks[FA_PIPE_TENSOR], 4000, 8);
    fa_work_need waves = NEED;
    waves.wave_factor = 1.5;
    assert_float_equal(fa_bound_of(&sass, &waves).clocks, 9000, 9);
    waves = NEED;
    waves.l2_bytes = 64 * 7000;
    bound = fa_bound_of(&sass, &waves);
    assert_float_equal(bound.clocks, 7000, 1e-6);
    assert_true(bound.l2_binds);
}

/* Each product costs 6 clocks of exponentials, or twice 8 of shared memory. Mixed so that both are equally busy,
 * x = 16 (1 - x) / 6: the share 8/11 of the first, 48/11 clocks a product. */
TEST(test_mixed_ways)
{
    CLEANUP(fa_sass_free) fa_sass sass = parse(TWO_WAYS);
    const fa_bound bound = fa_bound_of(&sass, &NEED);
    assert_true(bound.known);
    assert_float_equal(bound.clocks, 48000.0 / 11, 10);
    assert_float_equal(bound.pipe_clocks[FA_PIPE_MUFU], bound.pipe_clocks[FA_PIPE_SHARED], 20);
}

TEST(test_no_products)
{
    CLEANUP(fa_sass_free)
    fa_sass sass = parse("\t.section\t.text.k,\n.L:\n        /*0000*/   IADD3 R2, R2, R3, RZ ;\n"
                         "        /*0010*/   @P0 BRA `(.L) ;\n        /*0020*/   EXIT ;\n");
    const fa_bound bound = fa_bound_of(&sass, &NEED);
    assert_false(bound.known);
    assert_string_equal(bound.unknown_reason, "no loop of the kernel holds products");
}

/* 6 blocks of 4 warps on 4 multiprocessors, one at a time: two of them do two. Head dim 64, 64 keys in steps of 32. */
TEST(test_estimate)
{
    double clocks[FA_PIPE_COUNT] = {[FA_PIPE_FMA] = 600, [FA_PIPE_TENSOR] = 1200};
    const fa_kernel_info info = {.m = 32, .n = 32, .vec = 8, .splits = 1, .grid = FA_GRID_TILES};
    const fa_launch launch = {.grid = 6, .tiles = 6, .threads = 128};
    const fa_problem problem = {
        .batch = 1, .heads = 6, .kv_heads = 6, .seq_q = 32, .seq_kv = 64, .dim = 64, .causal = false};
    fa_estimate_input input = {.pipe_clocks = clocks,
                               .info = &info,
                               .launch = &launch,
                               .problem = &problem,
                               .sm_count = 4,
                               .blocks_per_sm = 1,
                               .tensor_flop = 1024,
                               .clock_mhz = 1000,
                               .dram_us = 3};
    const fa_estimate one = fa_estimate_of(&input, "nobody's");
    char name[32];
    assert_true(one.known);
    assert_float_equal(one.terms_us[FA_TERM_LAUNCH], 1, 0);
    assert_float_equal(one.terms_us[FA_TERM_DRAM], 3, 0);
    assert_float_equal(one.terms_us[FA_TERM_PIPE + FA_PIPE_FMA], 0.8, 1e-12);     /* 2 blocks where the mean is 1.5 */
    assert_float_equal(one.terms_us[FA_TERM_CHAIN + FA_PIPE_FMA], 0.2, 1e-12);    /* 100 clocks a warp, two rounds */
    assert_float_equal(one.terms_us[FA_TERM_CHAIN + FA_PIPE_TENSOR], 0.1, 1e-12); /* at a quarter: latency */
    assert_float_equal(one.terms_us[FA_TERM_L2], 0.512, 1e-12);   /* 2 times 16 KiB at 64 bytes a clock */
    assert_float_equal(one.terms_us[FA_TERM_COPY], 0.064, 1e-12); /* 512 bytes an instruction */
    assert_float_equal(one.terms_us[FA_TERM_STEPS], 4, 1e-12);    /* two rounds of two steps */
    assert_float_equal(one.terms_us[FA_TERM_BLOCKS], 2, 1e-12);   /* two rounds */
    assert_float_equal(one.terms_us[FA_TERM_PARTS], 0, 0);
    assert_true(one.us_low < one.us && one.us < one.us_high);
    const fa_kernel_info split = {.m = 32, .n = 32, .vec = 8, .splits = 2, .grid = FA_GRID_TILES};
    input.info = &split;
    assert_float_equal(fa_estimate_of(&input, "light").terms_us[FA_TERM_PARTS], 0.768, 1e-12); /* 2 times 96 KiB */
    input.bound_us = 1000; /* the bound is the truth */
    assert_float_equal(fa_estimate_of(&input, "light").us, 1000, 0);
    assert_float_equal(fa_estimate_of(&input, "light").us_low, 1000, 0);
    assert_string_equal(fa_term_name(FA_TERM_CHAIN + FA_PIPE_MUFU, name), "mufu_chain");
    assert_string_equal(fa_term_name(FA_TERM_COPY, name), "copy");
}

/* A tool in its place that notes each call. */
TEST(test_listing_is_kept)
{
    char folder[] = "/tmp/fa_test_bound.XXXXXX", *path = getenv("PATH"), *calls = NULL;
    size_t size = 0;
    fa_sass sass;
    fa_reason why;
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    FREED char *paths = fa_format("%s:%s", folder, path), *cubin = fa_format("%s/k.cubin", folder);
    FREED char *tool = fa_format("#!/bin/sh\necho call >>%s/calls\ncat %s/answer\n", folder, folder);
    FREED char *noted = fa_format("%s/calls", folder);
    setenv("PATH", paths, 1);
    put_file(folder, "nvdisasm", tool);
    put_file(folder, "k.cubin", "machine code");
    put_file(folder, "answer", LOOP);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fa_sass_read(cubin, &sass, &why), FA_PASS);
        assert_int_equal(sass.blocks, 4);
        fa_sass_free(&sass);
    }
    put_file(folder, "k.cubin", "other machine code");
    put_file(folder, "answer", TWO_WAYS);
    assert_int_equal(fa_sass_read(cubin, &sass, &why), FA_PASS);
    assert_int_not_equal(sass.blocks, 4);
    fa_sass_free(&sass);
    assert_int_equal(fa_read_file(noted, &calls, &size, &why), FA_PASS);
    assert_int_equal(size, 2 * strlen("call\n"));
    fa_run((const char *const[]){"rm", "-rf", folder, NULL}, NULL);
    assert_int_equal(fa_sass_read(cubin, &sass, &why), FA_ERROR); /* no such file */
    free(calls);
}
