// cuda::pipeline of a block with two stages, and of one thread.
#include <cuda/pipeline>
#include <cooperative_groups.h>

#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;

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

    attend(p, good);
}
