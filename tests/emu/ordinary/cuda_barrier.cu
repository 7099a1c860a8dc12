// cuda::barrier and cuda::memcpy_async on it.
#include <cuda/barrier>
#include <cooperative_groups.h>

#include <cuda_awbarrier.h>
#include <cuda_awbarrier_primitives.h>

#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;

    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float s[THREADS];
    if (t == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    s[t] = t;
    bar.arrive_and_wait();
    EXPECT(s[t ^ 1] == (t ^ 1));
    auto token = bar.arrive();
    bar.wait(std::move(token));
    __shared__ alignas(16) half d[THREADS * 8];
    auto block = cooperative_groups::this_thread_block();
    cuda::memcpy_async(block, d, (const half *)p.q, 64, bar);
    bar.arrive_and_wait();
    EXPECT(__half_as_ushort(d[0]) == *(const unsigned short *)p.q);
    cuda::memcpy_async(&d[t * 8 % 32], (const half *)p.q + t * 8 % 32, cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();

    __shared__ __mbarrier_t plain;
    __shared__ nvcuda::experimental::awbarrier old;
    __shared__ int word[THREADS];
    if (threadIdx.x == 0) {
        __mbarrier_init(&plain, THREADS);
        init(&old, THREADS);
    }
    __syncthreads();
    word[threadIdx.x] = threadIdx.x;
    const __mbarrier_token_t arrived = __mbarrier_arrive(&plain);
    while (!__mbarrier_test_wait(&plain, arrived)) {
    }
    EXPECT(word[threadIdx.x ^ 33] == (threadIdx.x ^ 33));
    old.arrive_and_wait();
    word[threadIdx.x ^ 1] = 0;

    attend(p, good);
}
