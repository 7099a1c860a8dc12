/* Which kernel and tile serve a problem, by rules of a test's own, and what a spec takes from the command line. The
 * registry's rules: tests/cli/gate_problems.bats. */
#include "input/schedule.h"
#include "input/spec.h"
#include "input/splits.h"
#include "unit.h"

static fa_reason why;

/* Rules of a test's own, in the place of the registry's. */
static const fa_rule *made_up;
const fa_rule *__real_fa_registry_rules(void);
const fa_rule *__wrap_fa_registry_rules(void) { return made_up != NULL ? made_up : __real_fa_registry_rules(); }

static fa_status parse(const char *line, fa_options *options) { return parse_words(line, options, &why); }

/* A rule of light for tiles of m rows, which asks for nothing more. */
static fa_rule rule_of(int32_t m)
{
    return (fa_rule){.name = "light",
                     .max_dim = 256,
                     .causal = -1,
                     .max_fill_percent = -1,
                     .features = -1,
                     .knobs = {.m = m, .n = 64, .splits = 1},
                     .variant = "light"};
}

/* What these rules make of a problem; sms 0: the device is not known. */
static fa_spec spec_by(const fa_rule *rules, const char *line, const fa_problem *p, int32_t sms)
{
    fa_options options;
    fa_spec spec;
    assert_int_equal(parse(line, &options), FA_PASS);
    made_up = rules;
    const fa_status status = fa_spec_make(&options, p, &spec, &why);
    const fa_status on_device = fa_spec_for_device(p, "sm_90", sms, &spec, &why);
    made_up = NULL;
    assert_true(status == FA_PASS && on_device == FA_PASS);
    return spec;
}

static int32_t m_of(const fa_rule *rules, const fa_problem *p, int32_t sms)
{
    return spec_by(rules, "--kernel light", p, sms).knobs.m;
}

/* Of each condition: a problem at its edge, which the first of two rules serves, and one beyond, left to the second. */
TEST(each_condition_of_a_rule_has_its_edge)
{
#define WHERE(member) offsetof(fa_rule, member)
    static const struct {
        size_t member;
        int32_t value;
        const char *within, *beyond, *variant;
    } cases[] = {{WHERE(max_dim), 64, "--dim 64", "--dim 72"},
                 {WHERE(max_dim), 64, "--dim 64 --dim-v 64", "--dim 64 --dim-v 72"},
                 {WHERE(max_dim_v), 96, "--dim-v 96", "--dim-v 104"},
                 {WHERE(causal), 0, "", "--causal"},
                 {WHERE(causal), 1, "--causal", ""},
                 {WHERE(max_fill_percent), 100, "--batch 3 --heads 22 --seq 128", "--batch 1 --heads 67 --seq 65"},
                 {WHERE(max_rows), 16, "--heads 8 --kv-heads 2 --seq 4", "--heads 5 --kv-heads 1 --seq 4"},
                 {WHERE(max_seq), 32, "--seq 32 --seq-kv 99", "--seq 33"},
                 {WHERE(min_group), 4, "--heads 8 --kv-heads 2", "--heads 6 --kv-heads 2"},
                 {WHERE(min_keys), 100, "--seq-kv 100", "--seq-kv 99"},
                 {WHERE(max_seen), 128, "--seq-kv 128", "--seq-kv 129"},
                 {WHERE(max_seen), 9, "--window 3,5", "--window 4,5"},
                 {WHERE(max_seen), 128, "--window 127,0 --causal", "--window -1,0 --causal"},
                 {WHERE(max_seen), 1, "--chunk 1", "--chunk 2"},
                 {WHERE(max_seen), 128, "--window 0,5 --chunk 256", "--window 200,0 --chunk 129"},
                 {WHERE(min_arch), 90, "--arch sm_90a", "--arch sm_89"},
                 {WHERE(max_arch), 89, "--arch sm_89", "--arch sm_90a"},
                 {WHERE(features), FA_FEATURE_SINK, "--sinks", "--sinks --alibi"},
                 {WHERE(features), 0, "", "--sinks"},
                 {WHERE(asks), FA_FEATURE_FP8_KV, "--kv-dtype e4m3", ""},
                 {WHERE(features), -1, "--op backward", "", "mma_backward"},
                 {WHERE(features), -1, "--dtype e4m3", "", "mma_fp8"},
                 {WHERE(features), -1, "--seq 1", "--seq 1 --stages 2", "mma_decode"}}; /* mma's own tile, then */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int which = 0; which < 4; which++) { /* on a device and without one */
            const bool beyond = which % 2 != 0;
            char line[100];
            snprintf(line, sizeof line, "--kernel mma %s", beyond ? cases[i].beyond : cases[i].within);
            const fa_problem p = problem_of(line);
            fa_rule rules[] = {rule_of(16), rule_of(64), rule_of(128), {.name = NULL}}; /* the first is another's */
            rules[1].name = rules[2].name = rules[2].variant = "mma";
            rules[1].variant = cases[i].variant != NULL ? cases[i].variant : "mma";
            memcpy((char *)&rules[1] + cases[i].member, &cases[i].value, sizeof cases[i].value);
            const fa_spec spec = spec_by(rules, line, &p, which < 2 ? 132 : 0);
            if (spec.rule != 1 + beyond || spec.knobs.m != (beyond ? 128 : 64) || spec.source[0] == '\0' ||
                strcmp(spec.row->name, rules[1 + beyond].variant) != 0)
                fail_msg("%s: rule %d, %s with m=%d", line, spec.rule, spec.row->name, spec.knobs.m);
        }
    const fa_rule none[] = {rule_of(16), {.name = NULL}}; /* then the row's own tile serves */
    const fa_spec spec = spec_by(none, "--kernel light --dim 264", &(fa_problem){1, 1, 1, 64, 64, 264, false, 1}, 132);
    assert_true(spec.rule == 0 && memcmp(&spec.knobs, &spec.row->knobs, sizeof spec.knobs) == 0);
}

