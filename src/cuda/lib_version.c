#include "cuda/lib_version.h"

#include <stdio.h>

#include "cuda/cublas_api.h"
#include "cuda/cudnn_api.h"

fa_status fa_library_version(fa_kind kind, char text[64], fa_reason *why)
{
    FA_ASSERT(kind != FA_KIND_HAND, "a hand kernel has no library");
    if (kind == FA_KIND_CUDNN) {
        fa_cudnn_api cudnn;
        FA_TRY(fa_cudnn_api_open(&cudnn, why));
        snprintf(text, 64, "%s", cudnn.name);
        return FA_PASS;
    }
    fa_cublas_api cublas;
    FA_TRY(fa_cublas_api_open(&cublas, why));
    int parts[3] = {0};
    for (int property = FA_CUBLAS_MAJOR; property <= FA_CUBLAS_PATCH; property++)
        FA_TRY(fa_cublas_check(&cublas, cublas.get_property(property, &parts[property]), "cublasGetProperty", why));
    snprintf(text, 64, "cuBLAS %d.%d.%d", parts[0], parts[1], parts[2]);
    return FA_PASS;
}
