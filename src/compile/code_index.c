#include "compile/code_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* A line of the index. It begins with its own digest, so that a damaged line is recognised. */
static char *index_line(const char *config)
{
    return fa_format("%s  %s\n", fa_sha256(config, strlen(config)).hex, config);
}

static bool index_verifies(const char *line, char config[160])
{
    if (strlen(line) < 68 || sscanf(line + 66, "%159[^\n]", config) != 1)
        return false;
    char *wanted = index_line(config);
    const bool good = strcmp(wanted, line) == 0;
    free(wanted);
    return good;
}

void fa_code_index_find(const char *cache, const fa_digest *code, const fa_spec *spec, char same_code_as[160])
{
    const fa_knobs *k = &spec->knobs;
    fa_reason ignored;
    char *known = NULL;
    size_t size = 0;
    char *config = fa_format("%s m=%d,n=%d,warps=%d,vec=%d,stages=%d,swizzle=%d,acc=%d,splits=%d,maxreg=%d", spec->name,
                             k->m, k->n, k->warps, k->vec, k->stages, k->swizzle, k->acc, k->splits, k->maxreg);
    char *index = fa_format("%s/code", cache);
    char *point = fa_format("%s %s %d %d %s", code->hex, spec->name, spec->dim, spec->causal, spec->arch);
    char *path = fa_format("%s/%s", index, fa_sha256(point, strlen(point)).hex);
    char *line = index_line(config), first[160];
    if (fa_read_file(path, &known, &size, &ignored) != FA_PASS || !index_verifies(known, first)) {
        if (fa_make_dirs(index, &ignored) == FA_PASS)
            fa_write_file(path, line, strlen(line), &ignored);
    } else if (strcmp(first, config) != 0) {
        memcpy(same_code_as, first, sizeof first);
    }
    free(line);
    free(known);
    free(path);
    free(point);
    free(index);
    free(config);
}
