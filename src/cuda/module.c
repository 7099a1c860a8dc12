#include "cuda/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "compile/cuda.h"
#include "device/tensor_boxes.h"

typedef struct module_kernel {
    CUmodule module;
    CUfunction entries[FA_ENTRIES]; /* fa_kernel, and by number those of a plan */
    fa_kernel_info info;
} module_kernel;

/* Driver API, cuTensorMapEncodeTiled: the swizzle's span is the width of the box. */
static CUtensorMapSwizzle swizzle_of(uint32_t bytes)
{
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

static fa_status encode(fa_cuda *cuda, const fa_tensor_box *of, bool read_once, fa_reason *why)
{
    if (!cuda->api.cuTensorMapEncodeTiled)
        return fa_refuse(why, FA_NOT_RUN, "tensor maps need a newer CUDA driver (cuTensorMapEncodeTiled)");
    const cuuint32_t steps[FA_TENSOR_RANK] = {1, 1, 1, 1};
    cuuint64_t dims[FA_TENSOR_RANK], strides_bytes[FA_TENSOR_RANK - 1];
    for (int i = 0; i < FA_TENSOR_RANK; i++)
        dims[i] = of->dims[i];
    for (int i = 0; i < FA_TENSOR_RANK - 1; i++)
        strides_bytes[i] = of->strides_bytes[i];
    const CUtensorMapDataType type = of->dtype == FA_DTYPE_BF16   ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                     : of->dtype == FA_DTYPE_E4M3 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    /* Rows that begin within a sector of 32 bytes, short boxes (studies/tma_rows.txt) and keys that one block alone
     * reads (studies/serving_steps.md) load faster without the promotion to 256 bytes. */
    const uint32_t bytes = of->dtype == FA_DTYPE_E4M3 ? 1 : 2;
    bool promote = bytes * of->box[0] >= 128 && !read_once;
    for (int i = 0; i < FA_TENSOR_RANK - 1; ++i)
        promote = promote && strides_bytes[i] % 32 == 0;
    CUtensorMap map;
    _Static_assert(sizeof map == sizeof *of->to, "a tensor map is 128 bytes");
    FA_CUDA_TRY(cuda, cuTensorMapEncodeTiled,
                (&map, type, FA_TENSOR_RANK, (void *)(uintptr_t)of->address, dims, strides_bytes, of->box, steps,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(of->swizzle_bytes),
                 promote ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_NONE,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    memcpy(of->to, &map, sizeof map);
    return FA_PASS;
}

/* Every launch encodes its maps, so that a caller's parameters are the same for every kernel. A map takes about a
 * microsecond of host time, which is not part of a sample. */
static fa_status encode_maps(fa_cuda *cuda, const fa_kernel_info *info, fa_params *params, fa_reason *why)
{
    fa_tensor_box boxes[FA_TENSOR_BOXES];
    int count = 0;
    FA_TRY(fa_tensor_boxes(info, params, boxes, &count, why));
    for (int i = 0; i < count; i++)
        FA_TRY(encode(cuda, &boxes[i], info->pack_heads && params->tiles_m == 1, why));
    return FA_PASS;
}

static fa_status enqueue_step(fa_cuda *cuda, CUfunction function, const fa_step *step, uint32_t cluster,
                              void *arguments[], CUstream stream, fa_reason *why)
{
    const uint32_t x = (uint32_t)step->grid[0], y = (uint32_t)step->grid[1], z = (uint32_t)step->grid[2];
    const uint32_t block_x = (uint32_t)step->block[0], block_y = (uint32_t)step->block[1],
                   block_z = (uint32_t)step->block[2], shared_bytes = (uint32_t)step->shared_bytes;
    if (cluster <= 1) {
        FA_CUDA_TRY(cuda, cuLaunchKernel,
                    (function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, arguments, NULL));
        return FA_PASS;
    }
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = cluster;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    const CUlaunchConfig config = {
        .gridDimX = x,
        .gridDimY = y,
        .gridDimZ = z,
        .blockDimX = block_x,
        .blockDimY = block_y,
        .blockDimZ = block_z,
        .sharedMemBytes = shared_bytes,
        .hStream = stream,
        .attrs = &attribute,
        .numAttrs = 1,
    };
    FA_CUDA_TRY(cuda, cuLaunchKernelEx, (&config, function, arguments, NULL));
    return FA_PASS;
}

static fa_status enqueue_module(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                                fa_reason *why)
{
    const module_kernel *self = kernel->self;
    fa_cuda *cuda = kernel->cuda;
    fa_params copy = *params;
    FA_TRY(encode_maps(cuda, &self->info, &copy, why));
    void *arguments[] = {&copy};
    for (int32_t i = 0; i < fa_launch_steps(launch); i++) {
        fa_step step;
        if (fa_launch_step_of(launch, params, i, &step))
            FA_TRY(enqueue_step(cuda, self->entries[step.entry], &step,
                                step.entry <= FA_STEPS_MAX ? launch->cluster : 1, arguments, stream, why));
    }
    return FA_PASS;
}

static void destroy_module(fa_kernel *kernel)
{
    module_kernel *self = kernel->self;
    if (self->module)
        kernel->cuda->api.cuModuleUnload(self->module);
}

/* Asks for more than the portable limits: 48 KiB of shared memory, clusters of 8 blocks (CUDA C++ Guide). */
static fa_status opt_in(fa_cuda *cuda, CUfunction function, int32_t shared_bytes, int32_t cluster, fa_reason *why)
{
    if (shared_bytes > 0) {
        int static_bytes = 0;
        FA_CUDA_TRY(cuda, cuFuncGetAttribute, (&static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
        if (static_bytes + shared_bytes > cuda->info.smem_block_bytes)
            return fa_refuse(
                why, FA_INFEASIBLE, "%d bytes of shared memory per block (%d static, %d dynamic), %s allows %d",
                static_bytes + shared_bytes, static_bytes, shared_bytes, cuda->info.name, cuda->info.smem_block_bytes);
        FA_CUDA_TRY(cuda, cuFuncSetAttribute,
                    (function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes));
    }
    if (cluster > 1 && !cuda->api.cuLaunchKernelEx)
        return fa_refuse(why, FA_NOT_RUN, "clusters need a newer CUDA driver (cuLaunchKernelEx)");
    if (cluster > 8)
        FA_CUDA_TRY(cuda, cuFuncSetAttribute, (function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    return FA_PASS;
}

static fa_status load_entry(fa_cuda *cuda, module_kernel *self, int32_t entry, int32_t shared_bytes, int32_t cluster,
                            fa_reason *why)
{
    char name[32] = "fa_kernel";
    if (entry > FA_STEPS_MAX)
        snprintf(name, sizeof name, "fa_%s", entry == FA_STEP_BEFORE ? "before" : "after");
    else if (entry > 0)
        snprintf(name, sizeof name, "fa_step_%d", entry);
    const CUresult found = cuda->api.cuModuleGetFunction(&self->entries[entry], self->module, name);
    if (found == CUDA_ERROR_NOT_FOUND)
        return fa_refuse(why, FA_COMPILE_ERROR, "the module has no entry point: extern \"C\" __global__ void %s(...)",
                         name);
    if (found != CUDA_SUCCESS)
        return fa_cuda_refuse(cuda, found, "cuModuleGetFunction", why);
    return opt_in(cuda, self->entries[entry], shared_bytes, cluster, why);
}

static fa_status load_cubin(fa_cuda *cuda, const fa_module *module, module_kernel *self, fa_reason *why)
{
    char *image = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(module->path, &image, &size, why));
    const CUresult code = cuda->api.cuModuleLoadData(&self->module, image);
    free(image);
    if (code == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return fa_refuse(why, FA_NOT_RUN, "the kernel is compiled for %s, %s is %s", module->ptxas.arch,
                         cuda->info.name, cuda->info.arch);
    if (code != CUDA_SUCCESS)
        return fa_cuda_refuse(cuda, code, module->ptx_arch[0] != '\0' ? "cuModuleLoadData(PTX)" : "cuModuleLoadData",
                              why);
    self->info = module->info;
    for (int32_t i = 0; i < module->plan.count; i++) {
        const fa_step *step = &module->plan.steps[i];
        FA_ASSERT(step->entry >= 0 && step->entry <= FA_STEPS_MAX, "entry %d", step->entry);
        FA_TRY(load_entry(cuda, self, step->entry, step->shared_bytes, 1, why));
    }
    if (module->plan.count > 0)
        return FA_PASS;
    if (module->has_before)
        FA_TRY(load_entry(cuda, self, FA_STEP_BEFORE, 0, 1, why));
    if (module->has_after)
        FA_TRY(load_entry(cuda, self, FA_STEP_AFTER, 0, 1, why));
    return load_entry(cuda, self, 0, module->info.smem_dynamic_bytes, module->info.cluster, why);
}

fa_status fa_cuda_load_own(fa_cuda *cuda, const char *name, CUmodule *module, fa_reason *why)
{
    char *source = fa_format("%s/src/cuda/%s.cu", fa_home(), name), cubin[1024], *image = NULL;
    size_t size = 0;
    fa_status status = fa_compile_file(source, cuda->info.arch, cubin, why);
    FA_THEN(status, fa_read_file(cubin, &image, &size, why));
    if (status == FA_PASS) {
        const CUresult code = cuda->api.cuModuleLoadData(module, image);
        status = code == CUDA_SUCCESS ? FA_PASS : fa_cuda_refuse(cuda, code, "cuModuleLoadData", why);
    }
    free(image);
    free(source);
    return status;
}

fa_status fa_cuda_module_create(fa_cuda *cuda, const fa_module *module, fa_kernel **kernel, fa_reason *why)
{
    fa_kernel *made = fa_cuda_kernel_new(cuda, sizeof(module_kernel), enqueue_module, destroy_module);
    return fa_cuda_kernel_made(made, load_cubin(cuda, module, made->self, why), kernel);
}
