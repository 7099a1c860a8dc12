/* Our own declarations of cuBLAS and cuDNN against the libraries' headers: every value and every signature that the
 * baselines use. Compiling it is the test; where a header is missing the test says that it was skipped. */
#include "cuda/cublas_api.h"
#include "cuda/cudnn_api.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define HAVE_CUBLAS 1
#endif
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#define HAVE_CUDNN 1
#endif

#include "unit.h"

#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define IS_INT_SIZED(type) _Static_assert(sizeof(type) == sizeof(int), #type)
#define HAS_SIGNATURE(function, ...) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(function), __VA_ARGS__), #function)

#ifdef HAVE_CUBLAS
#define FA_CUBLAS(name, value, theirs) SAME_VALUE(value, theirs);
#include "cuda/cublas_api.def"
IS_INT_SIZED(libraryPropertyType);
IS_INT_SIZED(cublasStatus_t);
IS_INT_SIZED(cublasOperation_t);
IS_INT_SIZED(cudaDataType);
IS_INT_SIZED(cublasComputeType_t);
IS_INT_SIZED(cublasGemmAlgo_t);
IS_INT_SIZED(cublasMath_t);
_Static_assert(sizeof(cublasHandle_t) == sizeof(void *), "a handle is a pointer");
_Static_assert(sizeof(cudaStream_t) == sizeof(CUstream), "a stream of the runtime is a stream of the driver");
HAS_SIGNATURE(cublasCreate_v2, cublasStatus_t(cublasHandle_t *));
HAS_SIGNATURE(cublasDestroy_v2, cublasStatus_t(cublasHandle_t));
HAS_SIGNATURE(cublasGetProperty, cublasStatus_t(libraryPropertyType, int *));
HAS_SIGNATURE(cublasSetStream_v2, cublasStatus_t(cublasHandle_t, cudaStream_t));
HAS_SIGNATURE(cublasSetWorkspace_v2, cublasStatus_t(cublasHandle_t, void *, size_t));
HAS_SIGNATURE(cublasSetMathMode, cublasStatus_t(cublasHandle_t, cublasMath_t));
HAS_SIGNATURE(cublasGetStatusString, const char *(cublasStatus_t));
HAS_SIGNATURE(cublasGemmStridedBatchedEx,
              cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                             const void *, cudaDataType, int, long long, const void *, cudaDataType, int, long long,
                             const void *, void *, cudaDataType, int, long long, int, cublasComputeType_t,
                             cublasGemmAlgo_t));
#endif

#ifdef HAVE_CUDNN
#define FA_CUDNN(name, value, theirs) SAME_VALUE(value, theirs);
#include "cuda/cudnn_api.def"
IS_INT_SIZED(cudnnStatus_t);
IS_INT_SIZED(cudnnDataType_t);
IS_INT_SIZED(cudnnPointwiseMode_t);
IS_INT_SIZED(cudnnReduceTensorOp_t);
IS_INT_SIZED(cudnnBackendHeurMode_t);
IS_INT_SIZED(cudnnBackendDescriptorType_t);
IS_INT_SIZED(cudnnBackendAttributeName_t);
IS_INT_SIZED(cudnnBackendAttributeType_t);
_Static_assert(sizeof(cudnnHandle_t) == sizeof(void *), "a handle is a pointer");
_Static_assert(__builtin_types_compatible_p(cudnnBackendDescriptor_t, void *), "a descriptor is a pointer");
HAS_SIGNATURE(cudnnGetVersion, size_t(void));
HAS_SIGNATURE(cudnnGetErrorString, const char *(cudnnStatus_t));
HAS_SIGNATURE(cudnnGetLastErrorString, void(char *, size_t));
HAS_SIGNATURE(cudnnCreate, cudnnStatus_t(cudnnHandle_t *));
HAS_SIGNATURE(cudnnDestroy, cudnnStatus_t(cudnnHandle_t));
HAS_SIGNATURE(cudnnSetStream, cudnnStatus_t(cudnnHandle_t, cudaStream_t));
HAS_SIGNATURE(cudnnBackendCreateDescriptor, cudnnStatus_t(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *));
HAS_SIGNATURE(cudnnBackendDestroyDescriptor, cudnnStatus_t(cudnnBackendDescriptor_t));
HAS_SIGNATURE(cudnnBackendFinalize, cudnnStatus_t(cudnnBackendDescriptor_t));
HAS_SIGNATURE(cudnnBackendSetAttribute, cudnnStatus_t(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                                      cudnnBackendAttributeType_t, int64_t, const void *));
HAS_SIGNATURE(cudnnBackendGetAttribute, cudnnStatus_t(const cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                                      cudnnBackendAttributeType_t, int64_t, int64_t *, void *));
HAS_SIGNATURE(cudnnBackendExecute, cudnnStatus_t(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t));
#endif

TEST(cublas_declarations_match)
{
#ifndef HAVE_CUBLAS
    skip();
#endif
}

TEST(cudnn_declarations_match)
{
#ifndef HAVE_CUDNN
    skip();
#endif
}
