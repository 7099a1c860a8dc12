#include "input/options_help.h"

#include <stdio.h>
#include <string.h>

#include "input/options.h"

typedef struct help_text {
    FILE *out;
    const char *group; /* of the option before */
} help_text;

static void print_option(void *to, const fa_option_facts *facts)
{
    help_text *text = to;
    if (strcmp(text->group, facts->group) != 0)
        fprintf(text->out, "\n%s\n", facts->group);
    text->group = facts->group;
    char left[160];
    snprintf(left, sizeof left, "--%s%s%s", facts->name, facts->value[0] != '\0' ? " " : "", facts->value);
    fprintf(text->out, strlen(left) > 26 ? "  %s\n%28s %s%s\n" : "  %-26s%.0s %s%s\n", left, "", facts->help,
            facts->fallback);
}

char *fa_options_help(void)
{
    char *whole = NULL;
    help_text text = {.out = fa_open_text(&whole, NULL), .group = ""};
    fputs("usage: fa_bench [options]\n"
          "Compiles an attention-forward kernel, proves it right, times it, and writes a JSON record.\n",
          text.out);
    fa_options_each(print_option, &text);
    fputs("\nexit codes: 0 pass, 1 wrong result, 2 usage, 3 infeasible configuration, 4 not run (device, library or "
          "tool\n"
          "missing), 5 timeout, 6 compile, launch or internal error\n",
          text.out);
    fclose(text.out);
    return whole;
}
