#include "base/file.h"
#include "compile/cuda.h"
#include "compile/launch.h"
#include "compile/log.h"
#include "unit.h"

/* As NVRTC 13.0 prints it. */
static const char nvrtc_log[] =
    "ptxas info    : 112 bytes gmem, 8 bytes cmem[4]\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_89'\n"
    "ptxas info    : Function properties for other\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]\n"
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma\n"
    "ptxas info    : Compiling entry function 'fa_kernel' for 'sm_90a'\n"
    "ptxas info    : Function properties for fa_kernel\n"
    "ptxas         .     48 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 2 barriers, 48 bytes cumulative stack size, 4096 bytes smem, 960 bytes "
    "cmem[0]\n"
    "ptxas info    : Compile time = 14.102 ms\n";

TEST(figures_of_the_entry)
{
    fa_ptxas x = {.known = false};
    assert_true(fa_log_ptxas(nvrtc_log, "fa_kernel", &x));
    assert_string_equal(x.arch, "sm_90a");
    assert_int_equal(x.registers, 168);
    assert_int_equal(x.smem_static_bytes, 4096);
    assert_int_equal(x.spill_store_bytes, 20);
    assert_int_equal(x.spill_load_bytes, 24);
    assert_int_equal(x.stack_bytes, 48);
    assert_int_equal(x.barriers, 2);
    assert_int_equal(x.warning_count, 1);
    holds(x.warnings[0], "C7510");
}

TEST(no_figures_without_the_entry)
{
    fa_ptxas x = {.known = false};
    assert_false(fa_log_ptxas(nvrtc_log, "nope", &x));
    assert_false(fa_log_ptxas("", "fa_kernel", &x));
    assert_false(fa_log_ptxas("garbage\n\n\n", "fa_kernel", &x));
}

TEST(sentences_of_static_asserts)
{
    char text[128];
    assert_true(fa_log_static_assert("k.cu(1): error: static assertion failed with \"light: say \"so\" here\"\n  x\n",
                                     text, sizeof text));
    assert_string_equal(text, "light: say \"so\" here");
    static const char plain[] = "(1): error: static assertion failed with \"a?? ?b?\"\n  A(\"\", \"aß `b`\");\n";
    assert_true(fa_log_static_assert(plain, text, sizeof text));
    assert_string_equal(text, "aß `b`");
    assert_true(fa_log_static_assert("a.cu:3:5: error: static assertion failed: M must be 16\n", text, sizeof text));
    assert_string_equal(text, "M must be 16");
    assert_true(fa_log_static_assert("a.cu:9:1: error: static assertion failed\n    9 | static_assert(M == 1);\n", text,
                                     sizeof text));
    assert_string_equal(text, "without a sentence: static_assert(M == 1);");
    assert_true(fa_log_static_assert("k(9): error: static assertion failed with \"\"\n  static_assert(M == 1, \"\");",
                                     text, sizeof text));
    assert_string_equal(text, "without a sentence: static_assert(M == 1, \"\");");
    assert_false(fa_log_static_assert("k.cu(1): error: identifier \"x\" is undefined\n", text, sizeof text));
}

TEST(static_shared_memory_over_the_limit)
{
    assert_int_equal(
        fa_log_static_smem_overflow(
            "ptxas error   : Entry function 'fa_kernel' uses too much shared data (0x13880 bytes, 0xc000 max)\n"),
        80000);
    assert_int_equal(
        fa_log_static_smem_overflow("ptxas info    : Used 34 registers, 80000 bytes smem, 360 bytes cmem[0]\n"), 80000);
    assert_int_equal(fa_log_static_smem_overflow(nvrtc_log), 0);
}

TEST(error_lines_are_kept)
{
    char text[256];
    fa_log_errors("k.cu(1): warning: w\n  line\nk.cu(7): error: bad\n  int x = y;\n          ^\n\nnoise\n", text,
                  sizeof text);
    holds(text, "k.cu(7): error: bad");
    holds(text, "int x = y;");
    assert_null(strstr(text, "warning"));
    char log[6000], large[1000];
    snprintf(log, sizeof log, "k.cu(1): error: #error %05000d\n  #error\n   ^\n1 error in k.cu\n", 0);
    fa_log_errors(log, large, sizeof large);
    holds(large, "k.cu(1): error: #error 0000");
    holds(large, "00 ...\n  #error\n");
    char tiny[16];
    fa_log_errors("k.cu(7): error: a very long line that does not fit\n", tiny, sizeof tiny);
    assert_true(strlen(tiny) < sizeof tiny);
}

