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
    char *text, *high = mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *low = MAP_FAILED;
    if (high != MAP_FAILED)
        low = mmap(high - half, half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(fa_run(hello, &text), 0);
    becomes(text, "hello\n");
    assert_int_equal(fa_run(missing, &text), -1);
    becomes(text, "");
    if (high != MAP_FAILED)
        munmap(high, half);
    if (low != MAP_FAILED)
        munmap(low, half);
}