/* Rules of two tiles: which one serves. */
TEST(tiles_compete_by_their_keys)
{
    static const struct {
        int32_t heads, seq, sms, fill, cost, second_cost, second_max_dim, m;
    } cases[] = {
        {1, 64, 200, 0, 0, 0, 256, 64},                                   /* no full percent */
        {2, 64, 200, 0, 0, 0, 256, 128},                                  /* one */
        {2, 64, 200, 1, 0, 0, 256, 64},  {1, 128, 1, -1, 1, 1, 256, 128}, /* two tiles or one */
        {1, 192, 2, -1, 2, 3, 256, 128},                                  /* a queue of two and one tile: 4 to 3 */
        {1, 192, 2, -1, 2, 4, 256, 64},                                   /* 4 to 4: the first */
        {1, 128, 1, -1, 0, 1, 256, 64},                                   /* the first decides */
        {1, 128, 1, -1, 1, 0, 256, 64},                                   /* the second does not compete */
        {1, 128, 1, -1, 1, 1, 63, 64},                                    /* nor does one that does not match */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fa_rule rules[] = {rule_of(64), rule_of(128), {.name = NULL}};
        rules[0].max_fill_percent = cases[i].fill, rules[0].key_cost = cases[i].cost;
        rules[1].max_dim = cases[i].second_max_dim, rules[1].key_cost = cases[i].second_cost;
        const fa_problem p = {1, cases[i].heads, 1, cases[i].seq, 64, 64, false, 1};
        const int32_t m = m_of(rules, &p, cases[i].sms);
        if (m != cases[i].m)
            fail_msg(
                "case %zu, heads %d seq %d on %d multiprocessors, rules m=64 (fill %d %%, cost %d) and m=128 (cost "
                "%d, dim to %d): m=%d, expected m=%d",
                i, cases[i].heads, cases[i].seq, cases[i].sms, cases[i].fill, cases[i].cost, cases[i].second_cost,
                cases[i].second_max_dim, m, cases[i].m);
    }
    fa_rule three[] = {rule_of(32), rule_of(64), rule_of(128), {.name = NULL}}; /* the cheapest of more than two */
    three[0].key_cost = 900, three[1].key_cost = 1, three[2].key_cost = 500;
    assert_int_equal(m_of(three, &(fa_problem){1, 1, 1, 128, 64, 64, false, 1}, 1), 64);
}

