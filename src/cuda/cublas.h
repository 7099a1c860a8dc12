/* The `cublas` baseline: unfused attention by two GEMMs of cuBLAS and a softmax kernel between them. */
#ifndef FA_CUBLAS_H
#define FA_CUBLAS_H

#include "cuda/kernel.h"

/* FA_NOT_RUN with the reason when the library is missing or its workspace does not fit. */
fa_status fa_cublas_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);

#endif
