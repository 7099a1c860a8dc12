/* Findings of the emulator: told apart by class, memory and lines, equal-value stores last, twenty of them listed. */
#include "device/findings.h"
#include "unit.h"

static fa_finding race(const char *fault, const char *first, const char *second)
{
    fa_finding one = {.memory = "o"};
    snprintf(one.fault, sizeof one.fault, "%s", fault);
    snprintf(one.at[0], sizeof one.at[0], "%s", first);
    snprintf(one.at[1], sizeof one.at[1], "%s", second);
    snprintf(one.text, sizeof one.text, "%s in o: %s after %s", fault, first, second);
    return one;
}

static void add(fa_findings *all, const char *fault, const char *first, const char *second)
{
    const fa_finding one = race(fault, first, second);
    fa_findings_add(all, &one);
}

TEST(lines_in_either_order_are_one_finding)
{
    fa_findings all = {.count = 0};
    add(&all, "data race", "k.cu:1", "k.cu:2");
    add(&all, "data race", "k.cu:2", "k.cu:1");
    assert_int_equal(all.count, 1);
    add(&all, "data race", "k.cu:1", "k.cu:3");
    add(&all, "missing proxy fence", "k.cu:1", "k.cu:2");
    fa_finding elsewhere = race("data race", "k.cu:1", "k.cu:2");
    elsewhere.memory[0] = 'q';
    fa_findings_add(&all, &elsewhere);
    assert_int_equal(all.count, 4);
    assert_int_equal(all.listed, 4);
}

TEST(equal_values_hide_nothing)
{
    fa_findings all = {.count = 0};
    char line[32], text[4096];
    for (int i = 0; i < FA_FINDINGS_LISTED; i++) {
        snprintf(line, sizeof line, "k.cu:%d", 100 + i);
        add(&all, FA_EQUAL_STORES, line, line);
    }
    add(&all, "data race", "k.cu:1", "k.cu:2");
    add(&all, "deadlock", "", "");
    add(&all, FA_EQUAL_STORES, "k.cu:200", "k.cu:200");
    assert_int_equal(all.count, FA_FINDINGS_LISTED + 3);
    assert_int_equal(all.listed, FA_FINDINGS_LISTED);
    assert_string_equal(all.list[0].fault, "data race");
    assert_string_equal(all.list[1].fault, "deadlock");
    assert_string_equal(all.list[2].at[0], "k.cu:100");
    fa_findings_text(&all, text, sizeof text);
    holds(text, "data race in o: k.cu:1 after k.cu:2\nand deadlock in o:  after \n");
    holds(text, "\nand equal-value stores in o: k.cu:117 and k.cu:117\nand 3 more");
    all.more = true;
    fa_findings_text(&all, text, sizeof text);
    holds(text, "and 3 more\nthere may be others");
}

/* As many real ones as the list holds leave no room for others. */
TEST(twenty_are_listed)
{
    fa_findings all = {.count = 0};
    char line[32];
    add(&all, FA_EQUAL_STORES, "k.cu:9", "k.cu:9");
    for (int i = 0; i < FA_FINDINGS_LISTED + 2; i++) {
        snprintf(line, sizeof line, "k.cu:%d", 100 + i);
        add(&all, "data race", line, line);
    }
    assert_int_equal(all.count, FA_FINDINGS_LISTED + 3);
    assert_string_equal(all.list[FA_FINDINGS_LISTED - 1].at[0], "k.cu:119");
    assert_string_equal(all.list[FA_FINDINGS_LISTED - 1].fault, "data race");
}