/* m, n: the tile. Lengths by hand: a tile of 64 keys counts 320, one of 128 keys 384. */
TEST(busiest_multiprocessor)
{
    static const struct {
        int32_t m, n, heads, seq_q, seq_kv, causal, sms, keys;
    } cases[] = {
        {64, 64, 1, 64, 64, 0, 132, 320},      {64, 64, 3, 64, 64, 0, 2, 640}, /* two and one */
        {64, 128, 1, 64, 129, 0, 1, 512},                                      /* whole tiles of keys */
        {64, 64, 1, 128, 128, 1, 1, 704},      {64, 64, 1, 128, 128, 1, 2, 384},
        {64, 64, 1, 192, 192, 1, 2, 704},  /* 448; 384 and 320 */
        {64, 64, 1, 128, 64, 1, 1, 640},   /* rows without a key take one tile */
        {128, 64, 1, 64, 128, 1, 1, 384},  /* the past of a short tile */
        {64, 64, 1, 64, 65, 1, 1, 384},    /* the last row's last key */
        {64, 64, 2, 320, 320, 1, 4, 1280}, /* 576 576 512 512; 448 each to 512, 384 to 576, 320 to 960 */
        {64, 64, 3, 256, 256, 1, 7, 832},  /* 3 x 512, 3 x 448, 384; 384 to 384 and 448, 320 to 448, 448 and 512 */
        {64, 64, 2 * 64, 64, 64, 0, 2, 20480}, {64, 64, 2 * 64 + 1, 64, 64, 0, 2, 20640}, /* from here on the mean */
        {64, 64, 452, 64, 64, 0, 7, 20662},                                               /* rounded down */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fa_knobs knobs = {.m = cases[i].m, .n = cases[i].n};
        const fa_problem p = {1, cases[i].heads, 1, cases[i].seq_q, cases[i].seq_kv, 64, cases[i].causal, 1};
        const int64_t keys = fa_busiest_keys(&knobs, &p, cases[i].sms);
        if (keys != cases[i].keys)
            fail_msg("tile %dx%d, heads %d seq %d/%d %s on %d multiprocessors: %lld keys, expected %d", cases[i].m,
                     cases[i].n, cases[i].heads, cases[i].seq_q, cases[i].seq_kv, cases[i].causal ? "causal" : "full",
                     cases[i].sms, (long long)keys, cases[i].keys);
    }
}

/* With a window a tile counts from the first key of its first row to the last of its last row. */
TEST(windows_leave_fewer_keys)
{
    fa_problem p = {1, 1, 1, 4096, 4096, 64, true, 1};
    p.windowed = true, p.window_left = 127, p.window_right = 0;
    const fa_knobs narrow = {.m = 64, .n = 96}, wide = {.m = 128, .n = 64};
    assert_int_equal(fa_busiest_keys(&narrow, &p, 64), 192 + 256); /* 191 keys */
    assert_int_equal(fa_busiest_keys(&wide, &p, 32), 256 + 256);   /* 255 keys */
    p.seq_q = 64;                                                  /* the last of as many keys */
    assert_int_equal(fa_busiest_keys(&narrow, &p, 64), 192 + 256);
    p.seq_q = 4096, p.windowed = false, p.causal = false, p.chunk = 100;
    assert_int_equal(fa_busiest_keys(&wide, &p, 32), 320 + 256); /* rows of three chunks */
}

