/* The `cublas` baseline: unfused attention by two GEMMs of cuBLAS and a softmax kernel between them. */
#pragma once

#include "cuda/library.h"

/* FA_NOT_RUN with the reason when the library is missing or its workspace does not fit. */
extern const fa_library fa_cublas_library;
