/* nvcc, run as a program: a source file in, a cubin file and a log out. */
#ifndef FA_NVCC_H
#define FA_NVCC_H

#include "base/status.h"

/* "13.0.88"; FA_NOT_RUN when there is no nvcc in PATH. */
fa_status fa_nvcc_version(char version[32], fa_reason *why);
/* Writes the cubin to `object`. FA_COMPILE_ERROR leaves the reason to the caller, who reads and frees *log. */
fa_status fa_nvcc_compile(const char *source, const char *const options[], int count, const char *object, char **log,
                          fa_reason *why);

#endif