TEST(limits_are_those_of_the_guide)
{
    golden g = {0};
    const char *const archs[] = {"sm_75",  "sm_80",   "sm_86",   "sm_87",  "sm_89",  "sm_89a", "sm_90",      "sm_90a",
                                 "sm_90f", "sm_90b",  "sm_100",  "sm_103", "sm_120", "sm_121", "sm_70",      "sm_",
                                 "sm90",   "sm_90aa", "sm_100a", "sm-90",  "",       "sm_1",   "compute_89", "sm_89 "};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        fa_arch_limits l = {0};
        if (fa_arch_limits_of(archs[i], &l, &why) == FA_PASS)
            golden_say(&g,
                       "%s: cc %d, shared memory %d of a block, %d of a multiprocessor; %d registers, %d warps, "
                       "%d blocks; %d threads of a block; %d multiprocessors\n",
                       archs[i], l.cc, l.smem_block_bytes, l.smem_sm_bytes, l.registers_sm, l.warps_sm, l.blocks_sm,
                       l.threads_block, l.sm_count);
        else
            golden_say(&g, "%s: %s\n", archs[i], why.text);
    }
    golden_compare(&g, "limits_of_archs.txt");
}

static void say_spec(golden *g, const char *line, bool vs)
{
    fa_options options;
    fa_spec spec;
    fa_problem problem;
    fa_status status = parse(line, &options);
    if (status == FA_PASS)
        status = fa_problem_make(&options, &problem, &why);
    if (status == FA_PASS)
        status = vs ? fa_spec_make_vs(&options, &problem, &spec, &why) : fa_spec_make(&options, &problem, &spec, &why);
    if (status != FA_PASS) {
        golden_say(g, "%.80s: %d %.*s\n", line, status, (int)strcspn(why.text, ";"), why.text); /* no list of kernels */
        return;
    }
    fa_define defines[FA_SPEC_DEFINES_MAX];
    const size_t count = fa_spec_defines(&spec, defines);
    golden_say(g, "%s: %s, %s, %s row, kind %d, %s%s,", line, spec.name, spec.arch, spec.row != NULL ? "a" : "no",
               spec.kind, spec.arch_set ? "set" : "not set", spec.lse ? ", lse" : "");
    for (size_t i = 0; i < count; i++)
        golden_say(g, " %s", defines[i].text);
    golden_say(g, "\n");
}

