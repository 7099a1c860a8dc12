#include "input/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    char *words[24];
} presets[] = {
#define FA_PRESET(title, about, source, ...) {title, {__VA_ARGS__}},
#include "input/presets.def"
#undef FA_PRESET
};

char *const *fa_preset_words(const char *name, int *count, fa_reason *why)
{
    char *names = NULL;
    FILE *out = fa_open_text(&names, NULL);
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            for (*count = 0; presets[i].words[*count] != NULL; ++*count)
                continue;
            fclose(out);
            free(names);
            return presets[i].words;
        }
        fprintf(out, "%s%s", i > 0 ? ", " : "", presets[i].name);
    }
    fclose(out);
    fa_refuse(why, FA_USAGE, "--preset takes one of %s, not '%s'", names, name);
    free(names);
    return NULL;
}
