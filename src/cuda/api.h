/* The part of the CUDA driver API that the cuda device uses, declared here so that a machine without CUDA headers
 * builds the same binary; the library is opened at run time. Names and values are those of cuda.h (NVIDIA, CUDA Driver
 * API 13.0); tests/unit/test_cuda_abi.c compares them. */
#pragma once

#include "base/status.h"

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;

#define FA_CU_ENUM(type) typedef enum {
#define FA_CU_VALUE(name, value) name = value,
#define FA_CU_END(type) \
    }                   \
    type;
#include "cuda/api_values.def"

typedef struct CUaccessPolicyWindow_st {
    void *base_ptr;
    size_t num_bytes;
    float hitRatio;
    CUaccessProperty hitProp, missProp;
} CUaccessPolicyWindow;

typedef union CUlaunchAttributeValue_union {
    char pad[64];
    CUaccessPolicyWindow accessPolicyWindow;
    struct {
        unsigned int x, y, z;
    } clusterDim;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
    CUlaunchAttributeID id;
    char pad[8 - sizeof(CUlaunchAttributeID)];
    _Alignas(8) CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUtensorMap_st {
    _Alignas(128) cuuint64_t opaque[16];
} CUtensorMap;

typedef struct fa_cuda_api {
    void *library;
#define FA_CU(name, symbol, arguments) CUresult(*name) arguments;
#define FA_CU_OPTIONAL FA_CU
#include "cuda/api.def"
#undef FA_CU
#undef FA_CU_OPTIONAL
} fa_cuda_api;

/* FA_NOT_RUN with the loader's words when libcuda.so.1 or an entry point is missing. Calls nothing in it. */
fa_status fa_cuda_api_open(fa_cuda_api *api, fa_reason *why);
