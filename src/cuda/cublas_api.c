#include "cuda/cublas_api.h"

#include "cuda/lib_open.h"

#include <string.h>

fa_status fa_cublas_api_open(fa_cublas_api *api, fa_reason *why)
{
    memset(api, 0, sizeof *api);
    FA_TRY(fa_library_open((const char *const[]){"libcublas.so.13", "libcublas.so.12", NULL}, &api->library, why));
    const struct {
        const char *symbol;
        void *function_pointer;
    } symbols[] = {
        {"cublasCreate_v2", &api->create},
        {"cublasDestroy_v2", &api->destroy},
        {"cublasGetProperty", &api->get_property},
        {"cublasSetStream_v2", &api->set_stream},
        {"cublasSetWorkspace_v2", &api->set_workspace},
        {"cublasSetMathMode", &api->set_math_mode},
        {"cublasGetStatusString", &api->status_string},
        {"cublasGemmStridedBatchedEx", &api->gemm_strided_batched},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (!fa_library_find(api->library, symbols[i].symbol, symbols[i].function_pointer))
            return fa_refuse(why, FA_NOT_RUN, "the cuBLAS library is too old: it has no %s", symbols[i].symbol);
    return FA_PASS;
}

fa_status fa_cublas_check(const fa_cublas_api *api, int status, const char *call, fa_reason *why)
{
    if (status == FA_CUBLAS_SUCCESS)
        return FA_PASS;
    return fa_refuse(why, FA_ERROR, "%s: %s (cuBLAS status %d)", call, api->status_string(status), status);
}