TEST(a_spec_is_what_the_options_say)
{
    golden g = {0};
    char longer[1200] = "--source ./";
    for (size_t i = strlen(longer); i < sizeof longer - 21; i += 2)
        strcpy(longer + i, "./");
    strcat(longer, "examples/plain.cu");
    const char *const lines[] = {
        "--seq 512",
        "--source examples/plain.cu",
        "--source examples/plain.cu --m 32 --acc fp16 --lse --causal --dim 40",
        "--source examples/plain.cu --dtype bf16 --lse",
        "--source examples/none.cu",
        "--source ./examples/mma_plain.cu --arch sm_90a",
        "--library ./examples",
        "--library ./Makefile",
        "--library ./Makefile --m 16",
        "--library ./Makefile --splits 2",
        "--library ./none.so",
        "--library ./Makefile --kernel light",
        "--library ./Makefile --source examples/plain.cu",
        "--kernel cublas",
        "--kernel nosuch",
        "--kernel nosuch --source examples/plain.cu",
        "--kernel source --source examples/plain.cu",
        "--kernel light --source examples/plain.cu",
        "--kernel light --m 16 --arch sm_80",
        "--arch sm_12",
        "--source examples/plain.cu --define A",
        "--source examples/plain.cu --define A_1=2 --define B=",
    };
    static const char *const defines[] = {"1A",  "1",  "A9",     "0A",      "9A",    "FA_BF16=1",
                                          "A-B", "=3", "FA_M=3", "FA_MA=3", "FA_LS", "ABCD=1"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        say_spec(&g, lines[i], false);
    for (size_t i = 0; i < sizeof defines / sizeof *defines; i++) {
        char line[64];
        snprintf(line, sizeof line, "--source examples/plain.cu --define %s", defines[i]);
        say_spec(&g, line, false);
    }
    say_spec(&g, "--source examples/plain.cu --define FA_LSE --lse", false);
    say_spec(&g, "--source examples/plain.cu --define X=1 --define FA_CAUSAL=3", false);
    say_spec(&g, "--source examples/plain.cu --include src --include none", false);
    say_spec(&g, "--source examples/plain.cu --include src", false);
    say_spec(&g, "--source examples/plain.cu --include README.md", false);
    say_spec(&g, longer, false);
    say_spec(&g, "--kernel light --vs light", true);
    say_spec(&g, "--kernel light --vs light:m=16,warps=1 --lse", true);
    say_spec(&g, "--kernel light --vs light:m=16,lse=0 --lse", true);
    say_spec(&g, "--kernel light --vs light:lse=1", true);
    say_spec(&g, "--kernel light --vs light:dtype=bf16", true);
    say_spec(&g, "--kernel light --dtype bf16 --vs light", true);
    say_spec(&g, "--kernel light --dtype bf16 --vs light:dtype=fp16", true);
    say_spec(&g, "--kernel light --dtype e4m3 --vs light", true);
    say_spec(&g, "--kernel light --dim 24 --vs light:dtype=e4m3", true);
    say_spec(&g, "--kernel light --dim 32 --dim-v 24 --vs light:dtype=e4m3", true);
    say_spec(&g, "--kernel light --vs source:examples/plain.cu:m=32", true);
    say_spec(&g, "--kernel light --vs library:./Makefile", true);
    say_spec(&g, "--kernel light --vs nosuch", true);
    golden_compare(&g, "specs.txt");
}

/* Without --kernel: the kernels that run one after the other where each refuses. A knob is of the first. */
TEST(defaults_make_room)
{
    static const char *const cases[][4] = {{"--seq 64", "wmma"},
                                           {"--window 3,0", "mma", "light"},
                                           {"--window 3,0 --m 64", "mma"},
                                           {"--window 3,0 --kernel mma", "mma"},
                                           {"--op backward", "mma", "light"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fa_options options;
        fa_problem problem;
        fa_spec spec;
        assert_int_equal(parse(cases[i][0], &options), FA_PASS);
        assert_int_equal(fa_problem_make(&options, &problem, &why), FA_PASS);
        assert_int_equal(fa_spec_make(&options, &problem, &spec, &why), FA_PASS);
        for (int at = 1; at < 3 && cases[i][at] != NULL; at++) {
            assert_string_equal(spec.asked->name, cases[i][at]);
            assert_int_equal(fa_spec_next(&problem, &spec), cases[i][at + 1] != NULL);
        }
    }
}

TEST(splits_are_chosen)
{
    golden g = {0};
    const int32_t shapes[][5] = {{1, 8, 8, 64, 4096},     {1, 8, 2, 1, 8192},    {4, 8, 1, 3, 32768},
                                 {1, 16, 16, 128, 65536}, {2, 12, 4, 700, 700},  {1, 32, 8, 257, 16384},
                                 {3, 5, 5, 129, 1025},    {1, 1, 1, 1, 1 << 20}, {1, 44, 44, 128, 3000},
                                 {8, 16, 2, 2, 2047},     {1, 3, 3, 2048, 2048}, {1, 7, 7, 4000, 9000},
                                 {1, 4, 1, 3, 100},       {1, 2, 2, 3000, 600},  {1, 9, 1, 1, 1 << 17},
                                 {1, 2, 2, 3000, 2900}}; /* the last with a window */
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    for (size_t i = 0; i < SHAPES; i++) {
        const int32_t *s = shapes[i], sms[] = {4, 58, 132}, warps[] = {4, 8};
        golden_say(&g, "%d %d/%d %d %d:", s[0], s[1], s[2], s[3], s[4]);
        for (size_t k = 0; k < fa_registry_count(); k++) {
            const fa_kernel_row *row = fa_registry_at(k);
            if (row->space.splits == NULL)
                continue;
            golden_say(&g, "  %-12s", row->name);
            for (int which = 0; which < 12; which++) {
                fa_problem p = {s[0], s[1], s[2], s[3], s[4], 64, which % 2, 0.125f};
                if (i + 1 == SHAPES)
                    p.windowed = true, p.window_left = 700, p.window_right = 600;
                const fa_knobs knobs = {.m = 64, .n = which % 3 ? 128 : 64, .warps = warps[which / 2 % 2]};
                golden_say(&g, " %d", fa_splits_choose(row, &knobs, &p, sms[which / 4]));
            }
        }
        golden_say(&g, "\n");
    }
    golden_compare(&g, "splits.txt");
}

static void expect_splits(const fa_kernel_row *row, const fa_knobs *knobs, const fa_problem *p, int32_t sms,
                          int32_t least, int32_t most)
{
    const int32_t splits = fa_splits_choose(row, knobs, p, sms);
    if (splits < least || splits > most)
        fail_msg(
            "%s m=%d warps=%d, batch %d heads %d/%d seq %d/%d dim %d %s on %d multiprocessors: splits %d, expected "
            "%d to %d",
            row->name, knobs->m, knobs->warps, p->batch, p->heads, p->kv_heads, p->seq_q, p->seq_kv, p->dim,
            p->causal ? "causal" : "full", sms, splits, least, most);
}

/* A problem, its tile, and the least and the most splits that are right. */
typedef struct split_case {
    fa_problem problem;
    int32_t m, n, least, most;
} split_case;

static bool packed(const fa_kernel_row *row) { return row->traits.pack_heads && !row->traits.backward; }
static bool packed_wgmma(const fa_kernel_row *row) { return packed(row) && row->traits.wgmma; }
static bool packed_without_wgmma(const fa_kernel_row *row) { return row->traits.pack_heads && !row->traits.wgmma; }
static bool of_gradients(const fa_kernel_row *row) { return row->traits.backward; }

/* Of all kernels of a kind that choose their splits: there are some. warps 0: 16 rows of the tile each */
static void expect_of(bool (*is)(const fa_kernel_row *row), const split_case *cases, size_t count, int32_t warps,
                      int32_t sms)
{
    int kernels = 0;
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        if (row->space.splits == NULL || !is(row))
            continue;
        kernels++;
        for (const split_case *c = cases; c < cases + count; c++) {
            const fa_knobs knobs = {.m = c->m, .n = c->n, .warps = warps > 0 ? warps : c->m / 16};
            expect_splits(row, &knobs, &c->problem, sms, c->least, c->most);
        }
    }
    assert_true(kernels > 0);
}

/* By length: a long sequence among short ones is split until it ends with the others; equal ones that fill the places,
 * or that are too many, are not. 132 multiprocessors with two places each, 8 K/V heads. */
TEST(splits_of_unlike_lengths)
{
    const struct {
        int32_t longest, sequences, others, splits;
    } cases[] = {{9000, 3, 100, 11},  /* 30 parts of the longest: 256 blocks on 264 places */
                 {20000, 8, 1000, 4}, /* 18 parts: 200 blocks */
                 {40000, 32, 5000, 3},
                 {8192, 32, 8192, 1},
                 {8192, 64, 8192, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char line[700] = "--heads 64 --kv-heads 8 --dim 128 --lengths ";
        for (int32_t b = 0; b < cases[c].sequences; b++)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s1:%d", b > 0 ? "," : "",
                     b == 0 ? cases[c].longest : cases[c].others);
        CLEANUP(fa_problem_free) fa_problem problem = problem_of(line);
        expect_of(packed, &(split_case){problem, 64, 64, cases[c].splits, cases[c].splits}, 1, 4, 132);
    }
}

/* A part has at least 1024 keys, with wgmma 512, with packed heads 256. Where one key is missing to two parts there is
 * one part. With a window or a chunk the keys that count are those that its rows see together. */
TEST(a_part_has_enough_keys_that_are_seen)
{
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        if (row->space.splits == NULL || row->traits.backward)
            continue;
        const int32_t keys = row->traits.pack_heads ? 256 : row->traits.wgmma ? 512 : 1024;
        const fa_knobs knobs = {.m = 64, .n = 64, .warps = 4};
        for (int32_t parts = 1; parts <= 2; parts++) {
            const fa_problem p = {1, 1, 1, 1, keys * 2 - (parts == 1), 64, false, 0.125f};
            expect_splits(row, &knobs, &p, 132, parts, parts);
        }
        const fa_problem
            window =
                {1, 1, 1, 1, 1 << 16, 64, false, 0.125f, .windowed = true, .window_left = 200, .window_right = 5000},
            open = {1, 1, 1, 1, 1 << 16, 64, false, 0.125f, .windowed = true, .window_left = 200, .window_right = -1},
            chunk = {1, 1, 1, 1, 1 << 16, 64, false, 0.125f, .chunk = 3000};
        const fa_problem seen[3] = {{1, 1, 1, 1, 5201, 64, false, 0.125f},
                                    {1, 1, 1, 1, 1 << 16, 64, false, 0.125f},
                                    {1, 1, 1, 1, 3001, 64, false, 0.125f}};
        const fa_problem *const all[3] = {&window, &open, &chunk};
        for (int of = 0; of < 3; of++) {
            const int32_t splits = fa_splits_choose(row, &knobs, &seen[of], 132);
            assert_true(splits > 1);
            expect_splits(row, &knobs, all[of], 132, splits, splits);
        }
    }
}

