#include "shared.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
