/* The `cudnn` baseline: fused attention by cuDNN. */
#pragma once

#include "cuda/library.h"

/* FA_NOT_RUN with the reason when the library, a plan or the mask is missing, or its workspace does not fit. */
extern const fa_library fa_cudnn_library;