/* Packed tiles of wgmma: splits near those that were fastest on an H200, 132 multiprocessors. */
TEST(packed_splits_of_wgmma_are_as_measured)
{
    static const split_case cases[] = {
        {{16, 64, 8, 8, 8192, 128, true, 0.1f}, 128, 64, 1, 1},  /* 128 tiles: memory is busy */
        {{12, 8, 8, 1, 8192, 128, true, 0.1f}, 64, 64, 1, 1},    /* 96: two splits took 9 % more */
        {{16, 64, 8, 8, 8192, 64, true, 0.1f}, 64, 64, 1, 1},    /* two took 3 % more */
        {{1, 32, 8, 1, 32768, 128, true, 0.1f}, 64, 64, 12, 16}, /* 8 took 4 % more, 17 7 % */
        {{1, 8, 1, 1, 32768, 128, true, 0.1f}, 64, 64, 20, 40},  /* 16 took 13 % more, 64 23 % */
        {{1, 8, 8, 1, 4096, 128, true, 0.1f}, 64, 64, 6, 16},    /* 4 took 28 % more */
        {{1, 32, 4, 1, 4096, 128, true, 0.1f}, 64, 64, 16, 16},  /* 13 took 3 % more */
        {{1, 32, 4, 1, 16384, 128, true, 0.1f}, 64, 64, 26, 33}, /* 19 took 15 % more */
        {{4, 64, 8, 1, 8192, 128, true, 0.1f, .fp8_kv = true}, 64, 64, 8, 8},
        {{64, 32, 8, 1, 4096, 128, true, 0.1f}, 128, 64, 1, 1},   /* four waves */
        {{8, 32, 8, 1, 1024, 128, true, 0.1f}, 128, 64, 1, 2},    /* half a wave */
        {{1, 32, 8, 1, 16384, 256, true, 0.1f}, 128, 64, 10, 16}, /* one block a multiprocessor */
    };
    expect_of(packed_wgmma, cases, sizeof cases / sizeof *cases, 0, 132);
}

