#include "unit.h"

#include <math.h>

enum { TESTS_MAX = 100 };

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t count;

/* The order in which constructors run is the compiler's: tests are sorted by their lines. */
void unit_add(int line, const struct CMUnitTest *test)
{
    size_t at = count++;
    if (count > TESTS_MAX)
        abort();
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = *test;
    lines[at] = line;
}

__attribute__((weak)) int unit_setup(void **state) { return (void)state, 0; }
__attribute__((weak)) int unit_teardown(void **state) { return (void)state, 0; }

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

void near(double value, double wanted, double relative)
{
    if (!(fabs(value - wanted) <= relative * fabs(wanted)))
        fail_msg("%g is not within %g of %g", value, relative, wanted);
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    return _cmocka_run_group_tests(slash != NULL ? slash + 1 : argv[0], tests, count, unit_setup, unit_teardown);
}
