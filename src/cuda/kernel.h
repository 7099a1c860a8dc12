/* What can be launched on the GPU: a loaded module, a plan of a library, or the empty kernel of the sampler. */
#ifndef FA_CUDA_KERNEL_H
#define FA_CUDA_KERNEL_H

#include "cuda/context.h"

/* Puts one launch on the stream (graph capture included) and returns without waiting. */
typedef fa_status fa_cuda_enqueuer(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                                   fa_reason *why);

struct fa_kernel {
    fa_cuda_enqueuer *enqueue;
    void (*destroy)(fa_kernel *kernel); /* frees what `self` holds; NULL: nothing */
    fa_cuda *cuda;
    void *self;
    bool launched; /* launched before: lazy loading is done, so it can be queued behind the blocking kernel */
};

/* `self` is `self_bytes` zeroed bytes. */
fa_kernel *fa_cuda_kernel_new(fa_cuda *cuda, size_t self_bytes, fa_cuda_enqueuer *enqueue,
                              void (*destroy)(fa_kernel *));
void fa_cuda_kernel_free(fa_kernel *kernel);
/* FA_PASS stores `made` in *kernel; any other status frees it. */
fa_status fa_cuda_kernel_made(fa_kernel *made, fa_status status, fa_kernel **kernel);

/* Puts `count` launches on the stream. */
fa_status fa_cuda_enqueue(fa_kernel *kernel, const fa_sample_request *request, int32_t count, fa_reason *why);
/* Launches once and waits for the whole context. */
fa_status fa_cuda_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                         fa_reason *why);

#endif
