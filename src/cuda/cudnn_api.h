/* The part of cuDNN's backend API that the `cudnn` baseline calls, declared here so that a machine without its headers
 * builds the same binary. Values are those of cudnn_graph.h (NVIDIA, cuDNN 9.19 backend API); tests/unit/test_lib_abi.c
 * compares them. */
#pragma once

#include "cuda/api.h"

/* cudnnStatus_t, cudnnDataType_t, ... are int-sized enums; cudnnBackendDescriptor_t is void *. */
enum { FA_CUDNN_SUCCESS = 0, FA_CUDNN_NOT_SUPPORTED = 3000 };
enum { FA_CUDNN_FLOAT = 0, FA_CUDNN_HALF = 2, FA_CUDNN_INT32 = 4, FA_CUDNN_BFLOAT16 = 9, FA_CUDNN_BOOLEAN = 11 };
enum { FA_CUDNN_REDUCE_ADD = 0, FA_CUDNN_REDUCE_MAX = 3 };
enum { FA_CUDNN_HEUR_FALLBACK = 2, FA_CUDNN_HEUR_A = 3 };

/* cudnnPointwiseMode_t */
enum {
    FA_CUDNN_ADD = 0,
    FA_CUDNN_MUL = 1,
    FA_CUDNN_DIV = 6,
    FA_CUDNN_SUB = 9,
    FA_CUDNN_EXP = 13,
    FA_CUDNN_LOG = 15,
    FA_CUDNN_CMP_GE = 303,
    FA_CUDNN_GEN_INDEX = 501,
    FA_CUDNN_BINARY_SELECT = 601,
};

/* cudnnBackendDescriptorType_t */
enum {
    FA_CUDNN_POINTWISE = 0,
    FA_CUDNN_ENGINECFG = 3,
    FA_CUDNN_ENGINEHEUR = 4,
    FA_CUDNN_EXECUTION_PLAN = 5,
    FA_CUDNN_OPERATION_POINTWISE = 13,
    FA_CUDNN_OPERATIONGRAPH = 15,
    FA_CUDNN_VARIANT_PACK = 16,
    FA_CUDNN_TENSOR = 17,
    FA_CUDNN_MATMUL = 18,
    FA_CUDNN_OPERATION_MATMUL = 19,
    FA_CUDNN_REDUCTION = 21,
    FA_CUDNN_OPERATION_REDUCTION = 22,
};

/* cudnnBackendAttributeType_t */
enum {
    FA_CUDNN_TYPE_HANDLE = 0,
    FA_CUDNN_TYPE_DATA_TYPE = 1,
    FA_CUDNN_TYPE_BOOLEAN = 2,
    FA_CUDNN_TYPE_INT64 = 3,
    FA_CUDNN_TYPE_VOID_PTR = 6,
    FA_CUDNN_TYPE_HEUR_MODE = 8,
    FA_CUDNN_TYPE_POINTWISE_MODE = 14,
    FA_CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
    FA_CUDNN_TYPE_REDUCTION_OPERATOR = 18,
};

/* cudnnBackendAttributeName_t */
enum {
    FA_CUDNN_POINTWISE_MODE = 0,
    FA_CUDNN_POINTWISE_MATH_PREC = 1,
    FA_CUDNN_POINTWISE_AXIS = 9,
    FA_CUDNN_ENGINEHEUR_MODE = 200,
    FA_CUDNN_ENGINEHEUR_OPERATION_GRAPH = 201,
    FA_CUDNN_ENGINEHEUR_RESULTS = 202,
    FA_CUDNN_EXECUTION_PLAN_HANDLE = 400,
    FA_CUDNN_EXECUTION_PLAN_ENGINE_CONFIG = 401,
    FA_CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    FA_CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
    FA_CUDNN_OPERATION_POINTWISE_XDESC = 751,
    FA_CUDNN_OPERATION_POINTWISE_BDESC = 752,
    FA_CUDNN_OPERATION_POINTWISE_YDESC = 753,
    FA_CUDNN_OPERATION_POINTWISE_TDESC = 758,
    FA_CUDNN_OPERATIONGRAPH_HANDLE = 800,
    FA_CUDNN_OPERATIONGRAPH_OPS = 801,
    FA_CUDNN_TENSOR_BYTE_ALIGNMENT = 900,
    FA_CUDNN_TENSOR_DATA_TYPE = 901,
    FA_CUDNN_TENSOR_DIMENSIONS = 902,
    FA_CUDNN_TENSOR_STRIDES = 903,
    FA_CUDNN_TENSOR_UNIQUE_ID = 906,
    FA_CUDNN_TENSOR_IS_VIRTUAL = 907,
    FA_CUDNN_TENSOR_IS_BY_VALUE = 908,
    FA_CUDNN_VARIANT_PACK_UNIQUE_IDS = 1000,
    FA_CUDNN_VARIANT_PACK_DATA_POINTERS = 1001,
    FA_CUDNN_VARIANT_PACK_WORKSPACE = 1003,
    FA_CUDNN_MATMUL_COMP_TYPE = 1500,
    FA_CUDNN_OPERATION_MATMUL_ADESC = 1520,
    FA_CUDNN_OPERATION_MATMUL_BDESC = 1521,
    FA_CUDNN_OPERATION_MATMUL_CDESC = 1522,
    FA_CUDNN_OPERATION_MATMUL_DESC = 1523,
    FA_CUDNN_REDUCTION_OPERATOR = 1600,
    FA_CUDNN_REDUCTION_COMP_TYPE = 1601,
    FA_CUDNN_OPERATION_REDUCTION_XDESC = 1610,
    FA_CUDNN_OPERATION_REDUCTION_YDESC = 1611,
    FA_CUDNN_OPERATION_REDUCTION_DESC = 1612,
};

typedef struct fa_cudnn_api {
    void *library;
    size_t version; /* 91900 */
    char name[32];  /* "cuDNN 9.19.0" */
    size_t (*get_version)(void);
    const char *(*error_string)(int status);
    void (*last_error_string)(char *text, size_t size);
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*create_descriptor)(int type, void **descriptor);
    int (*destroy_descriptor)(void *descriptor);
    int (*finalize)(void *descriptor);
    int (*set_attribute)(void *descriptor, int name, int type, int64_t count, const void *elements);
    int (*get_attribute)(void *descriptor, int name, int type, int64_t requested, int64_t *count, void *elements);
    int (*execute)(void *handle, void *plan, void *variant_pack);
} fa_cudnn_api;

/* libcudnn.so.9; FA_NOT_RUN with the loader's words. */
fa_status fa_cudnn_api_open(fa_cudnn_api *api, fa_reason *why);
/* FA_PASS for success, else `status` with cuDNN's version and own words and the call that failed. */
fa_status fa_cudnn_check(const fa_cudnn_api *api, int code, fa_status status, const char *call, fa_reason *why);
