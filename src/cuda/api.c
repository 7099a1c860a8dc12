#include "cuda/api.h"

#include <dlfcn.h>
#include <string.h>

#include "cuda/lib_open.h"

fa_status fa_cuda_api_open(fa_cuda_api *api, fa_reason *why)
{
    memset(api, 0, sizeof *api);
    api->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return fa_refuse(why, FA_NOT_RUN, "no CUDA driver: %s", dlerror());
    const char *missing = NULL;
#define FA_CU(name, symbol, arguments)                                  \
    if (!fa_library_find(api->library, symbol, &api->name) && !missing) \
        missing = symbol;
#define FA_CU_OPTIONAL(name, symbol, arguments) fa_library_find(api->library, symbol, &api->name);
#include "cuda/api.def"
#undef FA_CU
#undef FA_CU_OPTIONAL
    if (missing) {
        dlclose(api->library);
        memset(api, 0, sizeof *api);
        return fa_refuse(why, FA_NOT_RUN, "the CUDA driver is too old: libcuda.so.1 has no %s", missing);
    }
    return FA_PASS;
}
