/* CUDA's vector types with their sizes and alignments (CUDA C++ Programming Guide, "Built-in Vector Types"). */
#pragma once

#define FA_EMU_VECTORS(fa_T, name, align2, align4)                                     \
    struct name##1 { fa_T x; };                                                        \
    struct alignas(align2) name##2 { fa_T x, y; };                                     \
    struct name##3 { fa_T x, y, z; };                                                  \
    struct alignas(align4) name##4 { fa_T x, y, z, w; };                               \
    static inline name##1 make_##name##1(fa_T x) { return {x}; }                       \
    static inline name##2 make_##name##2(fa_T x, fa_T y) { return {x, y}; }            \
    static inline name##3 make_##name##3(fa_T x, fa_T y, fa_T z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(fa_T x, fa_T y, fa_T z, fa_T w) { return {x, y, z, w}; }

FA_EMU_VECTORS(signed char, char, 2, 4)
FA_EMU_VECTORS(unsigned char, uchar, 2, 4)
FA_EMU_VECTORS(short, short, 4, 8)
FA_EMU_VECTORS(unsigned short, ushort, 4, 8)
FA_EMU_VECTORS(int, int, 8, 16)
FA_EMU_VECTORS(float, float, 8, 16)
FA_EMU_VECTORS(long, long, 16, 16)
FA_EMU_VECTORS(unsigned long, ulong, 16, 16)
FA_EMU_VECTORS(long long, longlong, 16, 16)
FA_EMU_VECTORS(unsigned long long, ulonglong, 16, 16)
FA_EMU_VECTORS(double, double, 16, 16)
#undef FA_EMU_VECTORS
#define FA_EMU_VECTORS(fa_T, name)                                                                        \
    struct alignas(16) name##4_16a { fa_T x, y, z, w; };                                                  \
    struct alignas(32) name##4_32a { fa_T x, y, z, w; };                                                  \
    static inline name##4_16a make_##name##4_16a(fa_T x, fa_T y, fa_T z, fa_T w) { return {x, y, z, w}; } \
    static inline name##4_32a make_##name##4_32a(fa_T x, fa_T y, fa_T z, fa_T w) { return {x, y, z, w}; }
FA_EMU_VECTORS(long, long)
FA_EMU_VECTORS(unsigned long, ulong)
FA_EMU_VECTORS(long long, longlong)
FA_EMU_VECTORS(unsigned long long, ulonglong)
FA_EMU_VECTORS(double, double)
#undef FA_EMU_VECTORS

/* uint3 is what threadIdx is. */
typedef fa_emu_uint3 uint3;
struct uint1 {
    unsigned x;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint1 make_uint1(unsigned x) { return {x}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

/* Members of structs that a launcher fills; unused here. */
typedef struct CUstream_st *cudaStream_t, *CUstream;
typedef struct CUevent_st *cudaEvent_t, *CUevent;
typedef enum cudaError { cudaSuccess, cudaErrorUnknown = 999 } cudaError_t;

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 u) : x(u.x), y(u.y), z(u.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

/* What host code of CUTLASS's headers names; it is declared and never called. */
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributeNonPortableClusterSizeAllowed = 11,
};
enum cudaLaunchAttributeID {
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6,
    cudaLaunchAttributePreferredClusterDimension = 11,
};
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        dim3 clusterDim, preferredClusterDim;
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
struct cudaDeviceProp {
    int major, minor, multiProcessorCount;
};
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
template <typename T>
cudaError_t cudaFuncSetAttribute(T function, cudaFuncAttribute attribute, int value);
template <typename T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, T function, int threads, size_t bytes);
template <typename T>
cudaError_t cudaOccupancyMaxActiveClusters(int *count, T function, const cudaLaunchConfig_t *launch);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *function, void **arguments);
