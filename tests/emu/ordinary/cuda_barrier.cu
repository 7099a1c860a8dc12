// cuda::barrier, cuda::pipeline, cuda_pipeline.h, and cuda::memcpy_async on them.
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

#include "ordinary.cuh"

CHECKS()
{
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
    __shared__ int word[THREADS];
    if (threadIdx.x == 0)
        __mbarrier_init(&plain, THREADS);
    __syncthreads();
    word[threadIdx.x] = threadIdx.x;
    const __mbarrier_token_t arrived = __mbarrier_arrive(&plain);
    while (!__mbarrier_test_wait(&plain, arrived)) {
    }
    EXPECT(word[threadIdx.x ^ 33] == (threadIdx.x ^ 33));
    __syncthreads();
    word[threadIdx.x ^ 1] = 0;
    {
        auto block = cooperative_groups::this_thread_block();
        __shared__ alignas(16) half d[2][64];
        constexpr auto scope = cuda::thread_scope_block;
        __shared__ cuda::pipeline_shared_state<scope, 2> state;
        auto pipe = cuda::make_pipeline(block, &state);
        for (int i = 0; i < 2; i++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, d[i], (const half *)p.q + i * 8, cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        for (int i = 0; i < 2; i++) {
            pipe.consumer_wait();
            __syncthreads();
            EXPECT(__half_as_ushort(d[i][0]) == ((const unsigned short *)p.q)[i * 8]);
            pipe.consumer_release();
        }
        auto mine = cuda::make_pipeline();
        __shared__ float4 f[THREADS];
        mine.producer_acquire();
        cuda::memcpy_async(&f[t], (const float4 *)p.q, sizeof(float4), mine);
        mine.producer_commit();
        cuda::pipeline_consumer_wait_prior<0>(mine);
        EXPECT(__float_as_int(f[t].x) == *(const int *)p.q);
        mine.consumer_release();
    }
    {
        __shared__ __align__(16) half rows[2][THREADS][8];
        const half *k = (const half *)p.k;
        const int at = threadIdx.x % 2 * 8; // 16 halves are there
        __pipeline_memcpy_async(rows[0][threadIdx.x], k + at, 16);
        __pipeline_commit();
        __pipeline_memcpy_async(rows[1][threadIdx.x], k + at, 16, 8); // the last 8 bytes are zeros
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        EXPECT(__half2float(rows[0][threadIdx.x ^ 1][3]) == __half2float(k[(at ^ 8) + 3]));
        __pipeline_wait_prior(0);
        __syncthreads();
        EXPECT(__half2float(rows[1][threadIdx.x ^ 1][3]) == __half2float(k[(at ^ 8) + 3]));
        EXPECT(__half2float(rows[1][threadIdx.x ^ 1][4]) == 0.0f);
    }
}
