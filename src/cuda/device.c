#include "cuda/device.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/context.h"
#include "cuda/copy.h"
#include "cuda/libraries.h"
#include "cuda/module.h"
#include "cuda/persist.h"
#include "cuda/sample.h"

static fa_status cuda_alloc(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    CUdeviceptr address = 0;
    FA_TRY(fa_cuda_start(cuda, why));
    const CUresult code = cuda->api.cuMemAlloc(&address, bytes ? bytes : 1);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t free_bytes = 0, total_bytes = 0;
        cuda->api.cuMemGetInfo(&free_bytes, &total_bytes);
        return fa_refuse(why, FA_NOT_RUN, "out of memory on %s: %zu bytes wanted, %zu of %zu free", cuda->info.name,
                         bytes, free_bytes, total_bytes);
    }
    if (code != CUDA_SUCCESS)
        return fa_cuda_refuse(cuda, code, "cuMemAlloc", why);
    FA_ASSERT(address % 256 == 0, "cuMemAlloc gave %llx", address);
    *pointer = address;
    return FA_PASS;
}

static void cuda_free(fa_device *device, fa_ptr pointer)
{
    fa_cuda *cuda = device->self;
    if (pointer)
        cuda->api.cuMemFree(pointer);
}

static fa_status cuda_fill16(fa_device *device, fa_ptr to, uint16_t value, size_t count, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    FA_CUDA_TRY(cuda, cuMemsetD16Async, (to, value, count, cuda->stream));
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return FA_PASS;
}

static fa_status cuda_load(fa_device *device, const fa_spec *spec, const fa_module *module, const fa_problem *problem,
                           fa_kernel **kernel, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    FA_TRY(fa_cuda_start(cuda, why));
    if (spec->kind == FA_KIND_LIBRARY)
        return fa_library_of(spec)->create(cuda, spec, problem, kernel, why);
    return fa_cuda_module_create(cuda, module, kernel, why);
}

static void cuda_unload(fa_device *device, fa_kernel *kernel)
{
    if (!kernel)
        return;
    fa_cuda_sampler_forget(device->self, kernel);
    fa_cuda_kernel_free(kernel);
}

/* Frees what sampling keeps: events, flush buffer, NVML. Graphs are freed with their kernels. */
static void cuda_reset(fa_device *device)
{
    fa_cuda *cuda = device->self;
    if (!cuda->context)
        return;
    fa_cuda_sampler_close(cuda);
    fa_cuda_reset_l2(cuda);
}

static void cuda_close(fa_device *device)
{
    fa_cuda *cuda = device->self;
    fa_cuda_sampler_close(cuda);
    fa_cuda_copy_close(cuda);
    if (cuda->stream)
        cuda->api.cuStreamDestroy(cuda->stream);
    if (cuda->context)
        cuda->api.cuDevicePrimaryCtxRelease(cuda->device);
    fa_nvml_close(&cuda->nvml);
    /* libcuda stays open: cuBLAS and cuDNN use it too, and threads of its own may still run. */
    free(cuda);
    *device = (fa_device){0};
}

static void describe_driver(const fa_cuda *cuda, char *text, size_t size)
{
    char driver[20] = "";
    int version = 0;
    cuda->api.cuDriverGetVersion(&version);
    const bool known = fa_nvml_driver(&cuda->nvml, driver, sizeof driver);
    snprintf(text, size, "%s%sCUDA %d.%d%s", known ? driver : "", known ? " (" : "", version / 1000,
             version % 1000 / 10, known ? ")" : "");
}

static void describe(fa_cuda *cuda)
{
    fa_device_info *info = &cuda->info;
    *info = (fa_device_info){.backend = "cuda"};
    cuda->api.cuDeviceGetName(info->name, sizeof info->name, cuda->device);
    snprintf(info->arch, sizeof info->arch, "sm_%d%d",
             fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    describe_driver(cuda, info->driver, sizeof info->driver);
    info->sm_count = fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info->smem_block_bytes = fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info->l2_bytes = fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    const int32_t nvml_sm_mhz = fa_nvml_max_sm_mhz(&cuda->nvml), nvml_memory_mhz = fa_nvml_max_memory_mhz(&cuda->nvml);
    info->clock_mhz_max = nvml_sm_mhz ? nvml_sm_mhz : fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000;
    const int32_t memory_mhz =
        nvml_memory_mhz ? nvml_memory_mhz : fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000;
    size_t memory_bytes = 0;
    cuda->api.cuDeviceTotalMem(&memory_bytes, cuda->device);
    info->memory_bytes = (int64_t)memory_bytes;
    /* The memory clock that the driver reports stands for two transfers, on GDDR and HBM alike. */
    info->memory_gbytes_per_s =
        2.0 * memory_mhz * 1e6 * (fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0) / 1e9;
}

/* Without a GPU, cuInit answers "no device", or with some drivers another error. */
static fa_status find_gpu(fa_cuda *cuda, int32_t gpu, fa_reason *why)
{
    int count = 0;
    const CUresult started = cuda->api.cuInit(0);
    if (started == CUDA_ERROR_NO_DEVICE ||
        (started == CUDA_SUCCESS && (cuda->api.cuDeviceGetCount(&count), count == 0)))
        return fa_refuse(why, FA_NOT_RUN, "the CUDA driver sees no GPU");
    if (started != CUDA_SUCCESS) {
        fa_cuda_refuse(cuda, started, "cuInit", why);
        return FA_NOT_RUN;
    }
    if (gpu < 0 || gpu >= count)
        return fa_refuse(why, FA_NOT_RUN, "no GPU %d: this machine has %d", gpu, count);
    FA_CUDA_TRY(cuda, cuDeviceGet, (&cuda->device, gpu));
    return FA_PASS;
}

static fa_status open_gpu(fa_cuda *cuda, int32_t gpu, fa_reason *why)
{
    FA_TRY(fa_cuda_api_open(&cuda->api, why));
    FA_TRY(find_gpu(cuda, gpu, why));
    char bus_id[32] = "";
    FA_CUDA_TRY(cuda, cuDeviceGetPCIBusId, (bus_id, sizeof bus_id, cuda->device));
    fa_nvml_open(&cuda->nvml, bus_id);
    describe(cuda);
    memcpy(cuda->info.bus_id, bus_id, sizeof bus_id);
    return FA_PASS;
}

fa_status fa_device_open_cuda(int32_t gpu, fa_device *device, fa_reason *why)
{
    fa_cuda *cuda = fa_alloc(sizeof *cuda);
    *device = (fa_device){
        .self = cuda,
        .load = cuda_load,
        .unload = cuda_unload,
        .alloc = cuda_alloc,
        .free = cuda_free,
        .copy_in = fa_cuda_copy_in,
        .copy_out = fa_cuda_copy_out,
        .copy = fa_cuda_copy,
        .fill16 = cuda_fill16,
        .launch = fa_cuda_launch,
        .sample = fa_cuda_sample,
        .reset = cuda_reset,
        .close = cuda_close,
    };
    const fa_status status = open_gpu(cuda, gpu, why);
    if (status != FA_PASS) {
        cuda_close(device);
        return status;
    }
    device->info = cuda->info;
    /* Copies of the tensors are allocated and freed often. In fresh pages one of 67 MB takes 43 ms, in used ones 7. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    return FA_PASS;
}
