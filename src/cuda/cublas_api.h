/* The part of cuBLAS that the `cublas` baseline calls, declared here so that a machine without its headers builds the
 * same binary. Values are those of cublas_api.h and library_types.h (NVIDIA, cuBLAS Library 13.0);
 * tests/unit/test_lib_abi.c compares them. */
#pragma once

#include "cuda/api.h"

/* cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t, cublasMath_t, cublasStatus_t and
 * libraryPropertyType are ints. */
enum {
#define FA_CUBLAS(name, value, theirs) FA_CUBLAS_##name = value,
#include "cuda/cublas_api.def"
};

typedef struct fa_cublas_api {
    void *library;
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*get_property)(int property, int *value);
    int (*set_stream)(void *handle, CUstream stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    int (*set_math_mode)(void *handle, int mode);
    const char *(*status_string)(int status);
    int (*gemm_strided_batched)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                                int a_type, int lda, long long a_stride, const void *b, int b_type, int ldb,
                                long long b_stride, const void *beta, void *c, int c_type, int ldc, long long c_stride,
                                int batch, int compute, int algorithm);
} fa_cublas_api;

/* libcublas.so.13, else .12; FA_NOT_RUN with the loader's words. */
fa_status fa_cublas_api_open(fa_cublas_api *api, fa_reason *why);
/* FA_ERROR with cuBLAS's own words and the call that failed; FA_PASS for success. */
fa_status fa_cublas_check(const fa_cublas_api *api, int status, const char *call, fa_reason *why);
