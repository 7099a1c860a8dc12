// Dynamic shared memory, of several types, at namespace scope and in functions, aliasing each other.
#define SMEM_BYTES 2048
#include "ordinary.cuh"

extern __shared__ float pool[];

template <typename T>
__device__ T *typed_pool()
{
    extern __shared__ __align__(16) unsigned char raw[];
    return reinterpret_cast<T *>(raw);
}
__device__ float through_parameter(const float *pool) { return pool[3]; } // the name of another thing here
__device__ float neighbour(int i) { return pool[i ^ 1]; }

#define FIRST() pool[0]
#define DEVICE_FUNCTION(name, text) \
    __device__ float name(int i) { return text + i; }
__device__ float first_by_macro() { return FIRST(); }
DEVICE_FUNCTION(third, pool[3])

struct Reader {
    int at;
    __device__ float read() const { return pool[at]; }
};

struct Storage {
    __device__ static int first()
    {
        extern __shared__ int words[];
        return words[0];
    }
};

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    extern __shared__ __align__(128) float4 quads[];
    extern __shared__ half rows[][8];
    bool good = true;
    pool[threadIdx.x] = (float)threadIdx.x;
    __syncthreads();
    EXPECT(neighbour(threadIdx.x) == (float)(threadIdx.x ^ 1));
    EXPECT(typed_pool<float>()[5] == 5.0f && quads[1].y == 5.0f && through_parameter(pool + 1) == 4.0f);
    EXPECT((void *)&rows[1][0] == (void *)&quads[1] && *pool == 0.0f && Storage::first() == 0);
    auto sum = [&](int n) {
        float all = 0;
        for (int i = 0; i < n; i++)
            all += pool[i];
        return all;
    };
    EXPECT(sum(4) == 6.0f && first_by_macro() == 0.0f && third(1) == 4.0f && Reader{6}.read() == 6.0f);
    attend(p, good);
}
