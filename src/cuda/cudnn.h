/* The `cudnn` baseline: fused attention by cuDNN. */
#ifndef FA_CUDNN_H
#define FA_CUDNN_H

#include "cuda/kernel.h"

/* FA_NOT_RUN with the reason when the library, a plan or the mask is missing, or its workspace does not fit. */
fa_status fa_cudnn_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);

#endif
