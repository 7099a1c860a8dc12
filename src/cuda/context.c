#include "cuda/context.h"

#include <stdlib.h>

/* Errors after which every call in the context fails (CUDA Driver API, CUresult: "inconsistent state"). */
static bool loses_context(CUresult code)
{
    switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

fa_status fa_cuda_refuse(fa_cuda *cuda, CUresult code, const char *call, fa_reason *why)
{
    const char *name = NULL, *text = NULL;
    cuda->api.cuGetErrorName(code, &name);
    cuda->api.cuGetErrorString(code, &text);
    cuda->lost = cuda->lost || loses_context(code);
    return fa_refuse(why, FA_ERROR, "%s: %s (%d): %s%s", call, name ? name : "unknown error", (int)code,
                     text ? text : "no text",
                     cuda->lost ? "; the context is lost, nothing more can run in this process" : "");
}

int fa_cuda_attribute(const fa_cuda *cuda, CUdevice_attribute which)
{
    int value = 0;
    return cuda->api.cuDeviceGetAttribute(&value, which, cuda->device) == CUDA_SUCCESS ? value : 0;
}

fa_status fa_cuda_reserve(fa_cuda *cuda, const char *whose, CUdeviceptr *pointer, size_t bytes, fa_reason *why)
{
    const CUresult code = cuda->api.cuMemAlloc(pointer, bytes);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
        return fa_refuse(why, FA_NOT_RUN, "%s: no room for a workspace of %zu bytes on the device", whose, bytes);
    return code == CUDA_SUCCESS ? FA_PASS : fa_cuda_refuse(cuda, code, "cuMemAlloc", why);
}

/* The primary context, which cuBLAS and cuDNN use too. The host spins when it waits, so that a sample costs little more
 * than the time it measures. */
fa_status fa_cuda_start(fa_cuda *cuda, fa_reason *why)
{
    if (cuda->stream)
        return FA_PASS;
    if (!cuda->context) {
        FA_CUDA_TRY(cuda, cuDevicePrimaryCtxSetFlags, (cuda->device, CU_CTX_SCHED_SPIN));
        FA_CUDA_TRY(cuda, cuDevicePrimaryCtxRetain, (&cuda->context, cuda->device));
    }
    FA_CUDA_TRY(cuda, cuCtxSetCurrent, (cuda->context));
    FA_CUDA_TRY(cuda, cuStreamCreate, (&cuda->stream, CU_STREAM_NON_BLOCKING));
    return FA_PASS;
}

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
