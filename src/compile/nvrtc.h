/* NVRTC, opened at run time: source text in, cubin and log out. */
#pragma once

#include "compile/forward.h"

/* "13.0"; FA_NOT_RUN with the loader's words when libnvrtc cannot be opened. */
fa_status fa_nvrtc_version(char version[32], fa_reason *why);
/* headers: in memory; NVRTC takes one before a file of its name, wherever that lies. FA_COMPILE_ERROR leaves the reason
 * to the caller, who reads *log. The caller frees *cubin and *log. For a virtual one (compute_89) *cubin is PTX. */
fa_status fa_nvrtc_compile(const char *source, const char *name, const fa_forwards *headers,
                           const char *const options[], int count, char **cubin, size_t *cubin_size, char **log,
                           fa_reason *why);
/* Folder of the CUDA headers (cuda_fp16.h): CUDA_HOME, beside libnvrtc, /usr/local/cuda; FA_NOT_RUN without one. */
fa_status fa_cuda_headers(char folder[512], fa_reason *why);
