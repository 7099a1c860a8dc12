// Dynamic shared memory with an alignment, at namespace scope and in functions.
#define SMEM_BYTES 1024
#include "ordinary.cuh"

template <int N>
struct __align__(16) Vec
{
    float v[N];
};
extern __shared__ __attribute__((aligned(128))) char raw[];
alignas(16) extern __shared__ float pool2[];
extern __align__(16) __shared__ int pool3[];
extern volatile __shared__ float pool4[];
static __device__ bool other(int t)
{
    auto *v = reinterpret_cast<Vec<4> *>(raw);
    v[t].v[t % 4] = t;
    __syncthreads();
    bool g = pool2[(t ^ 1) * 4 + (t ^ 1) % 4] == (t ^ 1);
    pool3[0];
    (void)pool4[1];
    return g;
}
CHECKS()
{
    extern __shared__ __align__(16) unsigned char s[];
    float *x = (float *)s;
    x[t] = t;
    __syncthreads();
    EXPECT(x[t ^ 1] == (t ^ 1));
    __syncthreads();
    EXPECT(other(t));
}
