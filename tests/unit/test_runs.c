/* Lines of --runs: words, options on top of the command line's, refusals that name the line. */
#include "base/file.h"
#include "input/runs.h"
#include "unit.h"

#include <unistd.h>

static fa_reason why;
static char path[64];

int unit_setup(void **state)
{
    snprintf(path, sizeof path, "/tmp/fa_test_runs.%d", (int)getpid());
    return 0;
}

int unit_teardown(void **state)
{
    unlink(path);
    return 0;
}

static fa_status read_lines(const char *text, size_t size, fa_runs *runs)
{
    char *argv[] = {"./fa_bench", "--seeds", "3", "--runs", path, "--m", "16", "--json=out.jsonl", NULL};
    const int argc = 8;
    fa_options options;
    assert_int_equal(fa_write_file(path, text, size, &why), FA_PASS);
    assert_int_equal(fa_options_parse(argc, argv, &options, &why), FA_PASS);
    return fa_runs_make(argc, argv, &options, runs, &why);
}

static void refused(const char *text, size_t size, const char *where, const char *words)
{
    CLEANUP(fa_runs_free) fa_runs runs;
    assert_int_equal(read_lines(text, size, &runs), FA_USAGE);
    if (strstr(why.text, where) == NULL || strstr(why.text, words) == NULL || strchr(why.text, '\n') != NULL)
        fail_msg("'%s' was refused with '%s'", text, why.text);
}

static void split_is(const char *line, int count, const char *const expected[])
{
    char text[256], *words[FA_RUN_WORDS_MAX];
    int got = 0;
    snprintf(text, sizeof text, "%s", line);
    assert_int_equal(fa_runs_split(text, words, &got, &why), FA_PASS);
    assert_int_equal(got, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(words[i], expected[i]);
}

TEST(words_are_parted_by_blanks_and_held_by_quotes)
{
    split_is("", 0, NULL);
    split_is(" \t\r", 0, NULL);
    split_is("--m 32\t --n  64\r", 4, (const char *const[]){"--m", "32", "--n", "64"});
    split_is("--source 'a b.cu'", 2, (const char *const[]){"--source", "a b.cu"});
    split_is("--source=\"it's\"x ''", 2, (const char *const[]){"--source=it'sx", ""});
}

TEST(open_quotes_and_too_many_words_are_refused)
{
    char *words[FA_RUN_WORDS_MAX], open[] = "--source 'a b", many[2 * FA_RUN_WORDS_MAX + 3];
    int count = 0;
    assert_int_equal(fa_runs_split(open, words, &count, &why), FA_USAGE);
    for (int given = FA_RUN_WORDS_MAX; given <= FA_RUN_WORDS_MAX + 1; given++) {
        for (int i = 0; i < 2 * given; i++)
            many[i] = i % 2 ? ' ' : 'x';
        many[2 * given] = '\0';
        assert_int_equal(fa_runs_split(many, words, &count, &why), given == FA_RUN_WORDS_MAX ? FA_PASS : FA_USAGE);
        assert_int_equal(count, FA_RUN_WORDS_MAX);
    }
}

TEST(a_run_for_each_line_on_top_of_the_command_line)
{
    static const char text[] = "\xEF\xBB\xBF# what\n\n--n 128\n  # not this\n--m 64 --seeds 1 --causal";
    CLEANUP(fa_runs_free) fa_runs runs;
    assert_int_equal(read_lines(text, sizeof text - 1, &runs), FA_PASS);
    assert_int_equal(runs.count, 2);
    const fa_options *first = &runs.at[0]->options, *second = &runs.at[1]->options;
    assert_int_equal(first->line, 3);
    assert_int_equal(first->knob.m, 16);
    assert_int_equal(first->knob.n, 128);
    assert_int_equal(first->seeds, 3);
    assert_int_equal(second->line, 5);
    assert_int_equal(second->knob.m, 64);
    assert_int_equal(second->knob.n, FA_UNSET);
    assert_int_equal(second->seeds, 1);
    assert_true(second->causal && !first->causal);
    assert_string_equal(second->json, "out.jsonl");
    fa_runs_done(&runs, 0);
    assert_true(runs.at[0] == NULL && runs.at[1] != NULL && runs.count == 2);
}

TEST(without_a_list_the_command_line_is_the_run)
{
    char *argv[] = {"./fa_bench", "--m", "16", "--json", "-", NULL};
    fa_options options;
    CLEANUP(fa_runs_free) fa_runs runs;
    assert_int_equal(fa_options_parse(5, argv, &options, &why), FA_PASS);
    assert_int_equal(fa_runs_make(5, argv, &options, &runs, &why), FA_PASS);
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs.at[0]->options.line, 0);
    assert_int_equal(runs.at[0]->argc, 5);
    assert_string_equal(runs.at[0]->argv[4], "-");
}

