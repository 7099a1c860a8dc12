#include "cuda/cublas_api.h"

#include "cuda/lib_open.h"

#include <string.h>

fa_status fa_cublas_api_open(fa_cublas_api *api, fa_reason *why)
{
    memset(api, 0, sizeof *api);
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    const fa_library_symbol symbols[] = {
        {"cublasCreate_v2", &api->create},
        {"cublasDestroy_v2", &api->destroy},
        {"cublasGetProperty", &api->get_property},
        {"cublasSetStream_v2", &api->set_stream},
        {"cublasSetWorkspace_v2", &api->set_workspace},
        {"cublasSetMathMode", &api->set_math_mode},
        {"cublasGetStatusString", &api->status_string},
        {"cublasGemmStridedBatchedEx", &api->gemm_strided_batched},
    };
    return fa_library_open_all("cuBLAS", names, symbols, sizeof symbols / sizeof *symbols, &api->library, why);
}

fa_status fa_cublas_check(const fa_cublas_api *api, int status, const char *call, fa_reason *why)
{
    if (status == FA_CUBLAS_SUCCESS)
        return FA_PASS;
    return fa_refuse(why, FA_ERROR, "%s: %s (cuBLAS status %d)", call, api->status_string(status), status);
}
