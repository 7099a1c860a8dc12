/* The opened GPU: driver functions, context, stream, errors in the driver's own words, and what it launches. */
#pragma once

#include "cuda/api.h"
#include "cuda/nvml.h"
#include "device/device.h"

typedef struct fa_cuda {
    fa_cuda_api api; /* driver entry points, from libcuda.so.1 at run time */
    CUdevice device;
    CUcontext context;
    CUstream stream; /* non-blocking; all work is put on it */
    fa_nvml nvml;
    bool lines_persist; /* persistent L2 window: persist.c */
    bool lost;          /* a fault destroyed the context: this process cannot launch again */
    fa_device_info info;
    struct fa_sampler *sampler; /* owned by sample.c, or NULL */
    void *staging;              /* pinned host memory, owned by copy.c; or NULL */
    bool no_staging;            /* none is available */
} fa_cuda;

/* FA_ERROR with the driver's name and text for an error; the text also says when the context is lost. */
fa_status fa_cuda_refuse(fa_cuda *cuda, CUresult code, const char *call, fa_reason *why);

/* `return` with the driver's words unless the entry point succeeds: FA_CUDA_TRY(cuda, cuMemFree, (pointer)). */
#define FA_CUDA_TRY(cuda, name, arguments)                    \
    do {                                                      \
        const CUresult code_ = (cuda)->api.name arguments;    \
        if (code_ != CUDA_SUCCESS)                            \
            return fa_cuda_refuse((cuda), code_, #name, why); \
    } while (0)

int fa_cuda_attribute(const fa_cuda *cuda, CUdevice_attribute which); /* 0: the driver does not know it */

/* FA_NOT_RUN, "WHOSE: no room ...", when the GPU has less memory. */
fa_status fa_cuda_reserve(fa_cuda *cuda, const char *whose, CUdeviceptr *pointer, size_t bytes, fa_reason *why);

/* Creates the context and the stream unless they exist. Call it before the first call that needs them. */
fa_status fa_cuda_start(fa_cuda *cuda, fa_reason *why);

/* What can be launched on the GPU: a loaded module, a plan of a library, or the empty kernel of the sampler. */

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

fa_status fa_cuda_enqueue(fa_kernel *kernel, const fa_sample_request *request, int32_t count, fa_reason *why);
/* Launches once and waits for the whole context. */
fa_status fa_cuda_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                         fa_reason *why);