TEST(a_bad_line_is_named)
{
    refused("--m 32\n--m 0\n", 13, " line 2: ", "--m takes a whole number from 1 to 1024");
    refused("--m 32\n\n\n--nope 0\n", 18, " line 4: ", "unknown option --nope");
    refused("light\n", 6, " line 1: ", "is not an option");
    refused("--m\n", 4, " line 1: ", "--m needs a value");
    refused("--source 'a\n", 12, " line 1: ", "a quote is open");
    refused("--m 32\0--n 64\n", 14, " line 1: ", "a zero byte");
    refused("\n# nothing\n", 11, "--runs: no run in ", path);
}

TEST(what_belongs_to_the_whole_command_is_refused_with_its_reason)
{
    static const char *const lines[][2] = {
        {"--runs more", "a list has no lists in it"},
        {"--json x", "one file takes the records"},
        {"--json=x", "one file takes the records"},
        {"--device cuda", "opened once"},
        {"--gpu 1", "opened once"},
        {"--sanitize address", "starts with its runtime"},
        {"--race", "starts with its runtime"},
        {"--help", "is no run"},
        {"--version", "is no run"},
        {"--list-kernels", "is no run"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        refused(lines[i][0], strlen(lines[i][0]), " line 1: --", lines[i][1]);
}

TEST(dumps_and_cubins_belong_on_lines)
{
    char *words[] = {"--dump", "--cubin"};
    assert_int_equal(fa_write_file(path, "--m 16\n", 7, &why), FA_PASS);
    for (int i = 0; i < 2; i++) {
        char *argv[] = {"./fa_bench", "--runs", path, words[i], "x", NULL};
        fa_options options;
        fa_runs runs;
        assert_int_equal(fa_options_parse(5, argv, &options, &why), FA_PASS);
        ends_with(fa_runs_make(5, argv, &options, &runs, &why), FA_USAGE, &why, words[i]);
    }
}

TEST(an_append_is_whole_or_not_there)
{
    char text[64] = "";
    FILE *file = fopen(path, "w+");
    assert_non_null(file);
    assert_int_equal(fa_append(fileno(file), "one\n", 4, &why), FA_PASS);
    assert_int_equal(fa_append(fileno(file), "two\n", 4, &why), FA_PASS);
    rewind(file);
    assert_int_equal(fread(text, 1, sizeof text, file), 8);
    assert_string_equal(text, "one\ntwo\n");
    fclose(file);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    ends_with(fa_append(fileno(full), "one\n", 4, &why), FA_ERROR, &why, "No space left");
    fclose(full);
}

/* What is offered instead of a run does less of something, and more of nothing. */
TEST(a_smaller_run_is_never_larger)
{
    static const struct {
        const char *line, *more; /* NULL: it is small as it is */
    } cases[] = {
        {"--batch 1 --heads 1 --seq 64 --seeds 1", NULL},
        {"--batch 1 --heads 1 --seq 1 --seq-kv 128 --seeds 1", NULL},
        {"--batch 2 --heads 1 --seq 64 --seeds 1", " --batch 1"},
        {"--batch 1 --heads 8 --kv-heads 2 --seq 128 --seeds 1", " --heads 1 --kv-heads 1"},
        {"--batch 1 --heads 1 --seq 4 --seq-kv 9000 --seeds 1", " --seq 4 --seq-kv 128"},
        {"--batch 1 --heads 1 --seq 4096 --seq-kv 9 --seeds 2", " --seq 128 --seq-kv 9 --seeds 1"},
        {"--batch 9 --heads 9 --seq 4096", " --batch 1 --heads 1 --kv-heads 1 --seq 128 --seq-kv 128 --seeds 1"},
        {"--heads 1 --lengths 7:3000,2:1 --seeds 1", " --lengths 7:128"},
        {"--heads 1 --lengths 7:30 --seeds 1", NULL},
        {"--load /tmp/x --batch 9 --seq 4096", " --seeds 1"},
        {"--load /tmp/x --batch 9 --seq 4096 --seeds 1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(fa_runs_free) fa_runs runs;
        assert_int_equal(read_lines(cases[i].line, strlen(cases[i].line), &runs), FA_PASS);
        FREED char *command = fa_command_text(runs.at[0]), *smaller = fa_smaller_text(runs.at[0]);
        if ((smaller == NULL) != (cases[i].more == NULL))
            fail_msg("%s: %s", cases[i].line, smaller != NULL ? smaller : "nothing smaller");
        if (smaller != NULL) {
            assert_memory_equal(smaller, command, strlen(command));
            assert_string_equal(smaller + strlen(command), cases[i].more);
        }
    }
}
