#include "base/file.h"
#include "unit.h"

#include <math.h>
#include <sys/stat.h>

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t test_count;

/* The order in which constructors run is the compiler's: tests are sorted by their lines. */
void unit_add(int line, const struct CMUnitTest *test)
{
    size_t at = test_count++;
    if (test_count > TESTS_MAX)
        abort();
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = *test;
    lines[at] = line;
}

__attribute__((weak)) int unit_setup(void **state) { return 0; }
__attribute__((weak)) int unit_teardown(void **state) { return 0; }

fa_status parse_words(const char *line, fa_options *options, fa_reason *why)
{
    static char text[2048];
    char *argv[32] = {"fa_bench"};
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    return fa_options_parse(argc, argv, options, why);
}

fa_problem problem_of(const char *line)
{
    fa_options options;
    fa_problem problem;
    fa_reason why;
    if (parse_words(line, &options, &why) != FA_PASS || fa_problem_make(&options, &problem, &why) != FA_PASS)
        fail_msg("%s: %s", line, why.text);
    return problem;
}

fa_problem shape(int32_t batch, int32_t heads, int32_t kv_heads, int32_t seq_q, int32_t seq_kv, int32_t dim,
                 bool causal)
{
    return (fa_problem){batch, heads, kv_heads, seq_q, seq_kv, dim, causal, 1.0f / sqrtf((float)dim)};
}

fa_reference reference_of(const fa_problem *problem, const fa_tensors *tensors, int64_t step, bool acc_fp16)
{
    const int64_t count = (fa_problem_rows(problem) + step - 1) / step;
    int64_t *rows = fa_alloc((size_t)count * sizeof *rows);
    for (int64_t i = 0; i < count; i++)
        rows[i] = i * step;
    return fa_reference_of_rows(problem, tensors, rows, count, acc_fp16);
}

void holds(const char *text, const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("no \"%s\" in: %s", words, text);
}

void ends_with(fa_status got, fa_status wanted, const fa_reason *why, const char *words)
{
    if (got != wanted)
        fail_msg("status %d, \"%s\"; want %d, \"%s\"", (int)got, why->text, (int)wanted, words);
    holds(why->text, words);
}

void put_file(const char *folder, const char *name, const char *text)
{
    FREED char *path = fa_format("%s/%s", folder, name);
    fa_reason why;
    assert_int_equal(fa_write_file(path, text, strlen(text), &why), FA_PASS);
    chmod(path, 0700);
}

void near(double value, double wanted, double relative)
{
    if (!(fabs(value - wanted) <= relative * fabs(wanted)))
        fail_msg("%g is not within %g of %g", value, relative, wanted);
}

struct host host;

static fa_status host_alloc(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why)
{
    host.allocated++;
    host.allocations++;
    *pointer = (fa_ptr)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return FA_PASS;
}

static void host_free(fa_device *device, fa_ptr pointer)
{
    host.allocated--;
    free((void *)(uintptr_t)pointer);
}

static fa_status host_copy_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why)
{
    host.bytes_put += bytes;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return FA_PASS;
}

static fa_status host_copy_out(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return FA_PASS;
}

static fa_status host_fill16(fa_device *device, fa_ptr to, uint16_t value, size_t count, fa_reason *why)
{
    host.bytes_put += count * sizeof value;
    for (size_t i = 0; i < count; i++)
        ((uint16_t *)(uintptr_t)to)[i] = value;
    return FA_PASS;
}

fa_device host_device(void)
{
    host = (struct host){0};
    return (fa_device){.alloc = host_alloc,
                       .free = host_free,
                       .copy_in = host_copy_in,
                       .copy_out = host_copy_out,
                       .fill16 = host_fill16};
}

void golden_say(golden *g, const char *format, ...)
{
    if (g->room - g->used < 4096)
        g->text = realloc(g->text, g->room += 1 << 20);
    va_list arguments;
    va_start(arguments, format);
    g->used += (size_t)vsnprintf(g->text + g->used, 4096, format, arguments);
    va_end(arguments);
}

static void compare_lines(const char *want, const char *got, const char *path)
{
    for (int line = 1; *want != '\0' || *got != '\0'; line++) {
        const size_t wants = strcspn(want, "\n"), gets = strcspn(got, "\n");
        size_t same = 0;
        while (same < wants && same < gets && want[same] == got[same])
            same++;
        const size_t from = same > 80 ? same - 80 : 0;
        if (same < wants || same < gets)
            fail_msg("%s:%d:%zu\n  want: %.*s\n  got:  %.*s", path, line, same + 1, (int)(wants - from), want + from,
                     (int)(gets - from), got + from);
        want += wants + (want[wants] == '\n');
        got += gets + (got[gets] == '\n');
    }
}

void golden_compare(golden *g, const char *name)
{
    FREED char *path = fa_format("tests/golden/%s", name), *want = NULL; /* tests run in the root of the tree */
    const char *mode = getenv("FA_GOLDEN");
    size_t size = 0;
    fa_reason why;
    if (mode != NULL && strcmp(mode, "write") == 0)
        assert_int_equal(fa_write_file(path, g->text, g->used, &why), FA_PASS);
    if (fa_read_file(path, &want, &size, &why) != FA_PASS)
        fail_msg("%s", why.text);
    compare_lines(want, g->text, path);
    free(g->text);
    *g = (golden){0};
}

/* FNV-1a. */
uint64_t golden_digest(uint64_t digest, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    digest = digest != 0 ? digest : 0xCBF29CE484222325u;
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ at[i]) * 0x100000001B3u;
    return digest;
}

void golden_fold(golden *g, size_t from)
{
    const char *mode = getenv("FA_GOLDEN");
    if (mode != NULL && strcmp(mode, "say") == 0)
        fwrite(g->text + from, 1, g->used - from, stdout); /* a message of cmocka has 1 kB */
    const uint64_t digest = golden_digest(0, g->text + from, g->used - from);
    g->used = from;
    golden_say(g, "%016llx\n", (unsigned long long)digest);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    return _cmocka_run_group_tests(slash != NULL ? slash + 1 : argv[0], tests, test_count, unit_setup, unit_teardown);
}