TEST(occupancy_by_hand)
{
    fa_reason why;
    fa_arch_limits limits;
    assert_int_equal(fa_arch_limits_of("sm_90", &limits, &why), FA_PASS);
    assert_int_equal(fa_occupancy_of(&limits, 256, 32, 0).blocks_per_sm, 8);      /* 64 warps of 8 */
    assert_int_equal(fa_occupancy_of(&limits, 256, 128, 0).blocks_per_sm, 2);     /* 65536 / (256*128) */
    assert_int_equal(fa_occupancy_of(&limits, 128, 32, 100000).blocks_per_sm, 2); /* 228 KiB / 98.6 KiB */
    assert_int_equal(fa_occupancy_of(&limits, 1024, 255, 0).blocks_per_sm, 0);
}

TEST(launches)
{
    const fa_problem p = {.batch = 2, .heads = 8, .kv_heads = 8, .seq_q = 513, .seq_kv = 512, .dim = 64};
    fa_module module = {
        .info = {.m = 64, .threads = 128, .splits = 2, .workspace_bytes_per_block = 16, .workspace_bytes_fixed = 4}};
    fa_kernel_info *const info = &module.info;
    const fa_launch tiles = fa_launch_of(&module, &p, 132);
    assert_int_equal(tiles.tiles_m, 9);
    assert_int_equal(tiles.tiles, 144);
    assert_int_equal(tiles.grid, 288);
    assert_int_equal(tiles.workspace_bytes, 288 * 16 + 4);
    info->grid = FA_GRID_PERSISTENT;
    info->blocks_per_sm = 2;
    assert_int_equal(fa_launch_of(&module, &p, 132).grid, 264);
    assert_int_equal(fa_launch_of(&module, &p, 1000).grid, 288);
    info->splits = 1, info->blocks_per_sm = 1,
    info->cluster = 2; /* whole clusters: of a head's tiles, and of the resident blocks */
    assert_int_equal(fa_launch_of(&module, &p, 131).grid, 130);
    info->grid = FA_GRID_TILES;
    assert_int_equal(fa_launch_of(&module, &p, 131).grid, 160);
    assert_int_equal(fa_launch_of(&module, &p, 131).tiles, 144);
    info->splits = 2; /* or of a tile's splits */
    assert_int_equal(fa_launch_of(&module, &p, 131).grid, 288);
    const fa_problem huge = {.batch = 1048576, .heads = 65536, .kv_heads = 1, .seq_q = 1, .seq_kv = 1, .dim = 16};
    assert_int_equal(fa_launch_of(&module, &huge, 132).grid, 0);
}

TEST(older_targets_run_as_ptx)
{
    assert_true(fa_needs_ptx("sm_89", "sm_90"));
    assert_true(fa_needs_ptx("sm_80", "sm_120"));
    assert_false(fa_needs_ptx("sm_80", "sm_89"));   /* the same generation takes the cubin */
    assert_false(fa_needs_ptx("sm_90a", "sm_100")); /* tied to its own generation: the driver will say so */
    assert_false(fa_needs_ptx("sm_90", "sm_89"));
    fa_reason why;
    fa_options options;
    fa_problem problem;
    fa_spec spec;
    setenv("FA_HOME", ".", 0); /* the tests run in the root of the tree */
    assert_int_equal(parse_words("--kernel scalar --arch sm_89", &options, &why), FA_PASS);
    assert_int_equal(fa_problem_make(&options, &problem, &why), FA_PASS);
    assert_int_equal(fa_spec_make(&options, &problem, &spec, &why), FA_PASS);
    fa_module module = {.cache_hit = false};
    const fa_status status = fa_compile_ptx(&spec, &module, &why);
    if (status == FA_NOT_RUN) {
        print_message("no NVRTC: %s\n", why.text);
        skip();
    }
    if (status != FA_PASS)
        fail_msg("%s", why.text);
    FREED char *text = NULL;
    size_t size = 0;
    assert_int_equal(fa_read_file(module.path, &text, &size, &why), FA_PASS);
    holds(text, ".target sm_89");
    holds(text, ".entry fa_kernel");
    assert_string_equal(module.ptx_arch, "compute_89");
}
