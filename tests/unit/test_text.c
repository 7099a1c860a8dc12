/* Text for other programs: valid UTF-8 and words for a shell. And programs that are run. */
#include "base/text.h"
#include "base/process.h"
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

static void becomes(char *made, const char *want)
{
    assert_string_equal(made, want);
    free(made);
}

TEST(text_stays)
{
    becomes(fa_utf8(""), "");
    becomes(fa_utf8("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf"),
            "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf");
}

#define NO "\xef\xbf\xbd"
TEST(other_bytes_are_replaced)
{
    becomes(fa_utf8("a\xff"), "a" NO);
    becomes(fa_utf8("\xc3"), NO);
    becomes(fa_utf8("\xe2\x82"), NO NO);
    becomes(fa_utf8("\xc0\xaf"), NO NO);               /* overlong */
    becomes(fa_utf8("\xe0\x80\xaf"), NO NO NO);        /* overlong */
    becomes(fa_utf8("\xed\xa0\x80"), NO NO NO);        /* a surrogate */
    becomes(fa_utf8("\xf4\x90\x80\x80"), NO NO NO NO); /* beyond U+10FFFF */
    becomes(fa_utf8("\x80z"), NO "z");
}

TEST(words_for_a_shell)
{
    becomes(fa_shell_word("light:m=32,warps=4"), "light:m=32,warps=4");
    becomes(fa_shell_word(""), "''");
    becomes(fa_shell_word("a b"), "'a b'");
    becomes(fa_shell_word("it's"), "'it'\\''s'");
    becomes(fa_shell_word("$(x)`\"\\"), "'$(x)`\"\\'");
    becomes(fa_shell_word("\xc3\xa9"), "'\xc3\xa9'");
    becomes(fa_shell_word("a\n\xff'\\"), "$'a\\012\\377\\'\\\\'");
}

/* Two mappings that fit in memory become one that does not: a fork would ask for all of it again. */
TEST(programs_run_beside_large_tensors)
{
    const char *const hello[] = {"echo", "hello", NULL}, *const missing[] = {"/no/such/program", NULL};
    const size_t half = (size_t)sysconf(_SC_PHYS_PAGES) / 10 * 6 * (size_t)sysconf(_SC_PAGESIZE);
    char *text, *at[2] = {NULL};
    for (int i = 0; i < 2; i++)
        at[i] = mmap(i == 0 ? NULL : at[0] - half, half, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(fa_run(hello, &text), 0);
    becomes(text, "hello\n");
    assert_int_equal(fa_run(missing, &text), -1);
    becomes(text, "");
    for (int i = 0; i < 2; i++)
        munmap(at[i], half); /* or not, where it was not mapped */
}
