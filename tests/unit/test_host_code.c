#include "compile/host_code.h"
#include "unit.h"

/* Names of the host's declarations of a file, joined by blanks; "?" when nothing is known of it. */
static const char *host_of(const char *text)
{
    static char names[512];
    fa_cuda_file file = {.text = text};
    names[0] = '\0';
    if (!fa_host_code_find(&file, 1))
        strcpy(names, "?");
    for (size_t i = 0; i < file.count; i++)
        if (file.declarations[i].host) {
            strcat(names, names[0] != '\0' ? " " : "");
            strcat(names, file.declarations[i].name);
        }
    fa_host_code_free(&file);
    return names;
}

TEST(a_launcher_main_and_what_uses_them)
{
    assert_string_equal(host_of("__global__ void k(int *x) { x[0] = 1; }\n"
                                "void launch(int *x) { k<<<1, 32>>>(x); }\n"
                                "namespace n { void twice(int *x) { launch(x); launch(x); } }\n"
                                "extern \"C\" { int main(int argc, char **argv) { return 0; } }\n"),
                        "launch twice main");
    assert_string_equal(host_of("std::vector<int> list;\nint cdiv(int a, int b) { return a / b; }\n"), "list");
    assert_string_equal(host_of("torch::Tensor forward(torch::Tensor q) { return q; }\n"
                                "PYBIND11_MODULE(NAME, m) { m.def(\"forward\", &forward); }\n"),
                        "forward PYBIND11_MODULE");
}

TEST(device_code_stays)
{
    assert_string_equal(
        host_of("template <typename T, int N = 4>\n"
                "__global__ void __launch_bounds__(128) k(const T *x) { auto f = [&] { return x[0]; }; }\n"
                "struct alignas(16) pair { float a, b; __device__ float sum() const { return a + b; } };\n"
                "constexpr int table[] = {1, 2, 3};\n"
                "static __device__ const char *text = \"cudaMalloc( } <<<\"; // std::vector }\n"
                "#define DEVICE static __device__ __forceinline__\n"
                "DEVICE int f(int main) { return main; }\n"),
        "");
}

TEST(macros_with_host_code_mark_who_uses_them)
{
    assert_string_equal(host_of("#define CHECK(call) do { if ((call) != cudaSuccess) abort(); } \\\n    while (0)\n"
                                "void prepare() { CHECK(0); }\nint other() { return 1; }\n"),
                        "prepare");
}

TEST(types_and_their_users)
{
    assert_string_equal(host_of("struct names { std::vector<int> all; };\nfloat count_of(names &n);\n"
                                "float count_of(names &n) { return 0; }\nstruct plain { int x; };\n"),
                        "names count_of count_of");
    assert_string_equal(host_of("struct arguments { int n; cudaStream_t stream; };\n" /* for the device, too */
                                "int rows_of(arguments a) { return a.n; }\n"
                                "void launch(arguments a) { cudaStream_t s = a.stream; }\n"),
                        "launch");
}

/* Words of the language, and the types that a template is specialised for, are nobody's names. */
TEST(names_of_specialisations)
{
    assert_string_equal(host_of("template <class T> struct info { int x; };\n"
                                "template <> struct info<const float> { std::vector<int> all; };\n"
                                "std::ostream &operator<<(std::ostream &out, float x) { return out; }\n"
                                "constexpr float one = 1;\n__device__ int f(const float *x) { return 0; }\n"
                                "static const int warps = 4;\n__device__ int of(info<float> i) { return 0; }\n"),
                        "");
}

TEST(brackets_that_do_not_match)
{
    assert_string_equal(host_of("void f() { if (1) {\n#ifdef A\n }\n#else\n g();\n"), "?");
    assert_string_equal(host_of("const char *s = R\"(} \" {)\"; int main() { return '}'; }\n"), "main");
}

TEST(plain_functions)
{
    static const struct {
        const char *text;
        bool plain;
    } cases[] = {{"__device__ int f() { return 1; }\n", false},
                 {"int f() { return 1; }\n", true},
                 {"int main() { return 1; }\n", false},
                 {"struct s { int x; int get() const { return x; } };\n", true},
                 {"struct s { int x; };\nconst int a[] = {1};\n", false},
                 {"__device__ int f() { return [](auto x) { return x; }(1); }\n", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLEANUP(fa_host_code_free) fa_cuda_file file = {.text = cases[i].text};
        assert_true(fa_host_code_find(&file, 1));
        if (fa_host_code_plain_functions(&file) != cases[i].plain)
            fail_msg("%s", cases[i].text);
    }
}
