#include "compile/headers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

static void upper_case(const char *name, char upper[32])
{
    size_t length = 0;
    for (; name[length] != '\0' && length < 31; length++)
        upper[length] = (char)toupper((unsigned char)name[length]);
    upper[length] = '\0';
}

/* #define CUTLASS_MAJOR 4; -1: there is no such line. */
static int defined_as(const char *text, const char *name, const char *what)
{
    int value = -1;
    char *line = fa_format("#define %s_%s %%d", name, what);
    for (const char *at = text; value < 0 && at != NULL; at = strstr(at + 1, "#define"))
        sscanf(at, line, &value);
    free(line);
    return value;
}

/* Reads <folder>/cutlass/version.h. */
static fa_status read_version(const char *name, const char *upper, fa_headers *headers, fa_reason *why)
{
    char *path = fa_format("%s/%s/version.h", headers->folder, name), *text = NULL;
    size_t size = 0;
    const fa_status status = access(path, R_OK) == 0 ? fa_read_file(path, &text, &size, why) : FA_NOT_RUN;
    free(path);
    if (status == FA_PASS)
        snprintf(headers->version, sizeof headers->version, "%s %d.%d.%d", name, defined_as(text, upper, "MAJOR"),
                 defined_as(text, upper, "MINOR"), defined_as(text, upper, "PATCH"));
    free(text);
    return status;
}

fa_status fa_headers_find(const fa_kernel_row *row, fa_headers *headers, fa_reason *why)
{
    *headers = (fa_headers){.folder = ""};
    const char *name = row != NULL ? row->traits.headers : NULL;
    if (name == NULL)
        return FA_PASS;
    char upper[32];
    upper_case(name, upper);
    char *variable = fa_format("%s_DIR", upper);
    const char *set = getenv(variable);
    const int length = set != NULL
                           ? snprintf(headers->folder, sizeof headers->folder, "%s/include", set)
                           : snprintf(headers->folder, sizeof headers->folder, "%s/build/%s/include", fa_home(), name);
    fa_status status = length < (int)sizeof headers->folder ? read_version(name, upper, headers, why) : FA_NOT_RUN;
    if (status == FA_NOT_RUN)
        status =
            fa_refuse(why, FA_NOT_RUN,
                      "%s needs the headers of %s, and %s has none: scripts/setup.sh %s brings them into build/%s, "
                      "or set %s to a folder with its include/",
                      row->name, name, headers->folder, name, name, variable);
    free(variable);
    return status;
}
