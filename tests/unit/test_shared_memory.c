#include "compile/cxx.h"
#include "compile/shared_memory.h"
#include "unit.h"

/* What the pass makes of a text must hold each part, in this order, and as many lines as the text. */
static void becomes(const char *text, const char *const *parts)
{
    FREED char *made = fa_shared_rewrite(text);
    const char *at = made;
    int lines = 0;
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    for (const char *c = made; *c != '\0'; c++)
        lines -= *c == '\n';
    assert_int_equal(lines, 0);
    for (; *parts != NULL; parts++) {
        holds(at, *parts);
        at = strstr(at, *parts) + strlen(*parts);
    }
}
#define BECOMES(text, ...) becomes(text, (const char *const[]){__VA_ARGS__, NULL})

TEST(variables_go_to_sections_of_their_own)
{
    BECOMES("void k() { __shared__ float a[4]; static __shared__ int b; }",
            "{ static __attribute__((used, section(\"fa_shared0\"), abi_tag(\"fa_shared\")))", "float a[4];",
            "static __attribute__((used, section(\"fa_shared1\"), abi_tag(\"fa_shared\")))", "int b; }");
    BECOMES("extern \"C\" { __shared__ int c; }", "static __attribute__((used, section(\"fa_shared0\")))", "int c; }");
    BECOMES("void k() {\n  __shared__\n  alignas(16) float\n  a[4]; }", "alignas(16) static __attribute__", "float",
            "a[4]; }");
    BECOMES("void k() { __shared__ float alignas(float4) a = {}; }", "alignas(float4) static", "float", "a = {}; }");
    BECOMES("void k() { __shared__ struct { int a; float b[2]; } s; }", "static", "struct { int a; float b[2]; } s; }");
}

TEST(extern_arrays_become_pointers)
{
    BECOMES("void k() { extern __shared__ __attribute__((aligned(16))) unsigned char raw[]; raw[0] = 1; }",
            "unsigned char (*const raw) = reinterpret_cast<unsigned char (*)>(fa_emu_now()->smem);", "raw[0] = 1; }");
    BECOMES("void k() { extern __shared__ half rows[][8] __attribute__((aligned(16)));\n }",
            "half (*const rows)[8] = reinterpret_cast<half (*)[8]>(fa_emu_now()->smem);");
}

/* Preprocessed text: what macros stand for is there. */
TEST(arrays_of_namespace_scope_are_declared_where_they_are_used)
{
    BECOMES("extern __shared__ float pool[];\nvoid f() { pool[0] = 1; }\nvoid g(float *pool) { pool[0] = 1; }\n",
            "\nvoid f() { float (*const pool) = reinterpret_cast<float (*)>(fa_emu_now()->smem); pool[0] = 1; }\n",
            "void g(float *pool) { pool[0] = 1; }");
    BECOMES(
        "namespace n {\nextern __shared__ int pool[];\nstruct s {\n int f() const { return pool[1]; } }; }\nMACRO\n",
        "namespace n {\n\nstruct s {\n int f() const { int (*const pool) = ", " return pool[1]; } }; }\nMACRO");
}

TEST(other_text_stays)
{
    static const char text[] = "const char *s = \"__shared__ int a;\"; // __shared__ int b;\nextern float pool[];\n";
    FREED char *made = fa_shared_rewrite(text);
    assert_string_equal(made, text);
}

/* A directive that goes on over line breaks of CR LF is one token. */
TEST(directives_of_cr_lf)
{
    fa_cxx_tokens tokens = fa_cxx_read("#define BRACE \\\r\n  { \\\r\n  {\r\nint a;\r\n");
    assert_int_equal(tokens.count, 4);
    assert_int_equal(tokens.at[0].kind, FA_CXX_DIRECTIVE);
    assert_true(fa_cxx_is(&tokens.at[1], "int"));
    free(tokens.at);
}
