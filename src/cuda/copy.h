/* Copies between the host and the GPU. Each waits until it is done. */
#pragma once

#include "cuda/context.h"

enum { FA_CUDA_STAGING_BYTES = 16 << 20 }; /* pinned host memory */

fa_status fa_cuda_copy_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why);
fa_status fa_cuda_copy_out(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why);
fa_status fa_cuda_copy(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why);
void fa_cuda_copy_close(fa_cuda *cuda); /* frees the pinned memory */