/* Blocks share keys where they are too few for 132 multiprocessors, or where all wait for the longest. */
TEST(gradients_share_the_keys_of_few_blocks)
{
    static const split_case cases[] = {
        {{1, 32, 2, 1024, 1024, 256, true, 0.1f}, 64, 64, 8, 8}, /* 32 blocks, the longest 16 x 16 tiles */
        {{1, 32, 2, 2048, 2048, 256, true, 0.1f}, 64, 64, 4, 4}, /* two waves: as the first ends, the second begins */
        {{1, 32, 2, 4096, 4096, 256, true, 0.1f}, 64, 64, 2, 2},
        {{1, 32, 2, 8192, 8192, 256, true, 0.1f}, 64, 64, 1, 1},   /* 1.14 times over 8 */
        {{1, 32, 2, 16384, 16384, 256, true, 0.1f}, 64, 64, 8, 8}, /* 1.37 times over 1, whose blocks drift apart */
        {{1, 32, 2, 2048, 2048, 256, false, 0.1f}, 64, 64, 2, 2},  /* 64 alike */
        {{1, 32, 2, 4096, 4096, 256, false, 0.1f}, 64, 64, 1, 1},  /* a wave */
        /* heads of 256 columns do not stay in the L2 */
        {{1, 32, 2, 4096, 4096, 256, true, 0.1f, .deterministic = true}, 64, 64, 8, 8},
        {{1, 32, 2, 8192, 8192, 256, true, 0.1f, .deterministic = true}, 64, 64, 8, 8},
        {{8, 16, 16, 2048, 2048, 128, true, 0.1f, .deterministic = true}, 64, 128, 1, 1},
        {{1, 32, 2, 2048, 2048, 256, false, 0.1f, .deterministic = true}, 64, 64, 2, 2},
        /* of two blocks of a head the second would wait for the first; without a mask none does */
        {{1, 2, 2, 4096, 4096, 128, true, 0.1f, .deterministic = true}, 64, 128, 1, 1},
        {{1, 2, 2, 4096, 4096, 128, false, 0.1f, .deterministic = true}, 64, 128, 2, 2},
        {{2, 64, 8, 1024, 1024, 128, true, 0.1f}, 64, 128, 2, 2},
        {{2, 64, 8, 2048, 2048, 128, true, 0.1f}, 64, 128, 1, 1}, /* 1.2 times over 2 */
        {{2, 64, 64, 2048, 2048, 128, true, 0.1f}, 64, 128, 1, 1},
        {{1, 32, 2, 64, 8192, 256, true, 0.1f}, 64, 64, 1, 1}, /* 256 blocks of 16 tiles */
        /* two tiles each; the window's other side is open */
        {{1, 1, 1, 8192, 8192, 64, .scale = 0.1f, .windowed = true, .window_left = 127}, 128, 128, 1, 1},
        {{1, 1, 1, 8192, 8192, 64, .scale = 0.1f, .windowed = true, .window_left = -1}, 128, 128, 2, 2},
        {{1, 1, 1, 8192, 8192, 64, .scale = 0.1f, .chunk = 128}, 128, 128, 1, 1}};
    expect_of(of_gradients, cases, sizeof cases / sizeof *cases, 12, 132);
}

