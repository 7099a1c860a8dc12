/* SPEC of --vs: an accepted one names a row of the registry, or a file, with knobs in their ranges. */
#include <stdlib.h>
#include <string.h>

#include "input/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fa_alloc(size + 1);
    memcpy(text, data, size);
    char *const arguments[] = {"fa_bench", "--vs", text};
    fa_options options;
    fa_problem problem;
    fa_spec other;
    fa_reason why = {""};
    fa_status status = fa_options_parse(3, arguments, &options, &why);
    if (status == FA_PASS) {
        FA_ASSERT(fa_problem_make(&options, &problem, &why) == FA_PASS);
        status = fa_spec_make_vs(&options, &problem, &other, &why);
    }
    if (status == FA_PASS) {
        const fa_knobs *k = &other.knobs;
        fa_define defines[FA_SPEC_DEFINES_MAX];
        FA_ASSERT((other.row != NULL || other.source[0] != '\0') && k->warps >= 0 && k->warps <= 32 && k->m <= 1024 &&
                  k->splits <= 64);
        FA_ASSERT(fa_spec_defines(&other, defines) <= FA_SPEC_DEFINES_MAX);
    } else {
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    }
    free(text);
    return 0;
}
