// cuda::barrier and cuda::memcpy_async on it.
#include <cuda/barrier>
#include <cooperative_groups.h>

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

    attend(p, good);
}
