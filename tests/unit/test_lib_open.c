/* Where vendor libraries are looked for. The "vendor library" is a copy of the C library's libm under another name. */
#include "base/file.h"
#include "base/process.h"
#include "cuda/lib_open.h"
#include "unit.h"

#include <dlfcn.h>

static const char *const NAMES[] = {"libfa_no_such.so.7", "libfa_probe.so.9", NULL};

/* A folder with `below`/libfa_probe.so.9 in it; the caller frees its name. */
static char *make_root(const char *below)
{
    fa_reason why;
    char *root = strdup("/tmp/fa_lib_open_XXXXXX");
    assert_non_null(mkdtemp(root));
    FREED char *folder = fa_format("%s/%s", root, below), *path = fa_format("%s/libfa_probe.so.9", folder);
    assert_int_equal(fa_make_dirs(folder, &why), FA_PASS);
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double);
    assert_true(fa_library_find(libm, "cos", &cosine));
    Dl_info info;
    void *address;
    memcpy(&address, &cosine, sizeof address);
    assert_true(dladdr(address, &info));
    FREED char *data = NULL;
    size_t size;
    assert_int_equal(fa_read_file(info.dli_fname, &data, &size, &why), FA_PASS);
    assert_int_equal(fa_write_file(path, data, size, &why), FA_PASS);
    return root;
}

static void remove_root(char *root)
{
    FREED char *output = NULL;
    assert_int_equal(fa_run((const char *const[]){"rm", "-r", root, NULL}, &output), 0);
    free(root);
}

static void found_below_a_folder_of_the_path(const char *below)
{
    char *root = make_root(below), *path = fa_format("/nonexistent::%s:/tmp", root);
    void *library = NULL;
    fa_reason why = {""};
    setenv("FA_LIBRARY_PATH", path, 1);
    assert_int_equal(fa_library_open(NAMES, &library, &why), FA_PASS);
    double (*cosine)(double) = NULL;
    assert_true(fa_library_find(library, "cos", &cosine));
    assert_true(cosine(0.0) == 1.0);
    assert_false(fa_library_find(library, "fa_no_such_symbol", &cosine));
    dlclose(library);
    unsetenv("FA_LIBRARY_PATH");
    free(path);
    remove_root(root);
}

TEST(found_in_the_folder_itself) { found_below_a_folder_of_the_path("."); }

TEST(found_in_a_wheel)
{
    found_below_a_folder_of_the_path("nvidia/cudnn/lib");
    found_below_a_folder_of_the_path("nvidia/cu13/lib");
}

TEST(refused_with_the_loaders_words)
{
    void *library = NULL;
    fa_reason why = {""};
    setenv("FA_LIBRARY_PATH", "/nonexistent", 1);
    assert_int_equal(fa_library_open(NAMES, &library, &why), FA_NOT_RUN);
    unsetenv("FA_LIBRARY_PATH");
    holds(why.text, "libfa_no_such.so.7");
    holds(why.text, "cannot open shared object file");
}
