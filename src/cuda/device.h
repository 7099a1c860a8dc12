/* Private to the cuda device: the opened driver, and what a loaded module and a library plan have in common. */
#ifndef FA_DEVICE_CUDA_H
#define FA_DEVICE_CUDA_H

#include "cuda/api.h"
#include "device/device.h"

/* The opened GPU: driver functions, context, stream. */
typedef struct fa_cuda {
    fa_cuda_api api; /* driver entry points, from libcuda.so.1 at run time */
    CUdevice device;
    CUcontext context;
    CUstream stream; /* non-blocking; all work is put on it */
    fa_nvml nvml;
    bool lost; /* a fault destroyed the context: nothing more can run in this process */
    fa_device_info info;
    void *timing;  /* owned by device_cuda_time.c */
    void *staging; /* owned by device_cuda_copy.c: pinned, or NULL */
    bool no_staging;
} fa_cuda;

struct fa_kernel {
    /* Puts one launch on the stream (graph capture included) and returns without waiting. */
    fa_status (*enqueue)(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                         fa_reason *why);
    void (*destroy)(fa_kernel *kernel);
    fa_cuda *cuda;
    void *self;
    bool launched; /* once: lazy loading is behind it, it may stand behind a closed gate */
};

/* `return` with the driver's words unless the entry point succeeds: FA_CUDA_TRY(cuda, cuMemFree, (pointer)). */
#define FA_CUDA_TRY(cuda, name, arguments)                    \
    do {                                                      \
        const CUresult code_ = (cuda)->api.name arguments;    \
        if (code_ != CUDA_SUCCESS)                            \
            return fa_cuda_refuse((cuda), code_, #name, why); \
    } while (0)

/* Library baselines: FA_NOT_RUN with the reason when the library or a plan is missing. */
fa_status fa_cublas_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);
fa_status fa_cudnn_create(fa_cuda *cuda, const fa_problem *problem, fa_kernel **kernel, fa_reason *why);
/* FA_ERROR with the driver's name and words for an error; says so when the context is lost with it. */
fa_status fa_cuda_refuse(fa_cuda *cuda, CUresult code, const char *call, fa_reason *why);

/* device_cuda_copy.c: each waits until it is done. */
enum { FA_CUDA_STAGING_BYTES = 16 << 20 };
fa_status fa_cuda_copy_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why);
fa_status fa_cuda_copy_out(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why);
fa_status fa_cuda_copy(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why);
void fa_cuda_copy_close(fa_cuda *cuda);
/* Makes the context and the stream unless they are there: before the first call that needs them. */
fa_status fa_cuda_start(fa_cuda *cuda, fa_reason *why);

/* device_cuda_module.c: hand kernels, launches and tensor maps. */
fa_status fa_cuda_load(fa_device *device, const fa_spec *spec, const fa_module *module, const fa_problem *problem,
                       fa_kernel **kernel, fa_reason *why);
void fa_cuda_unload(fa_device *device, fa_kernel *kernel);
fa_status fa_cuda_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                         fa_reason *why);
fa_status fa_cuda_encode_maps(fa_device *device, const fa_kernel_info *info, fa_params *params, fa_reason *why);

/* device_cuda_time.c: one sample; what it keeps between samples ends with the kernel, or with the device. */
fa_status fa_cuda_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why);
void fa_cuda_time_forget(fa_cuda *cuda, const fa_kernel *kernel);
void fa_cuda_time_close(fa_cuda *cuda);
/* Persisting lines of an earlier kernel would keep their share of the L2. */
void fa_cuda_reset_l2(const fa_cuda *cuda);

#endif
