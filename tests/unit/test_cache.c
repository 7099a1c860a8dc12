#include "base/file.h"
#include "base/process.h"
#include "compile/cache.h"
#include "compile/source_digest.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

static fa_reason why;
static char root[] = "/tmp/fa_test_cache.XXXXXX";
static fa_digest key;

static int fresh_root(void **state)
{
    key = fa_sha256("key", 3);
    strcpy(root, "/tmp/fa_test_cache.XXXXXX");
    if (mkdtemp(root) == NULL)
        return 1;
    return setenv("XDG_CACHE_HOME", root, 1);
}

static int drop_root(void **state)
{
    chmod(root, 0755);
    return fa_run((const char *const[]){"rm", "-rf", root, NULL}, NULL);
}

static fa_cache_entry open_entry(bool hit)
{
    fa_cache_entry entry;
    assert_int_equal(fa_cache_open(&key, &entry, &why), FA_PASS);
    assert_int_equal(entry.hit, hit);
    return entry;
}

static fa_cache_entry publish(void)
{
    fa_cache_entry entry = open_entry(false);
    put_file(entry.folder, "module.cubin", "machine code");
    put_file(entry.folder, "log", "figures");
    assert_int_equal(fa_cache_publish(&key, &entry, &why), FA_PASS);
    return entry;
}

TEST_WITH(published_entries_are_found, fresh_root, drop_root)
{
    const fa_cache_entry made = publish();
    assert_string_equal(open_entry(true).folder, made.folder);
}

/* Every file of the entry, truncated or with one bit flipped, makes it a miss; publishing again mends it. */
TEST_WITH(damaged_entries_are_rebuilt, fresh_root, drop_root)
{
    const char *const names[] = {"module.cubin", "log", "sums"};
    for (size_t i = 0; i < 6; i++) {
        const fa_cache_entry made = publish();
        FREED char *path = fa_format("%s/%s", made.folder, names[i / 2]), *data = NULL;
        size_t size = 0;
        assert_int_equal(fa_read_file(path, &data, &size, &why), FA_PASS);
        data[size / 2] ^= 1;
        assert_int_equal(fa_write_file(path, data, i % 2 ? size : size / 2, &why), FA_PASS);
    }
    publish();
    open_entry(true);
}

TEST_WITH(losing_a_race_is_fine, fresh_root, drop_root)
{
    fa_cache_entry slow = open_entry(false);
    publish();
    put_file(slow.folder, "module.cubin", "machine code");
    put_file(slow.folder, "log", "figures");
    assert_int_equal(fa_cache_publish(&key, &slow, &why), FA_PASS);
    FREED char *path = fa_format("%s/module.cubin", slow.folder);
    assert_int_equal(access(path, R_OK), 0);
}

/* A cache that cannot be made (here: its parent is a file) still gives a folder to build in. */
TEST_WITH(unusable_cache_falls_back, fresh_root, drop_root)
{
    put_file(root, "file", "");
    char *parent = fa_format("%s/file", root);
    setenv("XDG_CACHE_HOME", parent, 1);
    free(parent);
    fa_cache_entry entry = open_entry(false);
    assert_true(entry.temporary);
    put_file(entry.folder, "module.cubin", "x");
    fa_cache_discard(&entry);
    assert_int_not_equal(access(entry.folder, F_OK), 0);
}

TEST_WITH(discarded_builds_leave_nothing, fresh_root, drop_root)
{
    fa_cache_entry entry = open_entry(false);
    put_file(entry.folder, "log", "half");
    fa_cache_discard(&entry);
    assert_int_not_equal(access(entry.folder, F_OK), 0);
    entry = open_entry(false);
    fa_cache_discard(&entry);
}

TEST_WITH(source_digest_follows_includes, fresh_root, drop_root)
{
    fa_digest before, after, again;
    FREED char *path = fa_format("%s/a.cu", root);
    put_file(root, "a.cu", "#include \"b.h\"\nint a;\n");
    FREED char *absolute = fa_format("  #  include \"%s/c.h\"\n", root);
    put_file(root, "b.h", absolute);
    put_file(root, "c.h", "#include \"b.h\"\n/* a cycle */\n");
    assert_int_equal(fa_source_digest(path, NULL, &before, &why), FA_PASS);
    put_file(root, "c.h", "#include \"b.h\"\n/* an edit */\n");
    assert_int_equal(fa_source_digest(path, NULL, &after, &why), FA_PASS);
    assert_string_not_equal(before.hex, after.hex);
    assert_int_equal(fa_source_digest(path, NULL, &again, &why), FA_PASS);
    assert_string_equal(again.hex, after.hex);
}

TEST(known_digest)
{
    /* FIPS 180-2, appendix B.1 */
    assert_string_equal(fa_sha256("abc", 3).hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
