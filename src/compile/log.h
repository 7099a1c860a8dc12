/* Reading what compilers print: ptxas figures, a static_assert's sentence, error lines. Pure text. */
#ifndef FA_COMPILE_LOG_H
#define FA_COMPILE_LOG_H

#include "compile/compile.h"

/* Figures of `entry` from a log of `ptxas -v` (through NVRTC or nvcc). False when the log has none for it. */
bool fa_log_ptxas(const char *log, const char *entry, fa_ptxas *ptxas);
/* The sentence of the first failed static_assert: NVRTC, nvcc and g++ spellings. */
bool fa_log_static_assert(const char *log, char *sentence, size_t size);
/* Static shared memory over the compiler's own 48 KiB limit: the bytes wanted, 0 otherwise. */
int32_t fa_log_static_smem_overflow(const char *log);
/* Error lines with the source line and caret under each; the whole log when none looks like an error. */
void fa_log_errors(const char *log, char *text, size_t size);

#endif
