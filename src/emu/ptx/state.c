#include "emu/ptx/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/core/report.h"

_Noreturn void fa_emu_ptx_fail(const fa_emu_ptx_run *run, const char *kind, const char *format, ...)
{
    char what[300];
    va_list arguments;
    const int used = snprintf(what, sizeof what, "%.120s: ", run->instr->text);
    va_start(arguments, format);
    vsnprintf(what + used, sizeof what - (size_t)used, format, arguments);
    va_end(arguments);
    fa_emu_fail(kind, what, run->at->file, run->at->line);
    abort();
}
