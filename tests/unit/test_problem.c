#include "input/problem.h"
#include "input/spec.h"
#include "unit.h"

static fa_reason why;

static fa_problem make(const char *line)
{
    fa_options options;
    fa_problem problem;
    if (parse_words(line, &options, &why) != FA_PASS)
        fail_msg("%s: %s", line, why.text);
    const fa_status status = fa_problem_make(&options, &problem, &why);
    problem.batch = status == FA_PASS ? problem.batch : 0;
    return problem;
}

TEST(canonical_numbers)
{
    const fa_problem p = make("");
    assert_true(fa_problem_flop(&p) == 1073741824.0);
    assert_true(p.scale == 0.125f);
    assert_true(fa_problem_bytes(&p) == 4.0 * 1048576);
    assert_int_equal(p.kv_heads, 8);
    assert_int_equal(p.seq_kv, 512);
}

/* Of 2 sequences of 4 heads over 2 K/V heads, 3 queries, 5 keys, dim 32: by hand. */
TEST(bytes_and_flop_of_each_kind)
{
    static const struct {
        const char *more;
        double bytes, flop;
    } cases[] = {
        {"", 24 * 64 + 24 * 64 + 20 * 64 * 2, 4 * 32 * 120},
        {" --dim-v 16", 24 * 64 + 24 * 32 + 20 * (64 + 32), 2 * 48 * 120},
        {" --dim-v 16 --v-in-k", 24 * 64 + 24 * 32 + 20 * 64, 2 * 48 * 120},
        {" --kv-dtype e4m3", 24 * 64 + 24 * 64 + 20 * 32 * 2, 4 * 32 * 120},
        {" --dtype e4m3", 24 * 32 + 24 * 64 + 20 * 32 * 2, 4 * 32 * 120},
        {" --causal", 24 * 64 + 24 * 64 + 20 * 64 * 2, 4 * 32 * 8 * 12},
        {" --dim-v 16 --op backward", 24 * (2 * 64 + 2 * 32 + 4) + 20 * 2 * (64 + 32), 5 * 48 * 120},
        {" --lengths 3:5,1:2", 4 * 4 * 128 + 2 * 7 * 128, 4 * 32 * 4 * 17},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[160];
        snprintf(line, sizeof line, "--batch 2 --heads 4 --kv-heads 2 --seq 3 --seq-kv 5 --dim 32%s", cases[i].more);
        CLEANUP(fa_problem_free) fa_problem p = make(line);
        if (fa_problem_bytes(&p) != cases[i].bytes || fa_problem_flop(&p) != cases[i].flop)
            fail_msg("%s: %.0f bytes, %.0f FLOP", line, fa_problem_bytes(&p), fa_problem_flop(&p));
    }
}

/* Pairs counted one by one. */
static int64_t count_pairs(const fa_problem *p)
{
    int64_t pairs = 0;
    for (int32_t i = 0; i < p->seq_q; i++)
        for (int32_t j = 0; j < p->seq_kv; j++)
            pairs += !p->causal || j <= i + p->seq_kv - p->seq_q;
    return pairs * p->batch * p->heads;
}

TEST(causal_pairs_match_a_count)
{
    const char *const lines[] = {"--causal --seq 7", "--causal --seq 5 --seq-kv 9", "--causal --seq 9 --seq-kv 5",
                                 "--causal --seq 1", "--seq 3 --seq-kv 4",          "--causal --seq 33 --seq-kv 1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const fa_problem p = make(lines[i]);
        int64_t by_rows = 0;
        for (int32_t row = 0; row < p.seq_q; row++)
            by_rows += fa_problem_row_keys(&p, row) * (int64_t)p.batch * p.heads;
        if (fa_problem_pairs(&p) != count_pairs(&p) || by_rows != count_pairs(&p))
            fail_msg("%s: %lld pairs, %lld by rows, expected %lld", lines[i], (long long)fa_problem_pairs(&p),
                     (long long)by_rows, (long long)count_pairs(&p));
    }
}

TEST(impossible_shapes_are_refused)
{
    assert_int_equal(make("--heads 8 --kv-heads 3").batch, 0);
    holds(why.text, "--kv-heads");
    assert_int_equal(make("--dim 20").batch, 0);
    holds(why.text, "multiple of 8");
}

