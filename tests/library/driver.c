/* The kernel of examples/library/plain.cu, loaded and launched through the driver API; no context is left current.
 *     nvcc -fatbin -Iinclude -o plain.fatbin examples/library/plain.cu
 *     gcc -shared -fPIC -Iinclude -Isrc -DFATBIN='"plain.fatbin"' -o driver.so tests/library/driver.c -ldl */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda/api.h"
#include "fa_library.h"

__asm__(".section .rodata\n.balign 16\ndriver_image:\n.incbin \"" FATBIN "\"\n.byte 0\n.text\n");
extern const char driver_image[] __attribute__((visibility("hidden")));

static fa_cuda_api cu;
static CUfunction function;

__attribute__((visibility("default"))) void fa_library_info(const fa_library_question *question,
                                                            fa_library_answer *answer)
{
    (void)question;
    answer->abi = FA_LIBRARY_ABI;
    snprintf(answer->name, sizeof answer->name, "driver");
}

static void find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FA_CU(name, symbol, arguments)              \
    {                                               \
        void *address = dlsym(library, symbol);     \
        memcpy(&cu.name, &address, sizeof cu.name); \
    }
#define FA_CU_OPTIONAL FA_CU
#include "cuda/api.def"
}

__attribute__((visibility("default"))) const char *fa_forward(const fa_params *params, void *stream)
{
    fa_params copy = *params;
    void *arguments[] = {&copy};
    CUmodule module = NULL;
    if (cu.cuInit == NULL)
        find();
    if (function == NULL && (cu.cuModuleLoadData(&module, driver_image) != CUDA_SUCCESS ||
                             cu.cuModuleGetFunction(&function, module, "plain_attention") != CUDA_SUCCESS))
        return "the module does not load";
    const CUresult code = cu.cuLaunchKernel(function, ((unsigned)params->seq_q + 3) / 4, (unsigned)params->heads,
                                            (unsigned)params->batch, 128, 1, 1, 0, stream, arguments, NULL);
    cu.cuCtxSetCurrent(NULL);
    return code == CUDA_SUCCESS ? NULL : "cuLaunchKernel failed";
}
