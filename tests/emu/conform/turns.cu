/* Blocks that wait for one another, in both directions: semaphores in global memory. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 64);

__device__ __forceinline__ void wait_until(unsigned *turn_g, unsigned value)
{
    unsigned now = 0;
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turn_g) : "memory");
    while (now != value);
}

/* turn_g: whose turn it is. The blocks add to sums_g in the order of `place`: the sums are the same every time. */
__device__ void take_turn(const fa_params &p, unsigned *turn_g, float *sums_g, unsigned place)
{
    const int t = threadIdx.x;
    __shared__ unsigned own_s[64];
    own_s[t] = blockIdx.x;
    if (t == 0)
        wait_until(turn_g, place);
    __syncthreads();
    EXPECT(own_s[t ^ 1] == blockIdx.x);
    sums_g[t] = sums_g[t] * 2.0f + static_cast<float>(place + t);
    __syncthreads();
    if (t == 0)
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(turn_g) : "memory");
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    unsigned *o_g = static_cast<unsigned *>(p.o);
    float *sums_g = reinterpret_cast<float *>(o_g + 16);
    const unsigned t = threadIdx.x, blocks = gridDim.x;
    take_turn(p, o_g + 2, sums_g, blockIdx.x);
    take_turn(p, o_g + 3, sums_g + 64, blocks - 1 - blockIdx.x); /* for blocks that start later */
    if (t == 0) {
        __threadfence();
        atomicAdd(&o_g[4], 1u);
        wait_until(&o_g[4], blocks);
        float want = 0.0f;
        for (unsigned i = 0; i < blocks; i++)
            want = want * 2.0f + static_cast<float>(i);
        EXPECT(sums_g[0] == want && sums_g[64] == want);
    }
}