/* Packed tiles of the others that fill 19 of 20 places are not split. */
TEST(a_wave_of_95_percent_is_full)
{
    const split_case one = {{1, 19, 19, 1, 16384, 64, false, 0.125f}, 64, 64, 1, 1},
                     more = {one.problem, 64, 64, 2, 64};
    expect_of(packed_without_wgmma, &one, 1, 4, 10); /* two blocks a multiprocessor */
    expect_of(packed_without_wgmma, &more, 1, 4, 11);
    expect_of(packed_without_wgmma, &one, 1, 5, 19); /* one block a multiprocessor */
    expect_of(packed_without_wgmma, &more, 1, 4, 19);
}

/* Without --arch: sm_90a for a kernel that is for nothing else, as long as it is what runs. */
TEST(a_kernel_names_its_architecture)
{
    int specific = 0;
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        const bool own = row->traits.arch_specific;
        const struct {
            const char *more;
            const char *arch;
        } cases[] = {{"", own ? "sm_90a" : "sm_89"},
                     {"--arch sm_80", "sm_80"},
                     {"--compile-only", "sm_89"},
                     {"--source examples/plain.cu", "sm_89"}};
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            fa_options options;
            char line[128];
            snprintf(line, sizeof line, "--kernel %s %s", row->name, cases[k].more);
            assert_int_equal(parse(line, &options), FA_PASS);
            if (strcmp(fa_spec_arch(&options), cases[k].arch) != 0)
                fail_msg("%s: %s, expected %s", line, fa_spec_arch(&options), cases[k].arch);
        }
        specific += own;
    }
    assert_true(specific > 0);
    fa_options options;
    assert_int_equal(parse("", &options), FA_PASS);
    assert_string_equal(fa_spec_arch(&options), "sm_89");
}
