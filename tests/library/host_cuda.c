/* A libcuda.so.1 without a GPU: device memory is host memory, kernels do nothing, an event is a tick of 100 us. With it
 * the cuda device runs libraries that compute on the CPU (tests/library/stub.c); found through LD_LIBRARY_PATH.
 *     gcc -shared -fPIC -Isrc -o DIR/libcuda.so.1 tests/library/host_cuda.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/api.h"

static char context, stream; /* their addresses are the handles */
static CUcontext current;
static long ticks;

enum { INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };

static CUresult needs_context(void) { return current != NULL ? CUDA_SUCCESS : (CUresult)INVALID_CONTEXT; }

#define NOTHING(symbol) \
    CUresult symbol(void) { return CUDA_SUCCESS; }
NOTHING(cuInit)
NOTHING(cuDevicePrimaryCtxSetFlags_v2)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxSetLimit)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernel)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuEventDestroy_v2)
NOTHING(cuGraphExecDestroy)
NOTHING(cuGraphDestroy)
#define REFUSED(symbol) \
    CUresult symbol(void) { return (CUresult)NOT_SUPPORTED; }
REFUSED(cuStreamBeginCapture_v2)
REFUSED(cuStreamEndCapture)
REFUSED(cuGraphInstantiateWithFlags)
REFUSED(cuGraphUpload)
REFUSED(cuGraphLaunch)
REFUSED(cuEventRecordWithFlags)
#define IN_CONTEXT(symbol) \
    CUresult symbol(void) { return needs_context(); }
IN_CONTEXT(cuCtxSynchronize)
IN_CONTEXT(cuStreamSynchronize)

#define SAYS(symbol, type, value) \
    CUresult symbol(type *out)    \
    {                             \
        *out = (type)(value);     \
        return CUDA_SUCCESS;      \
    }
SAYS(cuDriverGetVersion, int, 13000)
SAYS(cuDeviceGetCount, int, 1)
SAYS(cuDeviceGet, int, 0)
SAYS(cuDevicePrimaryCtxRetain, void *, &context)
SAYS(cuModuleLoadData, void *, &context)
SAYS(cuModuleGetFunction, void *, &context)
SAYS(cuFuncGetAttribute, int, 0)
SAYS(cuStreamCreate, void *, &stream)
SAYS(cuEventCreate, void *, calloc(1, sizeof ticks))
SAYS(cuDeviceTotalMem_v2, size_t, (size_t)2 << 30)
SAYS(cuGetErrorName, const char *, "CUDA_ERROR_OF_THE_STUB")
SAYS(cuGetErrorString, const char *, "as the stub has it")

CUresult cuCtxSetCurrent(CUcontext to)
{
    current = to;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size)
{
    snprintf(name, (size_t)size, "CUDA on the host");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int size)
{
    snprintf(id, (size_t)size, "ffff:ff:1f.7");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which)
{
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? 9
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR          ? 0
             : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 4
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 227 << 10
                                                                              : 1 << 20;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)2 << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    void *memory = NULL;
    const int failed = posix_memalign(&memory, 256, bytes);
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : needs_context();
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    free((void *)(uintptr_t)pointer);
    return needs_context();
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes)
{
    *pointer = calloc(1, bytes);
    return needs_context();
}

CUresult cuMemFreeHost(void *pointer)
{
    free(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host)
{
    *device = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

static CUresult move(uintptr_t to, uintptr_t from, size_t bytes)
{
    memmove((void *)to, (const void *)from, bytes);
    return needs_context();
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return move(to, (uintptr_t)from, bytes);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes) { return move((uintptr_t)to, from, bytes); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return move(to, from, bytes); }

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count)
{
    memset((void *)(uintptr_t)to, value, count);
    return needs_context();
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((unsigned short *)(uintptr_t)to)[i] = value;
    return needs_context();
}

CUresult cuEventRecord(CUevent event)
{
    *(long *)(void *)event = ++ticks;
    return needs_context();
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent stop)
{
    *ms = 0.1f * (float)(*(long *)(void *)stop - *(long *)(void *)start);
    return needs_context();
}
