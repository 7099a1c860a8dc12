#include "compile/nvcc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "compile/paths.h"

fa_status fa_nvcc_version(char version[32], fa_reason *why)
{
    char *output = NULL;
    const char *const command[] = {"nvcc", "--version", NULL};
    const int code = fa_run(command, &output);
    const char *release = strstr(output, ", V");
    const bool known = code == 0 && release != NULL;
    if (known)
        snprintf(version, 32, "%.*s", (int)strcspn(release + 3, "\n"), release + 3);
    free(output);
    return known ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
}

fa_status fa_nvcc_compile(const char *source, const char *const options[], int count, const char *object, char **log,
                          fa_reason *why)
{
    const char *const first[] = {"nvcc", "-x", "cu", "-cubin", "-o", fa_path_to_open(object)};
    const size_t fixed = sizeof first / sizeof *first;
    const char **command = fa_alloc((fixed + (size_t)count + 2) * sizeof *command);
    memcpy(command, first, sizeof first);
    memcpy(command + fixed, options, (size_t)count * sizeof *command);
    command[fixed + (size_t)count] = fa_path_to_open(source);
    const int code = fa_run(command, log);
    free(command);
    if (code < 0)
        return fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
    return code == 0 ? FA_PASS : fa_refuse(why, FA_COMPILE_ERROR, "nvcc: exit code %d", code);
}
