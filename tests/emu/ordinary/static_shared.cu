// Static shared memory: arrays, scalars, structs, in templates and out of them.
#include "ordinary.cuh"

struct alignas(16) Pair {
    float a, b;
};
__shared__ int at_file_scope;
extern "C" {
__shared__ int at_c_scope;
}

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

/* Internal linkage: of a template, of a class in an unnamed namespace, by a type of a function, in a lambda. The sum is
 * of this block alone, and what is not written is not zero. */
#define SUM_OF_BLOCK(mine)                           \
    __shared__ unsigned sum, unwritten[3][N];        \
    const bool zero = unwritten[N / 32][N - 1] == 0; \
    __syncthreads();                                 \
    if (threadIdx.x == 0)                            \
        sum = blockIdx.x;                            \
    __syncthreads();                                 \
    atomicAdd(&sum, mine);                           \
    __syncthreads();                                 \
    return zero ? 0 : sum - blockIdx.x

template <int N>
static __device__ unsigned sum_static(unsigned x)
{
    static int calls; /* of all blocks: no shared memory */
    if (atomicAdd(&calls, 1) < 0)
        return 0;
    SUM_OF_BLOCK(x);
}
namespace
{
template <int N>
struct Unnamed {
    static __device__ unsigned sum(unsigned x) { SUM_OF_BLOCK(x); }
};
} // namespace
template <int N, class T>
__device__ unsigned sum_by_type(T x)
{
    SUM_OF_BLOCK(x.x);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ Pair pairs[THREADS];
    __shared__ alignas(16) unsigned char bytes[64];
    bool good = true;
    pairs[threadIdx.x] = {1.0f, (float)threadIdx.x};
    bytes[threadIdx.x] = (unsigned char)threadIdx.x;
    if (threadIdx.x == 0)
        at_file_scope = at_c_scope = 7;
    __syncthreads();
    EXPECT(pairs[63 - threadIdx.x].b == (float)(63 - threadIdx.x) && bytes[63] == 63 &&
           at_file_scope + at_c_scope == 14);
    EXPECT(rotate<32>((float)threadIdx.x) == (float)((threadIdx.x + 1) % 32 + threadIdx.x / 32 * 32));
    EXPECT(rotate<64>((float)threadIdx.x) == (float)((threadIdx.x + 1) % 64));
    EXPECT(add_up(1) == THREADS && Worker().last(threadIdx.x) == THREADS - 1);
    struct local {
        unsigned x;
    };
    const auto by_lambda = [](auto x) {
        constexpr int N = 32;
        SUM_OF_BLOCK(x);
    };
    EXPECT(sum_static<32>(1) == THREADS && sum_static<64>(2) == 2 * THREADS && Unnamed<32>::sum(3) == 3 * THREADS);
    EXPECT((sum_by_type<32>(local{4}) == 4 * THREADS) && by_lambda(5u) == 5 * THREADS);
    attend(p, good);
}
