/* Private to the cuda device: the opened driver, and what a loaded module and a library plan have in common. */
#ifndef FA_DEVICE_CUDA_H
#define FA_DEVICE_CUDA_H

#include "cuda_api.h"
#include "device.h"

/* The opened GPU: driver functions, context, stream. */
typedef struct fa_cuda {
    fa_cuda_api api; /* driver entry points, from libcuda.so.1 at run time */
    CUdevice device;
    CUcontext context;
    CUstream stream;
    fa_device_info info;
    void *timing; /* owned by device_cuda_time.c */
} fa_cuda;

struct fa_kernel {
    /* Puts one launch on the stream (graph capture included) and returns without waiting. */
    fa_status (*enqueue)(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream, fa_reason *why);
    void (*destroy)(fa_kernel *kernel);
    fa_cuda *cuda;
    void *self;
};

/* Library baselines: FA_NOT_RUN with the reason when the library or a plan is missing. */
fa_status fa_cublas_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);
fa_status fa_cudnn_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);
/* The driver's words for an error. */
fa_status fa_cuda_refuse(fa_cuda *cuda, CUresult code, const char *call, fa_reason *why);

#endif
