/* A libcuda.so.1 that cheats between the bench and the driver; found first through LD_LIBRARY_PATH, for tests alone.
 * FA_SHIM=other_stream: the kernel's launches go to a stream of the shim's own. FA_SHIM=persisting: asks for a share of
 * the L2 that persists, and writes to FA_SHIM_OUT the largest share that was in force at a sample.
 *     gcc -shared -fPIC -Isrc -o DIR/libcuda.so.1 tests/cheats/shim_cuda.c -ldl */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/api.h"

/* Every entry point jumps to the driver's own, unless open_driver gives its slot to one of ours. */
#define FA_CU(name, symbol, arguments)                                                          \
    __asm__(".globl " symbol "\n.type " symbol ",@function\n" symbol ":\n  movq fa_slot_" #name \
            "(%rip), %r11\n  jmp *%r11\n");                                                     \
    __attribute__((visibility("hidden"), used)) void *fa_slot_##name;
#define FA_CU_OPTIONAL FA_CU
#include "cuda/api.def"
#undef FA_CU
#undef FA_CU_OPTIONAL

static fa_cuda_api real;
static CUfunction kernel;
static CUstream own;
static bool persisting;
static CUresult (*get_limit)(size_t *value, CUlimit limit);

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
    const CUresult code = real.cuModuleGetFunction(function, module, name);
    if (code == CUDA_SUCCESS && strcmp(name, "fa_kernel") == 0)
        kernel = *function;
    return code;
}

static CUstream stream_for(CUfunction function, CUstream stream)
{
    if (function != kernel)
        return stream;
    if (!own)
        real.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING);
    return own;
}

static CUresult launch(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                       unsigned int by, unsigned int bz, unsigned int smem, CUstream stream, void **params,
                       void **extra)
{
    return real.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, smem, stream_for(function, stream), params, extra);
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    CUlaunchConfig changed = *config;
    changed.hStream = stream_for(function, config->hStream);
    return real.cuLaunchKernelEx(&changed, function, params, extra);
}

static void note_share(void)
{
    static size_t most;
    static bool noted;
    size_t bytes = 0;
    if (!persisting || !get_limit || get_limit(&bytes, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) != CUDA_SUCCESS)
        return;
    if (noted && bytes <= most)
        return;
    most = bytes;
    noted = true;
    FILE *out = fopen(getenv("FA_SHIM_OUT"), "w");
    if (out) {
        fprintf(out, "%zu\n", most);
        fclose(out);
    }
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
    note_share();
    return real.cuGraphLaunch(exec, stream);
}

static CUresult event_record(CUevent event, CUstream stream)
{
    note_share();
    return real.cuEventRecord(event, stream);
}

static CUresult set_current(CUcontext context)
{
    const CUresult code = real.cuCtxSetCurrent(context);
    if (persisting && code == CUDA_SUCCESS)
        real.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 16 << 20);
    return code;
}

__attribute__((constructor)) static void open_driver(void)
{
    const char *mode = getenv("FA_SHIM"), *path = getenv("FA_REAL_LIBCUDA");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !mode)
        return;
#define FA_CU(name, symbol, arguments)       \
    fa_slot_##name = dlsym(library, symbol); \
    memcpy(&real.name, &fa_slot_##name, sizeof real.name);
#define FA_CU_OPTIONAL FA_CU
#include "cuda/api.def"
    void *address = dlsym(library, "cuCtxGetLimit");
    memcpy(&get_limit, &address, sizeof get_limit);
    if (strcmp(mode, "other_stream") == 0) {
        fa_slot_cuModuleGetFunction = (void *)get_function;
        fa_slot_cuLaunchKernel = (void *)launch;
        fa_slot_cuLaunchKernelEx = (void *)launch_ex;
    }
    persisting = strcmp(mode, "persisting") == 0;
    if (persisting) {
        fa_slot_cuCtxSetCurrent = (void *)set_current;
        fa_slot_cuGraphLaunch = (void *)graph_launch;
        fa_slot_cuEventRecord = (void *)event_record;
    }
}
