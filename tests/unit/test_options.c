#include "input/options.h"
#include "input/options_help.h"
#include "unit.h"

static fa_options options;
static fa_reason why;

static fa_status parse(const char *words) { return parse_words(words, &options, &why); }

static void refused(const char *words, const char *option, const char *range)
{
    assert_int_equal(parse(words), FA_USAGE);
    if (strstr(why.text, option) == NULL || strstr(why.text, range) == NULL || strchr(why.text, '\n') != NULL)
        fail_msg("'%s' was refused with '%s'", words, why.text);
}

TEST(defaults_are_the_contract)
{
    assert_int_equal(parse(""), FA_PASS);
    assert_int_equal(options.batch, 2);
    assert_int_equal(options.heads, 8);
    assert_int_equal(options.seq, 512);
    assert_int_equal(options.dim, 64);
    assert_int_equal(options.seeds, 5);
    assert_int_equal(options.seed, 42);
    assert_int_equal(options.check, FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS);
    assert_string_equal(options.vs.name, "");
    assert_true(options.atol == FA_UNSET_REAL && options.rtol == FA_UNSET_REAL); /* the rule of the type */
    assert_int_equal(options.dtype, FA_DTYPE_FP16);
    assert_int_equal(options.knob.m, FA_UNSET);
    assert_false(options.causal);
}

TEST(values_land_in_their_fields)
{
    assert_int_equal(
        parse("--m 32 --warps=8 --vec 4 --acc fp16 --causal --scale 0.5 --dist needle --json - --splits 0"), FA_PASS);
    assert_int_equal(options.knob.m, 32);
    assert_int_equal(options.knob.warps, 8);
    assert_int_equal(options.knob.vec, 4);
    assert_int_equal(options.knob.acc, 1);
    assert_int_equal(options.knob.splits, 0);
    assert_true(options.causal);
    assert_true(options.scale == 0.5);
    assert_int_equal(options.dist, FA_DIST_NEEDLE);
    assert_string_equal(options.json, "-");
}

TEST(bad_input_names_option_and_range)
{
    refused("--m 0", "--m", "1 to 1024");
    refused("--m abc", "--m", "1 to 1024");
    refused("--m 32x", "--m", "1 to 1024");
    refused("--m 99999999999999999999", "--m", "1 to 1024");
    refused("--m \r32", "--m", "1 to 1024");
    refused("--m \v32", "--m", "1 to 1024");
    refused("--m=", "--m", "1 to 1024");
    refused("--scale \f1", "--scale", "to");
    refused("--scale=", "--scale", "to");
    refused("--vs light:m=000000000000000000000000000003211", "m in --vs", "1 to 1024");
    refused("--vs light:m=0000000000000000000000000000064garbage", "m in --vs", "1 to 1024");
    refused("--warps 64", "--warps", "1 to 32");
    refused("--seq -1", "--seq", "1 to");
    refused("--dim 584", "--dim", "16 to 576");
    refused("--atol nan", "--atol", "0 to");
    refused("--scale inf", "--scale", "to");
    refused("--swizzle 2", "--swizzle", "0 to 1");
    refused("--acc fp64", "--acc", "fp32|fp16");
    refused("--device gpu", "--device", "auto|cuda|emu");
    refused("--m", "--m", "1 to 1024");
    refused("--seq --causal", "--seq", "1 to");
    refused("--causal=1", "--causal", "no value");
    refused("--nope", "--nope", "--help");
    refused("--ker light", "--ker", "--help");
    refused("light", "light", "--help");
}

TEST(sets_of_references)
{
    static const struct {
        const char *words;
        int32_t set;
    } good[] = {{"--check cpu", FA_REFERENCE_CPU},
                {"--check cublas", FA_REFERENCE_CUBLAS},
                {"--check plain", FA_REFERENCE_PLAIN},
                {"--check cublas,cpu", FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS},
                {"--check=cpu,cpu", FA_REFERENCE_CPU}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(parse(good[i].words), FA_PASS);
        assert_int_equal(options.check, good[i].set);
    }
    static const char *const bad[] = {"", ",", "cpu,", ",cpu", "CPU", "none", "cublasx", "cpu,,cublas", "cpu|cublas"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "--check=%s", bad[i]);
        refused(words, "--check takes a comma-separated list of cpu|cublas|plain, not", bad[i]);
    }
    refused("--check", "--check needs a value", "LIST");
}

