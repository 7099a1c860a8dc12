#include "cuda/kernel.h"

#include <stdlib.h>

fa_kernel *fa_cuda_kernel_new(fa_cuda *cuda, size_t self_bytes, fa_cuda_enqueuer *enqueue, void (*destroy)(fa_kernel *))
{
    fa_kernel *kernel = fa_alloc(sizeof *kernel);
    *kernel = (fa_kernel){.enqueue = enqueue, .destroy = destroy, .cuda = cuda, .self = fa_alloc(self_bytes)};
    return kernel;
}

void fa_cuda_kernel_free(fa_kernel *kernel)
{
    if (kernel->destroy != NULL)
        kernel->destroy(kernel);
    free(kernel->self);
    free(kernel);
}

fa_status fa_cuda_kernel_made(fa_kernel *made, fa_status status, fa_kernel **kernel)
{
    if (status == FA_PASS)
        *kernel = made;
    else
        fa_cuda_kernel_free(made);
    return status;
}

fa_status fa_cuda_enqueue(fa_kernel *kernel, const fa_sample_request *request, int32_t count, fa_reason *why)
{
    for (int32_t i = 0; i < count; i++)
        FA_TRY(kernel->enqueue(kernel, &request->launch, &request->params, kernel->cuda->stream, why));
    return FA_PASS;
}

fa_status fa_cuda_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                         fa_reason *why)
{
    fa_cuda *cuda = device->self;
    FA_TRY(kernel->enqueue(kernel, launch, params, cuda->stream, why));
    /* The whole context, not the stream: work a kernel or a library put elsewhere is waited for too. */
    FA_CUDA_TRY(cuda, cuCtxSynchronize, ());
    kernel->launched = true;
    return FA_PASS;
}
