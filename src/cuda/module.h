/* A cubin as a kernel: its function, its launches, and the tensor maps it asks for. */
#pragma once

#include "cuda/context.h"

/* FA_NOT_RUN when the cubin is for another architecture; FA_INFEASIBLE with more shared memory than the GPU has. */
fa_status fa_cuda_module_create(fa_cuda *cuda, const fa_module *module, fa_kernel **kernel, fa_reason *why);

/* Compiles and loads the driver's own GPU code, src/cuda/NAME.cu. */
fa_status fa_cuda_load_own(fa_cuda *cuda, const char *name, CUmodule *module, fa_reason *why);
