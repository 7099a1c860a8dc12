/* The part of cuDNN's backend API that the `cudnn` baseline calls, declared here so that a machine without its headers
 * builds the same binary. */
#pragma once

#include "cuda/api.h"

/* cudnnStatus_t, cudnnDataType_t, ... are int-sized enums; cudnnBackendDescriptor_t is void *. */
enum {
#define FA_CUDNN(name, value, theirs) FA_CUDNN_##name = value,
#include "cuda/cudnn_api.def"
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
