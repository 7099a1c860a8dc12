// extern __shared__ in templates, in specialisations, out of a macro.
#define SMEM_BYTES 1024
#include "ordinary.cuh"

template <typename T>
__device__ T *SharedMemory()
{
    extern __shared__ __align__(sizeof(T)) unsigned char my_smem[];
    return reinterpret_cast<T *>(my_smem);
}
template <class T>
struct Sh {
    static __device__ inline T *get()
    {
        extern __shared__ double __smem_d[];
        return (T *)__smem_d;
    }
};
template <>
struct Sh<int> {
    static __device__ int *get()
    {
        extern __shared__ int __smem_i[];
        return __smem_i;
    }
};
#define DYN(T, name) extern __shared__ T name[]
template <typename T>
__device__ T *sm()
{
    DYN(float4, hidden);
    return (T *)hidden;
}

CHECKS()
{
    float *f = SharedMemory<float>();
    f[t] = t;
    __syncthreads();
    double *d = Sh<double>::get();
    (void)d;
    EXPECT(f[t ^ 1] == (t ^ 1));
    __syncthreads();
    int *i = sm<int>();
    i[t] = t;
    __syncthreads();
    EXPECT(i[t ^ 1] == (t ^ 1));
}