TEST(spec_of_vs)
{
    assert_int_equal(parse("--vs light"), FA_PASS);
    assert_string_equal(options.vs.name, "light");
    assert_int_equal(options.vs.knobs.m, FA_UNSET);
    assert_int_equal(parse("--m 64 --vs light:m=32,warps=4,acc=fp16"), FA_PASS);
    assert_string_equal(options.vs.name, "light");
    assert_int_equal(options.knob.m, 64);
    assert_int_equal(options.vs.knobs.m, 32);
    assert_int_equal(options.vs.knobs.warps, 4);
    assert_int_equal(options.vs.knobs.acc, 1);
    assert_int_equal(options.vs.knobs.n, FA_UNSET);
    assert_int_equal(options.vs.lse, FA_UNSET);
    assert_int_equal(parse("--lse --vs light:lse=0,m=32"), FA_PASS);
    assert_true(options.lse && options.vs.lse == 0 && options.vs.knobs.m == 32);
    assert_int_equal(options.vs.dtype, FA_UNSET);
    assert_int_equal(parse("--dtype bf16 --vs light:dtype=fp16,m=32"), FA_PASS);
    assert_true(options.dtype == FA_DTYPE_BF16 && options.vs.dtype == FA_DTYPE_FP16 && options.vs.knobs.m == 32);
    refused("--vs light:dtype=fp32", "dtype in --vs", "fp16|bf16");
    refused("--dtype half", "--dtype", "fp16|bf16");
    assert_int_equal(parse("--vs light"), FA_PASS);
    assert_null(options.vs.library);
    assert_int_equal(parse("--vs library:a:b,m=3.so"), FA_PASS); /* all of it is the path */
    assert_string_equal(options.vs.name, "library");
    assert_string_equal(options.vs.library, "a:b,m=3.so");
    assert_int_equal(options.vs.knobs.m, FA_UNSET);
    assert_int_equal(parse("--vs library:x.so --vs light"), FA_PASS);
    assert_null(options.vs.library);
    static const char *const bad[] = {
        "", ":m=1", "light:m", "light:m=", "light:m=0", "light:m=32,", "light:seq=4", "light:,", "light:m=1=2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[64];
        snprintf(words, sizeof words, "--vs=%s", bad[i]);
        refused(words, "--vs", "");
    }
}

TEST(help_names_every_option)
{
    FREED char *help = fa_options_help();
    const char *const names[] = {"--kernel",  "--vs SPEC",    "--seq 1..", "--dist",
                                 "--timeout", "(cpu,cublas)", "exit codes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        holds(help, names[i]);
}

static void see_option(void *to, const fa_option_facts *facts)
{
    int *seen = to;
    seen[0]++;
    if (strcmp(facts->name, "seq") == 0) {
        seen[1]++;
        assert_string_equal(facts->group, "problem");
        assert_string_equal(facts->value, "1..1048576");
        assert_string_equal(facts->fallback, " (512)");
        assert_true(facts->min == 1 && facts->max == 1048576);
    } else if (strcmp(facts->name, "causal") == 0) {
        seen[1]++;
        assert_string_equal(facts->value, "");
        assert_string_equal(facts->fallback, "");
        assert_true(facts->min == facts->max);
    }
}

TEST(each_option_is_told_with_its_range_and_default)
{
    int seen[2] = {0, 0};
    fa_options_each(see_option, seen);
    assert_true(seen[0] > 40);
    assert_int_equal(seen[1], 2);
}

TEST(words)
{
    char out[32];
    assert_string_equal(fa_word("auto|cuda|emu", 0, out), "auto");
    assert_string_equal(fa_word("auto|cuda|emu", 2, out), "emu");
    assert_string_equal(fa_word("auto|cuda|emu", 3, out), "");
}
