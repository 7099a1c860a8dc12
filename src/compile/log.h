/* Reads what compilers print: ptxas figures, the text of a static_assert, error lines. Text in, text out. */
#pragma once

#include "compile/module.h"

/* Figures of `entry` from a log of `ptxas -v` (through NVRTC or nvcc). False when the log has none for it. */
bool fa_log_ptxas(const char *log, const char *entry, fa_ptxas *ptxas);
/* The text of the first failed static_assert, as NVRTC, nvcc and g++ print it. */
bool fa_log_static_assert(const char *log, char *sentence, size_t size);
/* Bytes of static shared memory wanted, when that is more than the compiler's limit of 48 KiB; else 0. */
int32_t fa_log_static_smem_overflow(const char *log);
/* Error lines, each with the source line and caret under it; the whole log when no line looks like an error. */
void fa_log_errors(const char *log, char *text, size_t size);
/* What a failed compilation means to the user. FA_INFEASIBLE: a static_assert, or too much static shared memory;
 * FA_COMPILE_ERROR: the error lines. */
fa_status fa_log_explain(const char *log, fa_reason *why);
