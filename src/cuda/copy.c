#include "cuda/copy.h"

#include <string.h>

/* The driver copies ordinary host memory on one thread. For large tensors that takes longer than the measurement. They
 * go through two pinned buffers: all threads fill or empty one while the GPU copies the other. */
enum { HALF = FA_CUDA_STAGING_BYTES / 2, PIECE = 1 << 18 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void copy_by_all_threads(char *to, const char *from, size_t bytes)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < bytes; at += PIECE)
        memcpy(to + at, from + at, least(PIECE, bytes - at));
}

/* False for small copies and without pinned memory: the driver then copies alone. */
static bool is_staged(fa_cuda *cuda, size_t bytes)
{
    if (bytes < FA_CUDA_STAGING_BYTES / 8 || cuda->no_staging)
        return false;
    if (cuda->staging == NULL && cuda->api.cuMemHostAlloc(&cuda->staging, FA_CUDA_STAGING_BYTES, 0) != CUDA_SUCCESS) {
        cuda->staging = NULL;
        cuda->no_staging = true;
    }
    return !cuda->no_staging;
}

static char *half(const fa_cuda *cuda, size_t index) { return (char *)cuda->staging + (index % 2) * HALF; }

fa_status fa_cuda_copy_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    const bool staged = is_staged(cuda, bytes);
    if (!staged)
        FA_CUDA_TRY(cuda, cuMemcpyHtoDAsync, (to, from, bytes, cuda->stream));
    for (size_t i = 0; staged && i * HALF < bytes; i++) {
        const size_t count = least(HALF, bytes - i * HALF);
        copy_by_all_threads(half(cuda, i), (const char *)from + i * HALF, count);
        FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream)); /* the other half is free again */
        FA_CUDA_TRY(cuda, cuMemcpyHtoDAsync, (to + i * HALF, half(cuda, i), count, cuda->stream));
    }
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return FA_PASS;
}

fa_status fa_cuda_copy_out(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    if (!is_staged(cuda, bytes)) {
        FA_CUDA_TRY(cuda, cuMemcpyDtoHAsync, (to, from, bytes, cuda->stream));
        FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
        return FA_PASS;
    }
    FA_CUDA_TRY(cuda, cuMemcpyDtoHAsync, (half(cuda, 0), from, least(HALF, bytes), cuda->stream));
    for (size_t i = 0; i * HALF < bytes; i++) {
        const size_t next = (i + 1) * HALF;
        FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
        if (next < bytes)
            FA_CUDA_TRY(cuda, cuMemcpyDtoHAsync,
                        (half(cuda, i + 1), from + next, least(HALF, bytes - next), cuda->stream));
        copy_by_all_threads((char *)to + i * HALF, half(cuda, i), least(HALF, bytes - i * HALF));
    }
    return FA_PASS;
}

fa_status fa_cuda_copy(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    FA_CUDA_TRY(cuda, cuMemcpyDtoDAsync, (to, from, bytes, cuda->stream));
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return FA_PASS;
}

void fa_cuda_copy_close(fa_cuda *cuda)
{
    if (cuda->staging != NULL)
        cuda->api.cuMemFreeHost(cuda->staging);
    cuda->staging = NULL;
}
