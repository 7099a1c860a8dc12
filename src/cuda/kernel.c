#include "cuda/kernel.h"

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
