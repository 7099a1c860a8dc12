#include "input/problem.h"
#include "input/spec.h"
#include "unit.h"

static fa_reason why;

/* Of 2 sequences of 4 heads over 2 K/V heads, 3 queries, 5 keys, dim 32: by hand. */
TEST(bytes_and_flop_of_each_kind)
{
    static const struct {
        const char *more;
        double bytes, flop;
    } cases[] = {{"", 24 * 64 + 24 * 64 + 20 * 64 * 2, 4 * 32 * 120},
                 {" --dim-v 16", 24 * 64 + 24 * 32 + 20 * (64 + 32), 2 * 48 * 120},
                 {" --dim-v 16 --v-in-k", 24 * 64 + 24 * 32 + 20 * 64, 2 * 48 * 120},
                 {" --kv-dtype e4m3", 24 * 64 + 24 * 64 + 20 * 32 * 2, 4 * 32 * 120},
                 {" --dtype e4m3", 24 * 32 + 24 * 64 + 20 * 32 * 2, 4 * 32 * 120},
                 {" --causal", 24 * 64 + 24 * 64 + 20 * 64 * 2, 4 * 32 * 8 * 12},
                 {" --dim-v 16 --op backward", 24 * (2 * 64 + 2 * 32 + 4) + 20 * 2 * (64 + 32), 5 * 48 * 120},
                 {" --lengths 3:5,1:2,4:1", 4 * 8 * 128 + 2 * 8 * 128, 4 * 32 * 4 * 21}}; /* no batch of 2 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[160];
        snprintf(line, sizeof line, "--batch 2 --heads 4 --kv-heads 2 --seq 3 --seq-kv 5 --dim 32%s", cases[i].more);
        CLEANUP(fa_problem_free) fa_problem p = problem_of(line);
        if (fa_problem_bytes(&p) != cases[i].bytes || fa_problem_flop(&p) != cases[i].flop)
            fail_msg("%s: %.0f bytes, %.0f FLOP", line, fa_problem_bytes(&p), fa_problem_flop(&p));
    }
}

static fa_knobs knobs_of(const char *kernel, const char *splits, const char *problem_text)
{
    fa_options options;
    fa_spec spec;
    const fa_problem p = problem_of(problem_text);
    char *argv[] = {"fa_bench", "--kernel", (char *)kernel, "--splits", (char *)splits};
    assert_int_equal(fa_options_parse(splits != NULL ? 5 : 3, argv, &options, &why), FA_PASS);
    assert_int_equal(fa_spec_make(&options, &p, &spec, &why), FA_PASS);
    assert_int_equal(fa_spec_for_device(&p, "sm_90", 132, &spec, &why), FA_PASS);
    return spec.knobs;
}

static void expect_splits(const char *kernel, const char *splits, const char *problem, int32_t want)
{
    const fa_knobs got = knobs_of(kernel, splits, problem);
    if (got.splits != want)
        fail_msg("--kernel %s%s%s %s on 132 multiprocessors: splits %d with m=%d, expected %d", kernel,
                 splits != NULL ? " --splits " : "", splits != NULL ? splits : "", problem, got.splits, got.m, want);
}

/* For every kernel that can split: splits for few rows and many keys, and none where the grid fills the GPU. */
TEST(splits_fill_the_gpu)
{
    int can = 0;
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        if (row->kind != FA_KIND_HAND || row->traits.variant_of != NULL)
            continue;
        const char *const few_rows = "--batch 1 --heads 8 --seq 1 --seq-kv 65536";
        const char *const few_keys = "--batch 1 --heads 8 --seq 1 --seq-kv 2048";
        /* --splits is a tile option: the kernel itself, not the variant that serves few rows without one. */
        if (row->space.splits == NULL) {
            expect_splits(row->name, "0", few_rows, 1);
            continue;
        }
        can++;
        /* 8 tiles on 132 multiprocessors: 16 fill them. */
        expect_splits(row->name, NULL, few_rows, 16);
        expect_splits(row->name, "0", few_rows, 16);
        expect_splits(row->name, "3", few_rows, 3);
        /* 256 keys at least; of the kernel itself, where its rows are not packed, 512 or 1024 */
        expect_splits(row->name, NULL, few_keys, 8);
        expect_splits(row->name, "0", few_keys, row->traits.pack_heads ? 8 : row->traits.wgmma ? 4 : 2);
        expect_splits(row->name, NULL, "--batch 1 --heads 1 --seq 1 --seq-kv 1048576", 64);
        expect_splits(row->name, "0", "", 1);
        expect_splits(row->name, NULL, "--batch 4 --heads 32 --seq 4096", 1);
    }
    assert_true(can > 0);
}

/* wgmma: blocks that end together, by the numbers that were measured as the best on an H200. */
TEST(splits_end_together)
{
    static const struct {
        const char *problem;
        int32_t splits;
    } cases[] = {{"--heads 8 --kv-heads 1 --causal --seq 256 --seq-kv 32768", 8},  /* 16 tiles */
                 {"--heads 8 --kv-heads 1 --causal --seq 512 --seq-kv 32768", 4},  /* 32 */
                 {"--heads 8 --kv-heads 1 --causal --seq 1024 --seq-kv 32768", 2}, /* 64 */
                 {"--heads 8 --kv-heads 1 --causal --seq 1536 --seq-kv 32768", 4}, /* 96: three waves of quarters */
                 {"--heads 8 --kv-heads 1 --causal --seq 2048 --seq-kv 32768", 1}, /* 128: nearly a wave */
                 {"--heads 8 --kv-heads 1 --causal --seq 3072 --seq-kv 32768", 2}, /* 192: three waves of halves */
                 {"--heads 4 --causal --seq 4096", 2}, /* 128, of which the longest takes longest */
                 {"--heads 1 --causal --seq 16384", 2},
                 {"--heads 4 --seq 4096", 1},
                 {"--heads 16 --seq 16384 --causal", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[160];
        snprintf(text, sizeof text, "--batch 1 --dim 128 %s", cases[i].problem);
        const fa_knobs knobs = knobs_of("wgmma", NULL, text);
        assert_int_equal(knobs.m, 128);
        if (knobs.splits != cases[i].splits)
            fail_msg("wgmma %s: splits %d, expected %d", text, knobs.splits, cases[i].splits);
    }
}

TEST(spec_takes_knobs_and_arch)
{
    fa_options options;
    fa_spec spec;
    const fa_problem p = problem_of("");
    char *argv[] = {"fa_bench", "--kernel", "light", "--m", "16", "--maxreg", "64"};
    assert_int_equal(fa_options_parse(7, argv, &options, &why), FA_PASS);
    assert_int_equal(fa_spec_make(&options, &p, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_89");
    assert_int_equal(spec.knobs.m, 16);
    assert_int_equal(spec.knobs.n, spec.row->knobs.n);
    assert_int_equal(fa_spec_for_device(&p, "sm_90", 132, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_90a");
    assert_int_equal(fa_spec_for_device(&p, "sm_89", 58, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_89");
}
