// Static shared memory: arrays, scalars, structs, in templates and out of them.
#include "ordinary.cuh"

struct alignas(16) Pair {
    float a, b;
};
__shared__ int at_file_scope;

template <int N>
__device__ float rotate(float x)
{
    __shared__ __align__(16) float buffer[N][2];
    buffer[threadIdx.x % N][threadIdx.x / N] = x;
    __syncthreads();
    const float y = buffer[(threadIdx.x + 1) % N][threadIdx.x / N];
    __syncthreads();
    return y;
}
inline __device__ int add_up(int x)
{
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, x);
    __syncthreads();
    return sum;
}
struct Worker {
    __device__ int last(int x)
    {
        __shared__ volatile int kept;
        if (threadIdx.x == THREADS - 1)
            kept = x;
        __syncthreads();
        return kept;
    }
};

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ Pair pairs[THREADS];
    __shared__ alignas(16) unsigned char bytes[64];
    bool good = true;
    pairs[threadIdx.x] = {1.0f, (float)threadIdx.x};
    bytes[threadIdx.x] = (unsigned char)threadIdx.x;
    if (threadIdx.x == 0)
        at_file_scope = 7;
    __syncthreads();
    EXPECT(pairs[63 - threadIdx.x].b == (float)(63 - threadIdx.x) && bytes[63] == 63 && at_file_scope == 7);
    EXPECT(rotate<32>((float)threadIdx.x) == (float)((threadIdx.x + 1) % 32 + threadIdx.x / 32 * 32));
    EXPECT(rotate<64>((float)threadIdx.x) == (float)((threadIdx.x + 1) % 64));
    EXPECT(add_up(1) == THREADS && Worker().last(threadIdx.x) == THREADS - 1);
    attend(p, good);
}
