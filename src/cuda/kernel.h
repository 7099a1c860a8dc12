/* What can be launched on the GPU: a loaded module, a plan of a library, or the empty kernel of the sampler. */
#ifndef FA_CUDA_KERNEL_H
#define FA_CUDA_KERNEL_H

#include "cuda/context.h"

struct fa_kernel {
    /* Puts one launch on the stream (graph capture included) and returns without waiting. */
    fa_status (*enqueue)(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                         fa_reason *why);
    void (*destroy)(fa_kernel *kernel);
    fa_cuda *cuda;
    void *self;
    bool launched; /* at least once: lazy loading is done, so it can be queued behind the blocking kernel */
};

/* Puts `count` launches of what is asked for on the stream. */
fa_status fa_cuda_enqueue(fa_kernel *kernel, const fa_sample_request *request, int32_t count, fa_reason *why);
/* Launches once and waits for the whole context. */
fa_status fa_cuda_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                         fa_reason *why);

#endif