TEST(architectures)
{
    fa_arch_limits limits;
    assert_int_equal(fa_arch_limits_of("sm_89", &limits, &why), FA_PASS);
    assert_int_equal(limits.smem_block_bytes, 101376);
    assert_int_equal(fa_arch_limits_of("sm_90a", &limits, &why), FA_PASS);
    assert_int_equal(limits.smem_block_bytes, 232448);
    const char *const bad[] = {"", "sm_", "sm_1", "89", "sm_89a", "sm_90ab", "compute_89", "sm_89 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fa_arch_limits_of(bad[i], &limits, &why) != FA_USAGE)
            fail_msg("architecture '%s' is not refused", bad[i]);
}

TEST(near_names_are_offered)
{
    const fa_kernel_row *row = NULL;
    ends_with(fa_registry_find("lihgt", &row, &why), FA_USAGE, &why, "light");
    for (size_t i = 0; i < fa_registry_count(); i++) {
        assert_int_equal(fa_registry_find(fa_registry_at(i)->name, &row, &why), FA_PASS);
        assert_ptr_equal(row, fa_registry_at(i));
    }
}

/* Every rule names rows that exist and sets every knob. */
TEST(rules_are_whole)
{
    const fa_kernel_row *row = NULL;
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++) {
        const bool named = fa_registry_find(rule->name, &row, &why) == FA_PASS &&
                           fa_registry_find(rule->variant, &row, &why) == FA_PASS;
        if (!named || rule->max_dim < 16 || rule->knobs.m <= 0 || rule->knobs.warps <= 0)
            fail_msg("rule of %s for %s, dim to %d: m=%d warps=%d%s%s", rule->name, rule->variant, rule->max_dim,
                     rule->knobs.m, rule->knobs.warps, named ? "" : "; ", named ? "" : why.text);
    }
}

static fa_knobs knobs_of(const char *kernel, const char *splits, const char *problem_text)
{
    fa_options options;
    fa_spec spec;
    const fa_problem p = make(problem_text);
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
    } cases[] = {
        {"--heads 8 --kv-heads 1 --causal --seq 256 --seq-kv 32768", 8},  /* 16 tiles */
        {"--heads 8 --kv-heads 1 --causal --seq 512 --seq-kv 32768", 4},  /* 32 */
        {"--heads 8 --kv-heads 1 --causal --seq 1024 --seq-kv 32768", 2}, /* 64 */
        {"--heads 8 --kv-heads 1 --causal --seq 1536 --seq-kv 32768", 4}, /* 96: three waves of quarters */
        {"--heads 8 --kv-heads 1 --causal --seq 2048 --seq-kv 32768", 1}, /* 128: nearly a wave */
        {"--heads 8 --kv-heads 1 --causal --seq 3072 --seq-kv 32768", 2}, /* 192: three waves of halves */
        {"--heads 4 --causal --seq 4096", 2},                             /* 128, of which the longest takes longest */
        {"--heads 1 --causal --seq 16384", 2},
        {"--heads 4 --seq 4096", 1},
        {"--heads 16 --seq 16384 --causal", 1},
    };
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
    const fa_problem p = make("");
    char *argv[] = {"fa_bench", "--kernel", "light", "--m", "16", "--maxreg", "64"};
    assert_int_equal(fa_options_parse(7, argv, &options, &why), FA_PASS);
    assert_int_equal(fa_spec_make(&options, &p, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_89");
    assert_int_equal(spec.knobs.m, 16);
    assert_int_equal(spec.knobs.n, spec.row->knobs.n);
    assert_int_equal(fa_spec_for_device(&p, "sm_90", 132, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_90a");
    assert_int_equal(fa_spec_for_device(&p, "sm_80", 108, &spec, &why), FA_PASS);
    assert_string_equal(spec.arch, "sm_80");
    fa_define defines[FA_SPEC_DEFINES_MAX];
    const size_t count = fa_spec_defines(&spec, defines);
    bool m = false, reg = false;
    for (size_t i = 0; i < count; i++) {
        m = m || strcmp(defines[i].text, "-DFA_M=16") == 0;
        reg = reg || strcmp(defines[i].text, "-DFA_MAXREG=64") == 0;
    }
    assert_true(m && reg);
    for (size_t i = 0; i < count; i++) /* and nothing of the log-sum-exp, which nobody asks for */
        assert_null(strstr(defines[i].text, "LSE"));
    spec.lse = true;
    assert_int_equal(fa_spec_defines(&spec, defines), count + 1);
    assert_string_equal(defines[count].text, "-DFA_LSE=1");
}
